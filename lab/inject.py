"""What injectors do to a running server. Each returns the exact intervals in epoch ns in which the fault was there."""
import os
import signal
import subprocess
import sys
import time

from lab import procs
from lab.errors import LabError

HOG = "import os, sys, time\nos.sched_setaffinity(0, {int(c) for c in sys.argv[2].split(',')})\n" \
      "end = time.monotonic() + float(sys.argv[1])\nwhile time.monotonic() < end:\n    pass\n"


def sleep_until(at_ns):
    while (left := (at_ns - time.time_ns()) / 1e9) > 0:
        time.sleep(min(left, 0.5))


def hogs(guard, at_ns, seconds, count, cpus):
    """Busy loops, each in a session of its own: the kernel shares processors between sessions first."""
    sleep_until(at_ns)
    cpus = [c for c in cpus if c in os.sched_getaffinity(0)] or sorted(os.sched_getaffinity(0))
    command = [sys.executable, "-c", HOG, str(seconds), ",".join(map(str, cpus))]
    begin = time.time_ns()
    started = []
    for _ in range(count):
        started.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True))
        guard.session(started[-1].pid)
    for process in started:
        process.wait()
    return [[begin, time.time_ns()]]


def stop_bursts(pid, at_ns, bursts):
    """Stops a process for each (begin, length) in seconds after at_ns."""
    intervals = []
    for offset, length in bursts:
        sleep_until(at_ns + int(offset * 1e9))
        if procs.stat(pid) is None:
            raise LabError(f"process {pid} is gone before it could be stopped")
        os.kill(pid, signal.SIGSTOP)
        begin = time.time_ns()
        try:
            sleep_until(begin + int(length * 1e9))
        finally:
            end = time.time_ns()
            procs.send(pid, signal.SIGCONT)
        intervals.append([begin, end])
    return intervals


def hooked(plan, orders, settle_s=0.6):
    """Gives orders to the start-up hook, waits until their time is over, and reads back what was done."""
    plan.order(orders)
    sleep_until(max(o["t1_ns"] for o in orders) + int(settle_s * 1e9))
    return [list(pair) for pair in plan.intervals()]


def terminate(pid, at_ns):
    sleep_until(at_ns)
    begin = time.time_ns()
    os.kill(pid, signal.SIGTERM)
    return [[begin, begin + 1]]
