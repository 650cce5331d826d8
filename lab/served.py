"""The course of a case on a server: load, recorders, profiler window, one fault, and the label."""
import random
import threading
import time

from lab import workload
from lab.client import LoadClient
from lab.errors import LabError
from lab.host import HostRecorder
from lab.label import label_of
from lab.metrics import Scraper

LEAD_S = 5.0          # load before the profiler starts
FAULT_AFTER_S = 1.2   # from the profiler's start to the fault
PROFILED_S = 5.2
TAIL_S = 3.5          # load after the profiler's end
DRAIN_S = 60
ENDED_S = 12          # how long a client listens to a server that may be gone: what it leaves behind can hold a connection open


class Scene:
    """What injectors may use."""

    def __init__(self, engine, guard, client):
        self.engine, self.guard, self._client = engine, guard, client

    def wait_for(self, kind, count, limit_s=60):
        """Waits until `count` requests of this kind have ended; from when to when they were under way."""
        until = time.monotonic() + limit_s
        while True:
            records = [r for r in self._client.records() if r["kind"] == kind and "t_send_ns" in r]
            ended = [r["t_end_ns"] for r in records if "t_end_ns" in r]
            if len(ended) >= count or time.monotonic() > until:
                if not records:
                    raise LabError(f"no request of the kind \"{kind}\" was sent")
                return [min(r["t_send_ns"] for r in records), max(ended) if len(ended) >= count else time.time_ns()]
            time.sleep(0.05)


class Background(threading.Thread):
    """Calls something, keeps its result or error."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self._work, self.result, self.error = work, None, None
        self.start()

    def run(self):
        try:
            self.result = self._work()
        except Exception as error:  # handed on by join
            self.error = error

    def finish(self):
        self.join()
        if self.error:
            raise self.error
        return self.result


class ServedCase:
    def __init__(self, stack, guard, engine, fault, seed, folder, profile):
        self.stack, self.guard, self.engine, self.fault, self.seed, self.folder = stack, guard, engine, fault, seed, folder
        self.profile = profile and engine.profiler is not None
        self.rng = random.Random(f"{seed}/{fault.kind}")
        self.params = fault.params(self.rng)
        self.prefix = f"r{seed:03d}-{self.rng.randrange(16**4):04x}"
        self.observer = []

    def record(self):
        mark = self.engine.mark()
        fault_at_s = LEAD_S + FAULT_AFTER_S + self.rng.uniform(0, 0.6)
        more, quiet = self.fault.requests(self.seed, self.prefix, fault_at_s, self.params)
        planned = workload.merge(self.prefix, workload.steady(self.seed, self.prefix, LEAD_S + PROFILED_S + TAIL_S, self.stack.rate, quiet), more)
        host = HostRecorder(self.folder / "host_cpu.jsonl", self.engine.processes, self.engine.helpers())
        scraper = Scraper(self.folder / "metrics.txt", self.engine.port)
        client = LoadClient(self.engine.port, self.stack, timeout_s=ENDED_S if self.fault.last else DRAIN_S)
        host.start()
        scraper.start()
        try:
            t0 = time.time_ns() + 200_000_000
            client.start(planned, t0)
            intervals = self._inject(client, t0, t0 + int(fault_at_s * 1e9))
            client.drain(DRAIN_S)
            time.sleep(1.5)  # spans are sent twice a second
        finally:
            client.stop_sending()
            scraper.stop()
            host.stop()
        self.engine.collect(self.folder, mark, self.profile and not self.fault.last)
        return self._label(intervals, host), client.records()

    def _inject(self, client, t0, fault_at_ns):
        profiler = Background(lambda: self._profiler(t0)) if self.profile else None
        scene = Scene(self.engine, self.guard, client)
        intervals = self.fault.act(scene, self.params, fault_at_ns) if self.fault.act else []
        if profiler:
            profiler.finish()
        left = t0 / 1e9 + LEAD_S + PROFILED_S + TAIL_S - time.time()
        if left > 0:
            time.sleep(left)
        return intervals

    def _profiler(self, t0):
        for at_s, path in zip((LEAD_S, LEAD_S + PROFILED_S), self.engine.profiler):
            time.sleep(max(0.0, t0 / 1e9 + at_s - time.time()))
            begin = time.time_ns()
            self.engine.call("POST", path, timeout_s=300)
            if path == self.engine.profiler[1]:
                self.observer.append([begin, time.time_ns()])

    def _label(self, intervals, host):
        visible = [v for v in self.fault.visible if self.profile or v != "trace"]
        return label_of(self.stack, self.fault, self.seed, self.params, intervals, host, world_size=self.engine.world_size,
                        visible_in=visible, observer_ns=self.observer, processes=dict(self.engine.processes))
