"""What injectors do to a running server. Each returns the exact intervals in epoch ns in which the fault was there."""
import os
import signal
import subprocess
import sys
import time

from lab import procs
from lab.errors import LabError

HOG = """import os, sys, time
begin, end = float(sys.argv[1]), float(sys.argv[2])
os.sched_setaffinity(0, {int(sys.argv[3])})
while time.time() < begin:
    time.sleep(0.01)
while time.time() < end:
    pass
"""
HOG_START_S = 2.0  # ahead of time, so that all begin together


def sleep_until(at_ns):
    while (left := (at_ns - time.time_ns()) / 1e9) > 0:
        time.sleep(min(left, 0.5))


def hogs(guard, at_ns, seconds, count, cpus):
    """Busy loops, by turns on each processor, each in a session of its own: the kernel shares processors between sessions first."""
    sleep_until(at_ns - int(HOG_START_S * 1e9))
    cpus = [c for c in cpus if c in os.sched_getaffinity(0)] or sorted(os.sched_getaffinity(0))
    begin = max(at_ns, time.time_ns() + 100_000_000) / 1e9
    started = []
    for number in range(count):
        command = [sys.executable, "-c", HOG, str(begin), str(begin + seconds), str(cpus[number % len(cpus)])]
        started.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True))
        guard.session(started[-1].pid)
    for process in started:
        process.wait()
    return [[int(begin * 1e9), int((begin + seconds) * 1e9)]]


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
    """Asks a process to end."""
    return _signal(pid, at_ns, signal.SIGTERM)


def kill(pid, at_ns, limit_s=5.0):
    """Kills a process and waits until it is gone."""
    intervals = _signal(pid, at_ns, signal.SIGKILL)
    until = time.monotonic() + limit_s
    while (procs.stat(pid) or ("", "Z"))[1] != "Z":
        if time.monotonic() > until:
            raise LabError(f"process {pid} lives on after it was killed")
        time.sleep(0.01)
    return intervals


def _signal(pid, at_ns, number):
    sleep_until(at_ns)
    if procs.stat(pid) is None:
        raise LabError(f"process {pid} is gone before it could be sent signal {number}")
    begin = time.time_ns()
    os.kill(pid, number)
    return [[begin, begin + 1]]
