"""One network namespace a rank, all joined by a bridge in one more namespace. The machine's own network never sees them.

Everything lies inside the namespaces, so deleting these (guard) leaves nothing: no bridge, no link, no TAP.
"""
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import time

from lab.errors import LabError

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEVICE = "eth0"
MTU = 9000


def ip(*words):
    done = subprocess.run(["ip", *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"ip {' '.join(map(str, words))}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")


def _try(*command):
    """Runs a command in a network namespace that is gone afterwards; why it fails, or None."""
    if os.geteuid() != 0:
        return "needs root"
    for program in ("unshare", command[0]):
        if shutil.which(program) is None:
            return f"needs the program {program}"
    done = subprocess.run(["unshare", "--net", *command], capture_output=True, text=True)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["refused"])[-1]


@functools.cache
def no_namespaces():
    """Why no network namespaces can be made here, or None."""
    return (why := _try("ip", "link", "add", "name", "br0", "type", "bridge")) and f"no network namespaces ({why}): run it as root"


@functools.cache
def no_rate():
    """Why the rate of a link cannot be limited here, or None."""
    return (why := _try("tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "1mbit", "burst", "32k", "latency", "400ms")) and \
        f"the kernel cannot limit a rate (tbf): {why}"


@functools.cache
def no_tap():
    """Why frames cannot be relayed through this program, or None."""
    return (why := _try("ip", "tuntap", "add", "dev", "tap0", "mode", "tap")) and f"no TAP devices: {why}"


class Network:
    """`relayed`: the rank whose frames go through the relay, which can delay and lose them; None: all are joined by the kernel."""

    def __init__(self, guard, ranks, relayed=None):
        self._guard, self.ranks, self.relayed = guard, ranks, relayed
        self._prefix = f"tl{os.getpid()}"
        self._made = []
        self.relay = None

    def make(self, job):
        """`job` starts the relay where there is one, and holds its orders (`link`)."""
        if why := no_namespaces():
            raise LabError(why)
        switch = self._namespace("s")
        ip("-n", switch, "link", "add", "br0", "type", "bridge")
        ip("-n", switch, "link", "set", "br0", "up", "mtu", MTU)
        for rank in range(self.ranks):
            space = self._namespace(f"r{rank}")
            if rank == self.relayed:
                self._start_relay(space, switch, job)
            else:
                ip("-n", switch, "link", "add", f"p{rank}", "mtu", MTU, "type", "veth", "peer", "name", DEVICE, "mtu", MTU, "netns", space)
            ip("-n", switch, "link", "set", f"p{rank}", "master", "br0", "up", "mtu", MTU)
            ip("-n", space, "addr", "add", f"{self.address(rank)}/24", "dev", DEVICE)
            ip("-n", space, "link", "set", DEVICE, "up", "mtu", MTU)
            ip("-n", space, "link", "set", "lo", "up")

    def _namespace(self, name):
        space = f"{self._prefix}{name}"
        self._guard.namespace(space)
        ip("netns", "add", space)
        self._made.append(space)
        return space

    def _start_relay(self, space, switch, job):
        log = job.folder / "relay.log"
        self.relay = job.spawn([sys.executable, "-m", "lab.relay", space, DEVICE, switch, f"p{self.relayed}", str(job.link.path)],
                               {**os.environ, "PYTHONPATH": str(ROOT)}, log, helper=True)
        until = time.monotonic() + 10
        while "ready" not in (text := log.read_text()):
            if self.relay.poll() is not None or time.monotonic() > until:
                raise LabError("the relay did not start: " + (text.strip().splitlines() or ["it said nothing"])[-1])
            time.sleep(0.02)

    def address(self, rank):
        return f"10.87.0.{11 + rank}"

    def space(self, rank):
        return f"{self._prefix}r{rank}"

    def inside(self, rank, command):
        """The command, to be run on the rank's own host."""
        return ["ip", "netns", "exec", self.space(rank), "unshare", "--uts", "sh", "-c",
                f"echo node-{rank} > /proc/sys/kernel/hostname; exec \"$@\"", "sh", *command]

    def ends(self, rank):
        """(namespace, device) of both ends of the rank's link."""
        return ((self.space(rank), DEVICE), (f"{self._prefix}s", f"p{rank}"))

    def remove(self):
        while self._made:
            subprocess.run(["ip", "netns", "delete", self._made.pop()], capture_output=True)
