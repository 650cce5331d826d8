"""Host counters twice a second, and how busy the machine was with other work."""
import json
import os
import threading
import time

from lab import procs


def machine():
    """(busy, idle, iowait, steal) seconds of all processors since boot, and how many processes can run."""
    busy = idle = iowait = steal = running = 0.0
    with open("/proc/stat", encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words[0] == "cpu":
                ticks = [int(w) / procs.TICKS for w in words[1:9]]
                idle, iowait, steal = ticks[3], ticks[4], ticks[7]
                busy = sum(ticks) - idle - iowait - steal
            elif words[0] == "procs_running":
                running = int(words[1])
    return busy, idle, iowait, steal, running


class HostRecorder:
    """Samples CPU seconds and waits for pages of named processes, and CPU seconds of the machine, into a file of JSON lines."""

    def __init__(self, path, processes, own=(), every_s=0.5):
        """`processes`: name -> pid, written to the file. `own`: pids of the laboratory itself; no other work either."""
        self._path, self._processes, self._own, self._every = path, dict(processes), list(own), every_s
        self._stop = threading.Event()
        self._samples = []  # (ns, busy, of the service, of the laboratory)
        self._used = {}     # pid -> seconds at its last sample: a process that ends has used them
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.error = None

    def start(self):
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join()
        if self.error:
            raise self.error

    def _run(self):
        try:
            with open(self._path, "w", encoding="ascii") as file:
                while True:
                    file.write(json.dumps(self._sample()) + "\n")
                    if self._stop.wait(self._every):
                        file.write(json.dumps(self._sample()) + "\n")
                        return
        except OSError as error:
            self.error = error

    def _sample(self):
        there = {name: seen for name, pid in self._processes.items() if (seen := procs.stat(pid))}
        seconds = {name: seen[5] for name, seen in there.items()}
        self._used.update({self._processes[name]: value for name, value in seconds.items()})
        self._used.update({pid: seen[5] for pid in self._own if (seen := procs.stat(pid))})
        own = sum(self._used.get(pid, 0) for pid in self._own) + sum(os.times()[:2])
        busy, idle, iowait, steal, running = machine()
        now = time.time_ns()
        self._samples.append((now, busy, sum(self._used.get(p, 0) for p in self._processes.values()), own))
        return {"t_ns": now, "cpu_s": {k: round(v, 2) for k, v in seconds.items()}, "majflt": {k: seen[6] for k, seen in there.items()}, "busy_s": round(busy, 2),
                "idle_s": round(idle, 2), "iowait_s": round(iowait, 2), "steal_s": round(steal, 2), "procs_running": int(running)}

    def other_work(self, begin_ns=None, end_ns=None):
        """Processors that neither service nor laboratory used, on average over the samples in the interval; None: too few."""
        some = [s for s in self._samples if (begin_ns is None or s[0] >= begin_ns - 5e8) and (end_ns is None or s[0] <= end_ns + 5e8)]
        if len(some) < 2 or some[-1][0] <= some[0][0]:
            return None
        first, last = some[0], some[-1]
        used = (last[1] - first[1]) - (last[2] - first[2]) - (last[3] - first[3])
        return round(max(0.0, used / ((last[0] - first[0]) / 1e9)), 2)
