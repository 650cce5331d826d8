"""What stops a laboratory run: one line that says what to do."""
import argparse


class LabError(Exception):
    """Shown without a traceback; exit status 2."""


class Parser(argparse.ArgumentParser):
    """Wrong usage is one line, too."""

    def error(self, message):
        raise LabError(f"{message} ({self.prog} --help shows the usage)")
