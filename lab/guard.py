"""Cleans up behind a run, also when the run is killed.

The run starts this program first and holds the writing end of its standard input. Lines say what to undo:
    session PID START_TICKS
    namespace NAME
    group PATH
    folder PATH
    leave PATH
When the pipe closes, for whatever reason, the guard ends every process of these sessions, then removes these network namespaces,
control groups and folders. What the run has dealt with itself is simply not there any more. `leave` takes a folder back.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from lab import cgroup, procs

ROOT = pathlib.Path(__file__).resolve().parent.parent


def remove(folder):
    """Removes a folder; who wrote into it may still be on the way out."""
    for _ in range(100):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        time.sleep(0.02)


def serve(lines):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sessions, names = [], {"namespace": [], "group": [], "folder": []}
    for line in lines:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "session":
            pid, began = rest.split()
            sessions.append((int(pid), int(began)))
        elif word in names:
            names[word].append(rest)
        elif word == "leave":
            names["folder"] = [folder for folder in names["folder"] if folder != rest]
    for pid, began in sessions:
        procs.end_session(pid, began)
    for space in names["namespace"]:
        subprocess.run(["ip", "netns", "delete", space], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for group in names["group"]:
        cgroup.remove(group)
    for folder in names["folder"]:
        remove(folder)


class Guard:
    """The run's end of it."""

    def __init__(self, nice=0):
        """`nice`: how sessions that are started later are weighed against the machine's other work (procs.favour)."""
        self._nice = nice
        self._child = subprocess.Popen([sys.executable, "-m", "lab.guard"], cwd=ROOT, stdin=subprocess.PIPE, text=True,
                                       start_new_session=True)

    def _tell(self, line):
        self._child.stdin.write(line + "\n")
        self._child.stdin.flush()

    def session(self, pid):
        """Call right after starting a process that leads a session of its own. Returns its start, for procs.members."""
        began = procs.start_ticks(pid)
        if began is not None:
            self._tell(f"session {pid} {began}")  # first: the kernel may let `favour` wait for seconds
        if self._nice:
            procs.favour(pid, self._nice)
        return began

    def folder(self, path):
        """Call before making the folder."""
        self._tell(f"folder {path}")

    def leave(self, path):
        """Takes `folder` back: it could not be made."""
        self._tell(f"leave {path}")

    def namespace(self, name):
        """Call before making a network namespace."""
        self._tell(f"namespace {name}")

    def group(self, path):
        """Call before making a control group."""
        self._tell(f"group {path}")

    def close(self):
        """Waits until everything is gone."""
        if not self._child.stdin.closed:
            self._child.stdin.close()
        self._child.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


if __name__ == "__main__":
    serve(sys.stdin)
