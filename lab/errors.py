"""What stops a laboratory run: one line that says what to do."""
import argparse


class LabError(Exception):
    """Shown without a traceback; exit status 2."""


class Parser(argparse.ArgumentParser):
    """Wrong usage is one line, too."""

    def error(self, message):
        raise LabError(f"{message} ({self.prog} --help shows the usage)")


def whole(low, high=2**63 - 1):
    """Reads a whole number of the command line that has to be from `low` to `high`."""
    def read(text):
        if not (text.isascii() and text.isdigit()) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"this is a whole number from {low} to {high}, not \"{text}\"")
        return int(text)
    return read


def number(low, high):
    """The same of any number."""
    def read(text):
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"this is a number from {low} to {high}, not \"{text}\"")
        return value
    return read


SEED = whole(0)  # as the program's own verbs take it
