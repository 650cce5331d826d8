"""Control groups of version 1 for processes that run already: a share of processor time, a limit of memory."""
import os
import pathlib
import time

from lab.errors import LabError

ROOT = pathlib.Path("/sys/fs/cgroup")


def mounts():
    """Controller -> where its hierarchy of version 1 is mounted."""
    found = {}
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, place, kind, options = line.split()[:4]
        if kind == "cgroup":
            found.update({word: pathlib.Path(place) for word in options.split(",")})
    return found


def home_of(pid, controller):
    """The group of this hierarchy that a process is in, as a folder."""
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return mounts()[controller] / path.lstrip("/")
    raise LabError(f"process {pid} is in no group of the {controller} controller")


def why_not(controller, file):
    """Why a group with this file cannot be made here, or None."""
    if os.geteuid() != 0:
        return "control groups need root"
    place = mounts().get(controller)
    if place is None:
        return f"no control groups of version 1 with the {controller} controller"
    probe = place / f"teller-lab-{os.getpid()}-probe"
    try:
        probe.mkdir()
    except OSError as error:
        return f"no control group of the {controller} controller can be made: {error.strerror}"
    try:
        return None if (probe / file).exists() else f"control groups of this kernel have no {file}"
    finally:
        probe.rmdir()


def remove(path):
    """Removes an empty group; its processes may still be on their way out."""
    for _ in range(100):
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.05)
        else:
            return


class Group:
    """with Group(guard, controller, pids) as group: the processes are in a group of their own until the end, then back where they were."""

    def __init__(self, guard, controller, pids):
        self._guard, self._controller, self._pids = guard, controller, list(pids)
        self.path = None

    def __enter__(self):
        place = mounts().get(self._controller)
        if place is None:
            raise LabError(f"no control groups of version 1 with the {self._controller} controller here")
        self._homes = {pid: home_of(pid, self._controller) for pid in self._pids}
        self.path = next(iter(self._homes.values())) / f"teller-lab-{os.getpid()}-{time.monotonic_ns()}"
        self._guard.group(self.path)
        try:
            self.path.mkdir()
        except OSError as error:
            raise LabError(f"cannot make the control group {self.path}: {error.strerror}") from error
        return self

    def enter(self):
        for pid in self._pids:
            self.write("cgroup.procs", pid)

    def write(self, file, value):
        (self.path / file).write_text(str(value))

    def read(self, file):
        return (self.path / file).read_text()

    def numbers(self, file):
        return {words[0]: int(words[1]) for line in self.read(file).splitlines() if len(words := line.split()) == 2}

    def __exit__(self, *_):
        for pid, home in self._homes.items():
            try:
                (home / "cgroup.procs").write_text(str(pid))
            except OSError:
                pass  # the process has ended
        remove(self.path)
