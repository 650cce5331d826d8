"""Virtual environments of stacks: made with pinned versions, and known to be as the recipe says."""
import hashlib
import pathlib
import subprocess
import sys

from lab.errors import LabError


def python(home):
    return home / "venv" / "bin" / "python"


def site_packages(home):
    found = sorted((home / "venv").glob("lib/python3*/site-packages"))
    if not found:
        raise LabError(f"no site-packages below {home / 'venv'}: remove that folder and set up again")
    return found[0]


def _recipe(folder, names):
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in names)).hexdigest()


def is_ready(home, folder, names):
    """True when what the recipe's files say is installed."""
    stamp = home / "ready"
    return stamp.exists() and stamp.read_text() == _recipe(folder, names)


def mark_ready(home, folder, names):
    (home / "ready").write_text(_recipe(folder, names))


def run(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise LabError(f"{pathlib.Path(command[0]).name} failed: {' '.join(map(str, command))}\n{done.stdout[-2000:]}")


def install(home, requirements, say, options=()):
    """Makes the environment where there is none and installs the pinned versions. It is not ready until `mark_ready`."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "ready").unlink(missing_ok=True)
    if not python(home).exists():
        say("making the virtual environment")
        run(sys.executable, "-m", "venv", home / "venv")
    say("installing packages")
    run(python(home), "-m", "pip", "install", "--quiet", "--no-deps", *options, "-r", requirements)
