"""Installs the FSDP stack: a virtual environment with torch, stand-in libraries, and the plug-in that can slow a matrix product."""
import pathlib

from lab import environment, paths, standins

HERE = pathlib.Path(__file__).resolve().parent
VERSION = "2.15.0"
RECIPE = ("requirements.txt", "setup.py", "product.cpp", "../standins.py")


def home():
    return paths.stack_home("fsdp")


def python():
    return environment.python(home())


def is_ready():
    return environment.is_ready(home(), HERE, RECIPE)


def plugin():
    return home() / "libproduct.so"


def install(say):
    """About 560 MB of downloads, 1.4 GB on disk. Does nothing when it is all there."""
    if is_ready():
        say(f"fsdp is set up in {home()}")
        return
    environment.install(home(), HERE / "requirements.txt", say)
    packages = environment.site_packages(home())
    say("making stand-in libraries: " + ", ".join(standins.make(packages)))
    say("compiling the plug-in")
    torch = packages / "torch"
    fresh = plugin().with_suffix(".new")
    environment.run("g++", "-O1", "-std=c++20", "-fPIC", "-shared", "-o", fresh, HERE / "product.cpp",
                    "-I", torch / "include", "-L", torch / "lib", "-ltorch_cpu", "-lc10", "-Wl,--allow-shlib-undefined")
    fresh.rename(plugin())  # a run may be using the old one
    environment.mark_ready(home(), HERE, RECIPE)
    say(f"fsdp is set up in {home()}")
