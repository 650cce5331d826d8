"""What injectors do to a running server. Each returns the exact intervals in epoch ns in which the fault was there."""
import os
import re
import signal
import subprocess
import sys
import time

from lab import procs
from lab.cgroup import Group
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
    used = sum(wait_usage(process) for process in started)
    processors = len({cpus[number % len(cpus)] for number in range(count)})
    if used < 0.25 * seconds * processors:
        raise LabError(f"the busy loops got only {used:.2f} s of {processors} processors in {seconds} s: they were not felt")
    return [[int(begin * 1e9), int((begin + seconds) * 1e9)]]


def wait_usage(process):
    """Waits for a child of ours; the processor seconds that it used."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def until_running(pid, limit_s=5.0):
    """Waits until the main thread of a process computes: stopped while it waits for others, it would look late to nobody."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        seen = procs.stat(pid)
        if seen is None or seen[1] == "R":
            return
        time.sleep(0.0005)
    raise LabError(f"process {pid} did not compute within {limit_s} s, so it was not stopped")


def stop_bursts(pid, at_ns, bursts, running=False):
    """Stops a process for each (begin, length) in seconds after at_ns; with `running`, not before it computes."""
    intervals = []
    for offset, length in bursts:
        sleep_until(at_ns + int(offset * 1e9))
        if running:
            until_running(pid)
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


def hooked(plan, orders, settle_s=0.6, limit_s=20):
    """Gives orders to the start-up hook, waits until their time is over and all that was begun is done, and reads back what it was."""
    plan.order(orders)
    end = max(o["t1_ns"] for o in orders)
    sleep_until(end + int(settle_s * 1e9))
    while len(plan.intervals()) < plan.begun() and time.time_ns() < end + int(limit_s * 1e9):
        time.sleep(0.05)
    return merged(plan.intervals())


def merged(intervals):
    """Intervals in order, those that touch as one."""
    out = []
    for begin, end in intervals:
        if out and begin <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([begin, end])
    return out


def terminate(pid, at_ns):
    """Asks a process to end."""
    return _signal(pid, at_ns, signal.SIGTERM)


def kill(pid, at_ns, limit_s=5.0):
    """Kills a process and waits until it is gone."""
    intervals = _signal(pid, at_ns, signal.SIGKILL)
    until_gone(pid, limit_s, "lives on after it was killed")
    return intervals


def until_gone(pid, limit_s, complaint):
    """Waits until a process has ended."""
    until = time.monotonic() + limit_s
    while (procs.stat(pid) or ("", "Z"))[1] not in "ZX":
        if time.monotonic() > until:
            raise LabError(f"process {pid} {complaint}")
        time.sleep(0.01)


def _signal(pid, at_ns, number):
    sleep_until(at_ns)
    if procs.stat(pid) is None:
        raise LabError(f"process {pid} is gone before it could be sent signal {number}")
    begin = time.time_ns()
    os.kill(pid, number)
    return [[begin, begin + 1]]


def cpu_quota(guard, pids, at_ns, seconds, percent, period_ms=100):
    """The processes together get `percent` of one processor; the kernel stops them for the rest of each period. Returns when they were stopped: in a
    period in which they want less, they are not."""
    with Group(guard, "cpu", pids) as group:
        group.write("cpu.cfs_period_us", period_ms * 1000)
        group.write("cpu.cfs_quota_us", int(period_ms * 10 * percent))
        sleep_until(at_ns)
        begin = time.time_ns()
        group.enter()
        stopped = when_stopped(group, percent / 100, period_ms * 1_000_000, begin, begin + int(seconds * 1e9))
    if not stopped:
        raise LabError(f"the quota of {percent} % never stopped a process")
    return stopped


def when_stopped(group, share, period_ns, begin_ns, end_ns, every_s=0.002):
    """The kernel adds the time of a stop when it is over, at the end of a period; the last one may be over a period after `end_ns`. Of processes on several
    processors it adds up those of all: that they were stopped is known for what is left when they have run for their share."""
    intervals, before, since = [], 0, begin_ns
    while (now := time.time_ns()) < end_ns or (since < end_ns and now < end_ns + period_ns):
        time.sleep(every_s)
        total, now = group.numbers("cpu.stat")["throttled_time"], time.time_ns()
        if total > before:
            intervals.append((now - min(total - before, int((now - since) * (1 - share))), now))
            before, since = total, now
    return merged(intervals)


def link_rate(ends, at_ns, seconds, kbit):
    """Limits the rate of a link in both directions. `ends`: (namespace, device) of both."""
    sleep_until(at_ns)
    begin = time.time_ns()
    try:
        for space, device in ends:
            qdisc(space, "add", device, "tbf", "rate", f"{kbit}kbit", "burst", "16k", "latency", "200ms")
        sleep_until(begin + int(seconds * 1e9))
        held = sum(held_back(space, device) for space, device in ends)
    finally:
        for space, device in ends:
            qdisc(space, "delete", device, missing_ok=True)
    if held == 0:
        raise LabError(f"the limit of {kbit} kbit/s never held a packet")
    return [[begin, time.time_ns()]]


def tc(space, *words):
    return subprocess.run(["tc", "-n", space, *words], capture_output=True, text=True)


def qdisc(space, verb, device, *words, missing_ok=False):
    done = tc(space, "qdisc", verb, "dev", device, "root", *words)
    if done.returncode and not missing_ok:
        raise LabError(f"tc qdisc {verb} on {device}: {(done.stderr.strip().splitlines() or ['refused'])[-1]}")


def held_back(space, device):
    """How often the limit of a device held a packet back."""
    found = re.search(r"overlimits (\d+)", tc(space, "-s", "qdisc", "show", "dev", device).stdout)
    return int(found.group(1)) if found else 0
