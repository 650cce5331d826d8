"""An engine that runs to its end: several ranks, each on a host of its own, work through what they were given and exit."""
import json
import random
import shutil
import time

from lab import procs
from lab.engine import Engine, last_words
from lab.errors import LabError
from lab.host import HostRecorder
from lab.label import label_of
from lab.network import Network

START_LIMIT_S = 300
RUN_LIMIT_S = 300
NO_SPACE = 1 << 16  # bytes: less is a full disk
TOUCHED = 0.3  # share of a step that must lie under the fault for the step to be surely abnormal


def overlap(a, b):
    return max(0, min(a[1], b[1]) - max(a[0], b[0]))


class JobScene:
    """What injectors may use."""

    def __init__(self, engine, guard):
        self.engine, self.guard = engine, guard


class Job(Engine):
    """What all jobs share. A stack says what its ranks are given (`plan`) and how a rank is launched (`command`)."""
    patience_s = 0

    def __init__(self, guard, folder, port, fault):
        super().__init__(guard, folder, fault)
        self.port = port or 29500  # of the ranks' first meeting, inside their own network
        self.plan = None
        self.network = None
        self.hooks = []
        self._went = False

    course = property(lambda self: JobCase)

    def start(self):
        (self.folder / "tmp").mkdir()

    def alive(self):
        return not self._went

    def make_plan(self, seed, rng, fault, params, profile):
        """What the ranks do, as JSON: `world_size`, `relay` (frames of one rank go through the relay), and whatever they understand."""
        raise NotImplementedError

    def command(self, rank):
        """(command, environment) of a rank."""
        raise NotImplementedError

    def make_hooks(self):
        """A table of orders for each rank."""
        raise NotImplementedError

    def launch(self, plan, relayed):
        """Starts network and ranks. `relayed`: the rank whose link goes through the relay."""
        self._went = True
        self.plan = plan
        self.network = Network(self._guard, plan["world_size"], relayed)
        self.make_hooks()
        (self.folder / "plan.json").write_text(json.dumps(plan))
        self.network.make(self)
        for rank in range(plan["world_size"]):
            command, env = self.command(rank)
            process = self.spawn(self.network.inside(rank, command), env, self.log(rank))
            self.processes[f"rank{rank}"] = process.pid

    def log(self, rank):
        return self.folder / f"rank{rank}.log"

    def stop(self):
        done = super().stop()
        if self.network:
            self.network.remove()
        return done

    def steps(self, rank):
        """The steps of a rank that it has begun: dictionaries with t0_ns, and t1_ns where they ended."""
        path = self.folder / f"steps{rank}.jsonl"
        begun = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                entry = json.loads(line)
            except ValueError:  # half a line: it is being written
                continue
            if "step" in entry:
                begun.setdefault(entry["step"], {}).update(entry)
        return [begun[n] for n in sorted(begun)]

    def events(self, rank, name):
        path = self.folder / f"steps{rank}.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")] if path.exists() else []
        return [[e["t0_ns"], e["t1_ns"]] for e in lines if e.get("event") == name]

    def wait_for_step(self, rank, step):
        """Waits until this step of the rank has begun."""
        until = time.monotonic() + START_LIMIT_S
        while len(steps := self.steps(rank)) <= step:
            for name, code in self.ended():
                last = last_words(self.log(int(name[4:])))
                raise LabError(f"{name} ended with status {code} after {len(steps)} steps, before the fault; its log: {last}")
            if time.monotonic() > until:
                raise LabError(f"step {step} was not reached within {START_LIMIT_S} s; its log: {last_words(self.log(rank))}")
            time.sleep(0.002)

    def ended(self):
        """(name, exit status) of the ranks that have ended."""
        return [(f"rank{i}", code) for i, p in enumerate(self._started) if (code := p.poll()) is not None]

    def wait(self):
        """Waits until every rank has ended. Their exit statuses."""
        until = time.monotonic() + RUN_LIMIT_S
        while len(self.ended()) < len(self._started):
            if time.monotonic() > until:
                left = sorted(set(self.processes) - {name for name, _ in self.ended()})
                raise LabError(f"{', '.join(left)} did not end within {RUN_LIMIT_S} s")
            time.sleep(0.02)
        return [code for _, code in self.ended()]

    def collect(self, folder):
        """Traces and logs, one of each a rank."""
        (folder / "logs").mkdir()
        for rank in range(self.plan["world_size"]):
            shutil.copyfile(self.log(rank), folder / "logs" / f"rank{rank}.log")
        traces = sorted(self.folder.glob("rank*.json.gz"))
        if traces:
            (folder / "traces").mkdir()
        for trace in traces:
            shutil.move(trace, folder / "traces" / trace.name)
        return [int(trace.name.split(".")[0][4:]) for trace in traces]


