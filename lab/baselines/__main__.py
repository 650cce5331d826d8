"""Baselines of the scorer: python3 -m lab.baselines setup | list | run METHOD TASK."""
import sys

from lab.baselines import setup
from lab.errors import LabError


def say(text):
    print(f"lab: {text}", file=sys.stderr, flush=True)


def methods():
    from lab.baselines import collective, density, forest, sequences, steptime
    return {m.name: m for module in (steptime, density, forest, collective, sequences) for m in module.METHODS}


def main(argv):
    try:
        if argv == ["setup"]:
            setup.install(say)
        elif argv == ["list"]:
            for method in methods().values():
                print(f"{method.name:<20} {method.about}")
        elif len(argv) == 3 and argv[0] == "run":
            from lab.baselines import task, tune
            known = methods()
            if argv[1] not in known:
                raise LabError(f"no baseline is called \"{argv[1]}\"; there are {', '.join(known)}")
            tune.solve(task.Task(argv[2]), known[argv[1]])
        else:
            raise LabError("usage: python3 -m lab.baselines setup | list | run METHOD TASK")
        return 0
    except ImportError as error:
        say(f"{error}; ./dev lab setup baselines installs what is missing")
    except (LabError, OSError, ValueError) as error:
        say(error)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
