"""The faults and look-alikes that the FSDP stack can have: what is done, and the truth about it."""
import dataclasses
import typing

from lab import inject, memory, network, procs
from lab.casefile import culprit
from lab.fault import ERROR_LINE, ERROR_TEXT, Fault, no_memory, no_quota, oom_kill, orders, quota


@dataclasses.dataclass(frozen=True)
class JobFault(Fault):
    # change(plan, params): what is different about the run itself
    change: typing.Callable = lambda plan, params: None
    failing: bool = False     # ranks may end badly
    timeout_s: int = 90       # of collectives: on a busy machine a rank can be away for long without any fault
    both_ends: bool = False   # of a link between two ranks: either is right
    whole_processor: bool = False  # what is done to a rank's processor is done to every rank that is bound to it
    why_not: typing.Callable = network.no_namespaces

    def right_ranks(self, rank, world):
        """Whoever names one of these names the culprit."""
        if self.both_ends and world == 2:
            return list(range(world))
        return [r for r in range(world) if r == rank or self.whole_processor and procs.processor_of(r) == procs.processor_of(rank)]


def rank_of(p):
    return f"rank{p['rank']}"


def order(site, effect, length="seconds"):
    """Tells the start-up hook of the rank, which has orders of its own."""
    def act(scene, p, at_ns):
        told = orders(site, effect, p, at_ns, p[length])
        del told["rank"]
        return inject.hooked(scene.engine.hooks[p["rank"]], [told])
    return act


def link(effect):
    return lambda scene, p, at_ns: inject.hooked(scene.engine.link, [orders("link", effect, p, at_ns, p["seconds"])])


def hogs(scene, p, at_ns):
    return inject.hogs(scene.guard, at_ns, p["seconds"], p["count"], (procs.processor_of(p["rank"]),))


def by_rank(act):
    """An act on the processes of one rank."""
    return lambda scene, p, at_ns: act(rank_of(p))(scene, p, at_ns)


def nearest_request(plan):
    """The request that is under way at the step of the fault, or the next one: its prefill lies among the profiled steps."""
    step = 0
    for number, request in enumerate(plan["requests"]):
        if step >= plan["fault_step"]:
            return number
        step += request["decode"] + 1
    return len(plan["requests"]) - 1


def bigger(lengths, batch=None):
    """A request in the middle is bigger: `lengths` of the prompt for the ranks."""
    def change(plan, params):
        number = nearest_request(plan)
        request = plan["requests"][number]
        request["prompt_len"] = lengths(plan, params, request["prompt_len"])
        request["batch"] = params.get("batch", request["batch"])
        plan["explained"] = [number]
    return change


def one_rank(plan, params, lengths):
    rank = params["heavy_rank"] = params["draw"] % plan["world_size"]
    return [params["words"] if r == rank else length for r, length in enumerate(lengths)]


def from_the_start(plan, params):
    plan["profile"]["wait"] = 0
    plan["explained"] = [0]