class JobCase:
    """The course of a case: the ranks start, one of them reaches the step of the fault, all end."""

    def __init__(self, stack, guard, job, fault, seed, folder, profile):
        self.stack, self.guard, self.job, self.fault, self.seed, self.folder = stack, guard, job, fault, seed, folder
        self.rng = random.Random(f"{seed}/{fault.kind}")
        self.params = dict(fault.params(self.rng))
        self.plan = job.make_plan(seed, self.rng, fault, self.params, profile)
        self.params.setdefault("rank", self.rng.randrange(self.plan["world_size"]) if fault.culprit else None)

    def record(self):
        job, fault = self.job, self.fault
        job.launch(self.plan, (self.params["rank"] or 0) if self.plan["relay"] else None)
        host = HostRecorder(self.folder / "host_cpu.jsonl", job.processes, job.helpers())
        host.start()
        try:
            intervals = self._inject()
            codes = job.wait()
        finally:
            host.stop()
        bad = [f"rank {rank} ended with status {code}; its log: {last_words(job.log(rank))}"
               for rank, code in enumerate(codes) if code and not fault.failing]
        if bad:
            if shutil.disk_usage(job.folder).free < NO_SPACE:
                raise LabError(f"no space left for {job.folder}: set TMPDIR to another folder")
            raise LabError(bad[0])
        traces = job.collect(self.folder)
        if self.plan["profile"] and not traces:
            raise LabError("no rank wrote a trace; rank 0's log: " + last_words(job.log(0)))
        return self._label(intervals, host), None

    def _inject(self):
        if not self.fault.act:
            return []
        self.job.wait_for_step(self.params["rank"] or 0, self.plan["fault_step"])
        intervals = self.fault.act(JobScene(self.job, self.guard), self.params, time.time_ns())
        if not intervals:
            raise LabError(f"{self.fault.kind} never took effect")
        return intervals

    def _label(self, intervals, host):
        world, rank = self.plan["world_size"], self.params["rank"]
        fault, steps = self.fault, Steps(self.job, self.plan)
        is_fault = fault.culprit is not None
        explained = steps.of_requests(self.plan["explained"])
        if explained and not is_fault:
            intervals = steps.hull(explained)
        abnormal, touched = steps.under(intervals) if is_fault else ([], [])
        ignored = sorted({0, *touched} - {s["index"] for s in abnormal}) if self.plan["profile"] else []
        if is_fault and self.plan["profile"] and not fault.failing and not abnormal:
            raise LabError("no profiled step was under the fault for long enough: the profiled steps were over, or each of them lasts too long")
        more = {
            "world_size": world, "processes": dict(self.job.processes), "abnormal_steps": abnormal if is_fault else None,
            "ignore_steps": ignored, "explained_steps": explained or None, "failed_step": steps.failed if fault.failing else None,
            "observer_ns": steps.observer(),
        }
        if is_fault:
            more["culprit"] = {**fault.culprit, "rank": rank}
            more["accept_ranks"] = fault.right_ranks(rank, world)
            more["victims"] = [r for r in range(world) if r not in more["accept_ranks"]]
        params = {**self.params, **self.plan["told"]}
        return label_of(self.stack, fault, self.seed, params, intervals, host, **more)


class Steps:
    """The profiled steps as the ranks themselves noted them, numbered from 0."""

    def __init__(self, job, plan):
        self._world = range(plan["world_size"])
        ranks = [job.steps(rank) for rank in self._world]
        self._job = job
        count = max(len(steps) for steps in ranks)
        self.all = []
        before = [None] * len(ranks)
        self.failed = None
        for n in range(count):
            here = [steps[n] if n < len(steps) else None for steps in ranks]
            if any(s and s["profiled"] for s in here):
                first = next(s for s in here if s)
                times = [[s["t0_ns"], s.get("t1_ns")] if s else [None, None] for s in here]
                if self.failed is None and any(t[1] is None for t in times):
                    self.failed = len(self.all)
                self.all.append({"index": len(self.all), "annotation": first["name"], "request": first["request"], "ranks": times,
                                 "gap_from": list(before)})
            before = [s.get("t1_ns") if s else None for s in here]

    @staticmethod
    def _shown(step):
        begun = [t for t in step["ranks"] if t[0] is not None]
        return {**{k: step[k] for k in ("index", "annotation", "request")}, "ranks": begun}

    def of_requests(self, numbers):
        return [self._shown(s) for s in self.all if s["request"] in numbers]

    @staticmethod
    def hull(steps):
        """From the first to the last of these steps."""
        times = [t for step in steps for t in step["ranks"]]
        return [[min(t[0] for t in times), max(t[1] or t[0] for t in times)]]

    def under(self, intervals):
        """(steps surely under the fault, numbers of steps touched by it). A step counts together with the gap before it."""
        abnormal, touched = [], []
        for step in self.all:
            if step["index"] == self.failed:
                abnormal.append(self._shown(step))
                continue
            if self.failed is not None and step["index"] > self.failed:
                continue
            best = 0.0
            some = False
            for (begin, end), gap in zip(step["ranks"], step["gap_from"]):
                if begin is None or end is None:
                    continue
                whole = (gap if gap is not None else begin, end)
                common = sum(overlap(i, whole) for i in intervals)
                some |= common > 0
                best = max(best, common / (whole[1] - whole[0]))
            if best >= TOUCHED:
                abnormal.append(self._shown(step))
            elif some:
                touched.append(step["index"])
        return abnormal, touched

    def observer(self):
        """When the profiler started, stopped or wrote, on any rank."""
        return sorted(e for name in ("profiler_start", "profiler_stop", "profiler_write") for rank in self._world
                      for e in self._job.events(rank, name))
