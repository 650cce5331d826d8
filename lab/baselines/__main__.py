"""Baselines of the scorer: python3 -m lab.baselines setup | list | known METHOD... | run METHOD TASK..."""
import os
import pathlib
import sys

from lab.baselines import setup
from lab.errors import LabError

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def say(text):
    print(f"lab: {text}", file=sys.stderr, flush=True)


def enter(argv):
    """Goes on in the virtual environment that has what the methods need. One thread each: the scorer may run beside others."""
    if pathlib.Path(sys.prefix).resolve() == (setup.home() / "venv").resolve():
        return
    if not setup.is_ready():
        raise LabError("the baselines are not set up here, or for an older version; ./dev lab setup baselines installs them")
    paths = [str(ROOT)] + [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and p != str(ROOT)]
    os.execve(setup.python(), [str(setup.python()), "-P", "-m", "lab.baselines", *argv],
              {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"})


def methods():
    from lab.baselines import collective, density, forest, sequences, steptime
    return {m.name: m for module in (steptime, density, forest, collective, sequences) for m in module.METHODS}


def named(name):
    known = methods()
    if name not in known:
        raise LabError(f"no baseline is called \"{name}\"; there are {', '.join(known)}")
    return known[name]


def main(argv):
    try:
        if argv == ["setup"]:
            setup.install(say)
            return 0
        if not (argv == ["list"] or argv[:1] == ["known"] or (len(argv) >= 3 and argv[0] == "run")):
            raise LabError("usage: python3 -m lab.baselines setup | list | known METHOD... | run METHOD TASK...")
        enter(argv)
        if argv[0] == "list":
            for method in methods().values():
                print(f"{method.name:<20} {method.about}")
        elif argv[0] == "known":
            for name in argv[1:]:
                named(name)
        else:
            from lab.baselines import task, tune
            said = task.Said(argv[2], argv[1])
            shared = {"said": said.answers}
            for path in argv[2:]:
                tune.solve(task.Task(path, shared), named(argv[1]))
            said.keep()
        return 0
    except ImportError as error:
        say(f"{error}; ./dev lab setup baselines installs what is missing")
    except (LabError, OSError, ValueError) as error:
        say(error)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
