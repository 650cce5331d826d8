"""Installs what the baselines need into a virtual environment of their own."""
import hashlib
import pathlib
import subprocess
import sys

from lab import paths
from lab.errors import LabError

REQUIREMENTS = pathlib.Path(__file__).resolve().parent / "requirements.txt"


def home():
    return paths.stack_home("baselines")


def python():
    return home() / "venv" / "bin" / "python"


def recipe():
    return hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()


def is_ready():
    stamp = home() / "ready"
    return stamp.exists() and stamp.read_text() == recipe()


def run(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise LabError(f"{' '.join(map(str, command))} failed\n{done.stdout[-2000:]}")


def install(say):
    """About 60 MB of downloads, 250 MB on disk. Does nothing when it is all there."""
    if is_ready():
        say(f"baselines are set up in {home()}")
        return
    home().mkdir(parents=True, exist_ok=True)
    (home() / "ready").unlink(missing_ok=True)
    if not python().exists():
        run(sys.executable, "-m", "venv", home() / "venv")
    run(python(), "-m", "pip", "install", "--quiet", "--no-deps", "-r", REQUIREMENTS)
    (home() / "ready").write_text(recipe())
    say(f"baselines are set up in {home()}")
