"""What stops a laboratory run: one line that says what to do."""


class LabError(Exception):
    """Shown without a traceback; exit status 2."""
