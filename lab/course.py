"""The course of a case on any stack: load, recorders, profiler window, one fault, and the case that they make."""
import os
import pathlib
import random
import shutil
import tempfile
import threading
import time

from lab import workload
from lab.casefile import CaseFolder
from lab.client import LoadClient
from lab.errors import LabError
from lab.guard import Guard
from lab.host import HostRecorder
from lab.metrics import Scraper

LEAD_S = 5.0          # load before the profiler starts
FAULT_AFTER_S = 1.2   # from the profiler's start to the fault
PROFILED_S = 5.2
TAIL_S = 3.5          # load after the profiler's end
DRAIN_S = 60
ENDED_S = 12          # how long a client listens to a server that may be gone: what it leaves behind can hold a connection open
WARM_REQUESTS = 6


class Scene:
    """What injectors may use."""

    def __init__(self, server, guard, client):
        self.server, self.guard, self._client = server, guard, client

    def wait_for(self, kind, limit_s=40):
        """Waits until no request of this kind is under way; the time at which the last ended."""
        until = time.monotonic() + limit_s
        time.sleep(0.3)
        while time.monotonic() < until:
            records = [r for r in self._client.records() if r["kind"] == kind]
            if records and all("t_end_ns" in r for r in records):
                return max(r["t_end_ns"] for r in records)
            time.sleep(0.05)
        return time.time_ns()


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


class Runner:
    """Several cases share one server where their faults allow it."""

    def __init__(self, stack, port=None, profile=True, nice=0, say=print):
        if not stack.setup.is_ready():
            raise LabError(f"the {stack.name} stack is not set up: run ./dev lab setup {stack.name}")
        self._stack = stack
        self._port, self._profile, self._nice, self._say = port, profile, nice, say
        self._server = None
        self._folder = None

    def run(self, plan, after=lambda kind, seed, error: None):
        """`plan`: (kind, seed, target folder) of each case. Whatever happens, nothing is left running.

        A case that fails does not keep the others from being made; the last error is raised at the end. `after` is called behind
        each case with its error or None."""
        failed = None
        with Guard(self._nice) as guard:
            try:
                for kind, seed, target in plan:
                    error = None
                    try:
                        self._case(guard, self._stack.faults[kind], seed, pathlib.Path(target))
                    except LabError as caught:
                        if len(plan) > 1:
                            self._say(f"{kind} seed {seed}: {caught}")
                        failed = error = caught
                        self._stop()
                    after(kind, seed, error)
            finally:
                self._stop()
        if failed:
            raise failed if len(plan) == 1 else LabError("some cases were not made; the lines above say why")

    def _stop(self):
        if self._server:
            self._server.stop()
            self._server = None
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _ready_server(self, guard, fault):
        server = self._server
        if server and server.alive() and not fault.fresh and server.options == fault.options:
            return server
        self._stop()
        self._say("starting the server")
        self._folder = tempfile.mkdtemp(prefix="teller-lab-")
        guard.folder(self._folder)
        self._server = server = self._stack.server(guard, self._folder, self._port, fault)
        server.start()
        if not fault.fresh:
            client = LoadClient(server.port, self._stack)
            client.start(workload.volley(0, "warm", 0.0, WARM_REQUESTS, 0.3, 40, 16, "warm"), time.time_ns())
            time.sleep(0.5 * WARM_REQUESTS)
            client.drain(DRAIN_S)
        return server

    def _case(self, guard, fault, seed, target):
        with CaseFolder(target) as case:
            guard.folder(case.path)
            server = self._ready_server(guard, fault)
            self._say(f"{fault.kind} seed {seed}")
            label, requests = Case(self._stack, guard, server, fault, seed, case.path, self._profile).record()
            case.finish(label, requests)
            self._say(f"{target}: {label['background']['whole_case']} processors of other work")
        if fault.last:
            self._stop()


class Case:
    def __init__(self, stack, guard, server, fault, seed, folder, profile):
        self.stack, self.guard, self.server, self.fault, self.seed, self.folder = stack, guard, server, fault, seed, folder
        self.profile = profile and server.profiler is not None
        self.rng = random.Random(f"{seed}/{fault.kind}")
        self.params = fault.params(self.rng)
        self.prefix = f"r{seed:03d}-{self.rng.randrange(16**4):04x}"
        self.observer = []

    def record(self):
        mark = self.server.mark()
        fault_at_s = LEAD_S + FAULT_AFTER_S + self.rng.uniform(0, 0.6)
        more, quiet = self.fault.requests(self.seed, self.prefix, fault_at_s, self.params)
        planned = workload.merge(self.prefix, workload.steady(self.seed, self.prefix, LEAD_S + PROFILED_S + TAIL_S, self.stack.rate, quiet), more)
        host = HostRecorder(self.folder / "host_cpu.jsonl", self.server.processes, self.server.helpers())
        scraper = Scraper(self.folder / "metrics.txt", self.server.port)
        client = LoadClient(self.server.port, self.stack, timeout_s=ENDED_S if self.fault.last else DRAIN_S)
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
        self.server.collect(self.folder, mark, self.profile and not self.fault.last)
        return self._label(intervals, host), client.records()

    def _inject(self, client, t0, fault_at_ns):
        profiler = Background(lambda: self._profiler(t0)) if self.profile else None
        scene = Scene(self.server, self.guard, client)
        intervals = self.fault.act(scene, self.params, fault_at_ns) if self.fault.act else []
        if profiler:
            profiler.finish()
        left = t0 / 1e9 + LEAD_S + PROFILED_S + TAIL_S - time.time()
        if left > 0:
            time.sleep(left)
        return intervals

    def _profiler(self, t0):
        for at_s, path in zip((LEAD_S, LEAD_S + PROFILED_S), self.server.profiler):
            time.sleep(max(0.0, t0 / 1e9 + at_s - time.time()))
            begin = time.time_ns()
            self.server.call("POST", path, timeout_s=300)
            if path == self.server.profiler[1]:
                self.observer.append([begin, time.time_ns()])

    def _label(self, intervals, host):
        fault = self.fault
        is_fault = fault.culprit is not None
        begin = min((i[0] for i in intervals), default=None)
        end = max((i[1] for i in intervals), default=None)
        visible = [v for v in fault.visible if self.profile or v != "trace"]
        return {
            "is_fault": is_fault, "fault_class": fault.fault_class, "accept_classes": list(fault.accept), "fault_kind": fault.kind,
            "t_start_ns": begin, "t_end_ns": end, "stack": self.stack.name, "version": self.stack.version,
            "world_size": self.server.world_size, "culprit": fault.culprit, "accept_ranks": None, "victims": [], "abnormal_steps": None, "ignore_steps": [],
            "observer_ns": self.observer, "what_to_expect": fault.about, "intervals_ns": intervals if is_fault else [],
            "explained_slow_ns": intervals if intervals and not is_fault else None, "activations": len(intervals) if is_fault else 0,
            "seed": self.seed, "params": self.params, "accept_operators": list(fault.operators), "processes": dict(self.server.processes),
            "visible_in": visible,
            "background": {"whole_case": host.other_work(), "in_window": host.other_work(begin, end) if begin else None,
                           "cores": len(os.sched_getaffinity(0))},
        }
