"""Installs the SGLang stack: a virtual environment with pinned versions, stand-ins for what needs CUDA, a small model."""
import pathlib
import shutil

from lab import environment, paths, standins

HERE = pathlib.Path(__file__).resolve().parent
VERSION = "0.5.23"
KERNELS = "sgl_kernel_names.py"
RECIPE = ("requirements.txt", "setup.py", KERNELS, "../make_model.py", "../standins.py")


def home():
    return paths.stack_home("sglang")


def python():
    return environment.python(home())


def is_ready():
    return environment.is_ready(home(), HERE, RECIPE)


def install(say):
    """About 1.2 GB of downloads, 4 GB on disk. Does nothing when it is all there."""
    if is_ready():
        say(f"sglang is set up in {home()}")
        return
    environment.install(home(), HERE / "requirements.txt", say)
    packages = environment.site_packages(home())
    say("making stand-in libraries: " + ", ".join(standins.make(packages)))
    kernels = packages / "sgl_kernel"
    kernels.mkdir(exist_ok=True)
    shutil.copy(HERE / KERNELS, kernels / "__init__.py")
    say("making the model")
    environment.run(python(), HERE.parent / "make_model.py", home() / "model")
    environment.mark_ready(home(), HERE, RECIPE)
    say(f"sglang is set up in {home()}")