def written_at_once(plan, params):
    """The profiled steps end in the middle, and the trace is written while requests wait."""
    plan["profile"]["active"] = max(20, plan["profile"]["active"] // 2)
    plan["profile"]["write_at_once"] = True


def no_link():
    return network.no_namespaces() or network.no_tap()


def no_rate():
    return network.no_namespaces() or network.no_rate()


def no_quota_here():
    return network.no_namespaces() or no_quota()


def seconds(low, high):
    return lambda rng: {"seconds": round(rng.uniform(low, high), 2)}


LATE = ("STRAGGLER_RANK",)
SEEN = ("trace",)
PAUSE_CULPRIT = culprit(layer="process")
DATA_PARALLEL = (("mode", ("fsdp", "fsdp2")),)
TENSOR_PARALLEL = (("mode", ("tp",)),)
RELAYED = (("relay", (True,)),)

ALL = {fault.kind: fault for fault in (
    JobFault("healthy", "nothing", "NOT_A_FAULT"),
    JobFault("cpu-contention", "busy loops of other programs on the processor of one rank", "CPU_STARVED", ("trace", "host"),
             (*LATE, "HOST_CPU_BOUND"), culprit(layer="host"),
             params=lambda rng: {"count": rng.randint(2, 5), **seconds(1.0, 2.0)(rng)}, act=hogs, whole_processor=True),
    JobFault("sigstop", "one rank is stopped while it computes", "RUNTIME_PAUSE", SEEN, (*LATE, "CPU_STARVED"), PAUSE_CULPRIT,
             params=lambda rng: {"bursts": [[round(i * 0.7, 2), round(rng.uniform(0.15, 0.45), 2)] for i in range(rng.randint(1, 3))]},
             act=lambda scene, p, at_ns: inject.stop_bursts(scene.engine.processes[rank_of(p)], at_ns, p["bursts"], running=True)),
    JobFault("cpu-quota", "one rank gets a share of a processor", "CPU_STARVED", ("trace", "host"), (*LATE, "HOST_CPU_BOUND", "RUNTIME_PAUSE"),
             culprit(layer="host"), params=lambda rng: {"percent": rng.randint(8, 18), **seconds(1.0, 1.8)(rng)}, act=by_rank(quota),
             why_not=no_quota_here),
    JobFault("slow-operator", "a matrix product of one layer takes longer on one rank", "KERNEL_REGRESSION", SEEN, LATE,
             culprit(layer="op", operator="aten::mm", module="layers.2.mlp.down_proj"),
             params=lambda rng: {"ms": rng.randint(40, 120), "place": "layers.2.mlp.down_proj", **seconds(0.5, 1.2)(rng)},
             act=order("product", "lengthen"), operators=("aten::linear", "aten::matmul")),
    JobFault("slow-module", "one layer multiplies more on one rank", "KERNEL_REGRESSION", SEEN, (*LATE, "HOST_CPU_BOUND"),
             culprit(layer="op", operator="aten::mm", module="layers.1"),
             params=lambda rng: {"ms": rng.randint(40, 120), "place": "layers.1", **seconds(0.5, 1.2)(rng)},
             act=order("layer", "multiply"), operators=("aten::linear", "aten::matmul")),
    JobFault("late-host", "Python code of one rank computes before a collective", "HOST_CPU_BOUND", SEEN, LATE,
             culprit(layer="python", module="layers.1", function="Layer.forward"),
             params=lambda rng: {"ms": rng.randint(60, 160), "place": "layers.1", "max_hits": rng.randint(2, 5), "seconds": 1.5},
             act=order("layer", "spin"), operators=("Layer_1",)),
    JobFault("late-data", "the next requests of one rank come late", "HOST_CPU_BOUND", ("trace", "log"),
             (*LATE, "PRE_FORWARD_STALL", "STORAGE_SLOW"), culprit(layer="python", function="Feed.fetch"),
             params=lambda rng: {"ms": rng.randint(150, 400), "max_hits": rng.randint(1, 3), "seconds": 3.0}, act=order("fetch", "sleep")),
    JobFault("gc-pause", "collections of a large heap in one rank", "RUNTIME_PAUSE", SEEN, (*LATE, "HOST_CPU_BOUND"),
             culprit(layer="python", function="Engine.forward"),
             params=lambda rng: {"objects": rng.randint(200, 500) * 1000, "max_hits": rng.randint(1, 3), "seconds": 2.5},
             act=order("step", "collect")),
    JobFault("link-delay", "every frame of one rank's link comes later", "NET_LINK_FAULT", SEEN, ("NET_PATH_WRONG",),
             culprit(layer="network"), params=lambda rng: {"ms": rng.randint(15, 40), **seconds(1.5, 3.0)(rng)}, act=link("delay"),
             options=RELAYED, both_ends=True, why_not=no_link),
    JobFault("link-loss", "frames of one rank's link are lost", "NET_LINK_FAULT", SEEN, ("NET_PATH_WRONG",),
             culprit(layer="network"), params=lambda rng: {"share": round(rng.uniform(0.05, 0.15), 3), **seconds(1.5, 3.0)(rng)},
             act=link("lose"), options=RELAYED, both_ends=True, why_not=no_link),
    JobFault("link-rate", "the rate of one rank's link is limited", "NET_LINK_FAULT", SEEN, ("NET_PATH_WRONG",),
             culprit(layer="network"), params=lambda rng: {"share": rng.uniform(0.3, 0.8), **seconds(1.5, 3.0)(rng)},
             act=lambda scene, p, at_ns: inject.link_rate(scene.engine.network.ends(p["rank"]), at_ns, p["seconds"], p["kbit"]),
             change=lambda plan, p: p.update(kbit=round(p.pop("share") * (1_500 if plan["mode"] == "tp" else 300_000))),
             both_ends=True, why_not=no_rate),
    JobFault("rank-kill", "one rank is killed", "PROC_DEATH", ("trace", "log"), (), PAUSE_CULPRIT, failing=True,
             act=lambda scene, p, at_ns: inject.kill(scene.engine.processes[rank_of(p)], at_ns)),
    JobFault("oom-kill", "the kernel kills one rank for want of memory", "PROC_DEATH", ("trace", "log"), ("HOST_MEM_PRESSURE",), PAUSE_CULPRIT,
             failing=True, act=by_rank(oom_kill), why_not=lambda: network.no_namespaces() or memory.why_not()),
    JobFault("no-memory", "one rank is given no more memory: what it asks for is refused", "PROC_DEATH", ("trace", "log"), ("HOST_MEM_PRESSURE",),
             PAUSE_CULPRIT, failing=True, act=by_rank(no_memory), options=DATA_PARALLEL),  # tensor parallel ranks ask for little
    JobFault("rank-error", "an exception ends one rank", "PROC_DEATH", ("trace", "log"), (), culprit(layer="process", function="Layer.forward", log_record=ERROR_LINE),
             params=lambda rng: {"text": ERROR_TEXT, "place": f"layers.{rng.randrange(4)}", "max_hits": 1, "seconds": 3.0},
             act=order("layer", "raise"), failing=True),
    JobFault("collective-skipped", "one rank leaves out one collective", "COLL_DIVERGENCE", ("trace", "log"), ("PROC_DEATH",),
             culprit(layer="collective", operator="gloo:broadcast", function="Engine.agree"),
             params=lambda rng: {"max_hits": 1, "seconds": 3.0}, act=order("agree", "skip"), failing=True, timeout_s=8),
    JobFault("collective-twice", "one rank issues one collective twice", "COLL_DIVERGENCE", ("trace", "log"), ("PROC_DEATH",),
             culprit(layer="collective", operator="gloo:all_reduce", function="RowParallel.reduce"), options=TENSOR_PARALLEL,
             params=lambda rng: {"max_hits": 1, "seconds": 3.0}, act=order("reduce", "twice"), failing=True, timeout_s=8),
    JobFault("imbalance", "one rank gets more tokens", "NOT_A_FAULT", options=DATA_PARALLEL,
             params=lambda rng: {"words": rng.randint(600, 900), "draw": rng.randrange(8)}, change=bigger(one_rank)),
    JobFault("long-sequence", "one request has a long prompt on all ranks", "NOT_A_FAULT",
             params=lambda rng: {"words": rng.randint(400, 800)},
             change=bigger(lambda plan, p, lengths: [p["words"]] * len(lengths))),
    JobFault("big-batch", "one request is a big batch on all ranks", "NOT_A_FAULT", params=lambda rng: {"batch": rng.randint(8, 24)},
             change=bigger(lambda plan, p, lengths: lengths)),
    JobFault("warm-up", "the profiler runs from the first step on", "NOT_A_FAULT", change=from_the_start),
    JobFault("profiler", "the profiler stops and writes its trace while requests are served", "OBSERVER_EFFECT", change=written_at_once),
    JobFault("shutdown", "an orderly end in the middle", "NOT_A_FAULT",
             act=lambda scene, p, at_ns: inject.terminate(scene.engine.processes["rank0"], at_ns)),
)}
