"""A limit of memory for processes that run already: reclaim that makes them read their files again and again, the kernel's OOM kill, or no more address space.

A process that is moved into a control group leaves the memory that it has with its old one; what it touches from then on counts for the new one. So to be
felt by what is there already, file pages have to be given up first. Memory without a file cannot be taken back without swap: a process that has little else
is not slowed by a limit, only killed."""
import contextlib
import ctypes
import os
import pathlib
import platform
import resource
import subprocess
import sys
import time

from lab import cgroup, inject, procs
from lab.errors import LabError

LEAST = 16 << 20      # bytes of files: less is too little to be felt
KILL_LIMIT = 48 << 20  # of a group in which the kernel has to kill
KILL_S = 20
REFUSE_S = 20
GIVE_UP_TRIES, GIVE_UP_EVERY_S = 20, 0.02
PROCESS_MADVISE, PAGE_OUT = 440, 21  # of every architecture with the common table of system calls
MACHINES = ("x86_64", "aarch64")
# Grows when it is told to. Ends when there is nobody any more who could.
BALLOON = """import sys, time
print("ready", flush=True)
if not sys.stdin.readline():
    sys.exit()
held = []
for _ in range(int(sys.argv[1])):
    held.append(bytearray(b"1") * (1 << 20))
    time.sleep(0.002)
time.sleep(600)
"""


def why_not():
    """Why memory cannot be limited here, or None."""
    return cgroup.why_not("memory", "memory.limit_in_bytes")


def why_not_slow():
    """Why a running process cannot be slowed by a limit here, or None."""
    if platform.machine() not in MACHINES or not hasattr(os, "pidfd_open"):
        return "no call that makes another process give up its file pages"
    return why_not()


@contextlib.contextmanager
def _alive(pid):
    try:
        yield
    except (ProcessLookupError, FileNotFoundError) as error:
        raise LabError(f"process {pid} is gone: it cannot be limited") from error


def own_file_bytes(pid):
    """Bytes of files that only this process maps and has not changed: what the kernel can take back."""
    with _alive(pid):
        lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    for line in lines:
        if line.startswith("Private_Clean:"):
            return int(line.split()[1]) << 10
    return 0


def reads(pid):
    """How often this process had to wait for a page from disk so far."""
    seen = procs.stat(pid)
    if seen is None:
        raise LabError(f"process {pid} is gone: it could not live with its limit")
    return seen[6]


class _Range(ctypes.Structure):
    _fields_ = [("begin", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def give_up_files(pid):
    """Lets a process give up the pages of its files; they are read again when it touches them."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    with _alive(pid):
        handle = os.pidfd_open(pid)
    try:
        with _alive(pid):
            lines = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
        for line in lines:
            words = line.split(maxsplit=5)
            if len(words) < 6 or not words[5].startswith("/"):
                continue
            begin, end = (int(word, 16) for word in words[0].split("-"))
            # What it may not give up stays; that enough was given up is looked at afterwards.
            call(PROCESS_MADVISE, handle, ctypes.byref(_Range(begin, end - begin)), ctypes.c_size_t(1), PAGE_OUT, 0)
    finally:
        os.close(handle)


def give_up_to(pid, most):
    """Lets a process give up its files until at most this many bytes of them are left, as far as that can be had. The kernel passes over pages that are on their
    way between its lists, at times over all of them, and says that it has done what was asked; a moment later it takes them."""
    for _ in range(GIVE_UP_TRIES):
        give_up_files(pid)
        if own_file_bytes(pid) <= most:
            return
        time.sleep(GIVE_UP_EVERY_S)


def limit(guard, pid, at_ns, seconds, share):
    """A process keeps only this share of the file pages that are its own; what does not fit is read again when it is touched."""
    own = own_file_bytes(pid)
    if own * share < LEAST:
        raise LabError(f"process {pid} has only {own >> 20} MB of files in memory: a limit would not slow it")
    with cgroup.Group(guard, "memory", [pid]) as group:
        group.write("memory.limit_in_bytes", int(own * share))
        inject.sleep_until(at_ns)
        before = reads(pid)
        begin = time.time_ns()
        group.enter()
        give_up_to(pid, int(own * share))
        inject.sleep_until(begin + int(seconds * 1e9))
        end = time.time_ns()
        held, faults = int(group.read("memory.failcnt")), reads(pid) - before
        if held == 0 or faults == 0:
            raise LabError(f"the limit of {int(own * share) >> 20} MB was met {held} times and cost {faults} reads: it was not felt")
    return [[begin, end]]


def kill(guard, pid, at_ns):
    """A process and a neighbour that grows share a limit: the kernel kills the process, which stands first on its list when it
    is larger than the neighbour."""
    with cgroup.Group(guard, "memory", [pid]) as group:
        group.write("memory.limit_in_bytes", KILL_LIMIT)
        balloon = subprocess.Popen([sys.executable, "-c", BALLOON, str(2 * (KILL_LIMIT >> 20))], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True, text=True)
        guard.session(balloon.pid)
        try:
            if balloon.stdout.readline() != "ready\n":
                raise LabError("the neighbour that should use up the memory did not start")
            inject.sleep_until(at_ns)
            if procs.stat(pid) is None:
                raise LabError(f"process {pid} is gone before it could be killed")
            pathlib.Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
            group.write("cgroup.procs", balloon.pid)
            group.enter()
            balloon.stdin.write("go\n")
            balloon.stdin.flush()
            inject.until_gone(pid, KILL_S, "was not killed by the kernel")
            gone = time.time_ns()
            if group.numbers("memory.oom_control")["oom_kill"] == 0:
                raise LabError(f"process {pid} ended, but not by the kernel's OOM killer")
            return [[gone, gone + 1]]  # it ran as ever until then
        finally:
            balloon.kill()
            balloon.wait()
            balloon.stdin.close()
            balloon.stdout.close()


def refuse(pid, at_ns):
    """A process gets no more address space: what it asks for is refused, and it has to end by that. Needs neither root nor a control group. The kernel kills
    nobody, and memory that the process has already stays its own."""
    inject.sleep_until(at_ns)
    with _alive(pid):
        usual = resource.prlimit(pid, resource.RLIMIT_AS)
        pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[0])
        begin = time.time_ns()
        resource.prlimit(pid, resource.RLIMIT_AS, (pages * resource.getpagesize(), usual[1]))
    try:
        inject.until_gone(pid, REFUSE_S, "lives on without more address space")
    except LabError:
        resource.prlimit(pid, resource.RLIMIT_AS, usual)
        raise
    return [[begin, time.time_ns()]]
