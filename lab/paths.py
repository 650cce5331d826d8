"""Where the laboratory keeps what it installs and makes. Nothing of it is committed."""
import os
import pathlib


def home():
    """$TELLER_LAB_HOME, else the user's cache folder."""
    given = os.environ.get("TELLER_LAB_HOME")
    if given:
        return pathlib.Path(given).absolute()
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "teller-lab"


def stack_home(stack):
    return home() / stack
