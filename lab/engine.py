"""What is under test: processes in sessions of their own, a folder that goes with them."""
import pathlib
import re
import subprocess

from lab import procs

ERROR = re.compile(r"(\[rank\d+\]: )?[\w.]*(Error|Exception)\b")  # as Python ends a traceback


class Engine:
    """What servers and jobs share. `processes`: name -> pid of what works, as host counters and labels name it."""
    course = None      # how a case of it is made
    profiler = None    # (path that starts it, path that stops it) where a server has one
    patience_s = 5     # how long it may take to end in order

    def __init__(self, guard, folder, fault):
        self.folder = pathlib.Path(folder)
        self.options = fault.options
        self.processes = {}
        self._guard = guard
        self._started = []
        self._helpers = []

    def start(self):
        """Makes it ready for its first case."""
        raise NotImplementedError

    def warm(self, stack):
        """Brings it to the state in which it is usually found."""

    def alive(self):
        """True while it can be used for another case."""
        raise NotImplementedError

    def spawn(self, command, env, log, helper=False):
        """Starts a process in a session of its own. A helper belongs to the laboratory."""
        with open(log, "wb") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=env,
                                       start_new_session=True)
        process.began = self._guard.session(process.pid)
        (self._helpers if helper else self._started).append(process)
        return process

    def helpers(self):
        """Pids that belong to the laboratory."""
        return [process.pid for process in self._helpers]

    def stop(self):
        """Ends all that was started. True when nothing is left."""
        done = True
        for process, patience in (*((p, self.patience_s) for p in self._started), *((p, 0) for p in self._helpers)):
            done &= procs.end_session(process.pid, process.began, patience_s=patience)
            process.wait()
        return done


def tail(log, lines):
    text = log.read_text(errors="replace") if log.exists() else ""
    return "\n".join(text.splitlines()[-lines:])


def last_words(log):
    """The line that is most likely to say why a process ended: the last one that names an error, else the last one."""
    lines = [line for line in tail(log, 400).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if ERROR.match(line)), lines[-1] if lines else "nothing")
