"""What a fault is to the laboratory: how it is made, and the truth about it."""
import dataclasses
import typing

from lab import cgroup, inject, memory, workload


@dataclasses.dataclass(frozen=True)
class Fault:
    kind: str
    about: str
    fault_class: str
    visible: tuple = ()          # where a reader can see it, as case.md grades it
    accept: tuple = ()           # other classes that are right
    culprit: dict | None = None  # None: nothing is at fault
    # params(rng) -> what is random about it
    params: typing.Callable = lambda rng: {}
    # requests(seed, prefix, at_s, params) -> (more requests, quiet stretches in seconds)
    requests: typing.Callable = lambda seed, prefix, at_s, params: ([], ())
    # act(scene, params, at_ns) -> intervals in epoch ns
    act: typing.Callable | None = None
    options: tuple = ()          # of the server: it is started anew when they differ
    fresh: bool = False          # only right after the server's start
    last: bool = False           # the server is of no use afterwards
    operators: tuple = ()        # names that a trace without module names can give
    # why_not() -> why it cannot be made on this machine, or None
    why_not: typing.Callable = lambda: None


@dataclasses.dataclass(frozen=True)
class Stack:
    """An engine that the laboratory can run."""
    name: str
    version: str
    model: str               # as requests name it
    setup: typing.Any        # module with is_ready() and install(say)
    faults: dict             # kind -> Fault
    engine: type             # of lab.server.Server or lab.job.Job
    rate: float = 2.5        # requests a second
    id_field: str | None = None  # of a request's body, where the engine takes its id from there


def stop(process):
    """Stops the process of that name."""
    return lambda scene, p, at_ns: inject.stop_bursts(scene.engine.processes[process], at_ns, p["bursts"])


def quota(*names):
    """Processes of these names get too little processor time (p: percent, seconds)."""
    def act(scene, p, at_ns):
        return inject.cpu_quota(scene.guard, [scene.engine.processes[name] for name in names], at_ns, p["seconds"], p["percent"])
    return act


def no_quota():
    return cgroup.why_not("cpu", "cpu.cfs_quota_us")


def oom_kill(process):
    """The kernel kills the process of that name for want of memory."""
    return lambda scene, p, at_ns: memory.kill(scene.guard, scene.engine.processes[process], at_ns)


def no_memory(process):
    """The process of that name is given no more memory."""
    return lambda scene, p, at_ns: memory.refuse(scene.engine.processes[process], at_ns)


def bursts(rng):
    count = rng.choice((1, 2, 3))
    return {"bursts": [[round(i * 1.1, 2), round(rng.uniform(0.35, 0.8), 2)] for i in range(count)]}


def kill(process):
    """Kills the process of that name."""
    return lambda scene, p, at_ns: inject.kill(scene.engine.processes[process], at_ns)


# Of an error that the start-up hook raises: what it says, and the line that it becomes in a log.
ERROR_TEXT = "could not create a primitive"
ERROR_LINE = f"RuntimeError: {ERROR_TEXT}"


def until_done(kind):
    """Lasts from the first of the requests of this kind (p: count) to the end of the last."""
    return lambda scene, p, at_ns: [scene.wait_for(kind, p["count"])]


def order(site, effect, length="seconds"):
    """Lets the start-up hook do something at a site for the parameter `length`, as the other parameters say."""
    return lambda scene, p, at_ns: inject.hooked(scene.engine.hook, [{"rank": 0, **orders(site, effect, p, at_ns, p[length])}])


def orders(site, effect, p, at_ns, seconds):
    keys = ("ms", "max_hits", "objects", "place", "rank", "text", "share")
    return {"site": site, "effect": effect, "t0_ns": at_ns, "t1_ns": at_ns + int(seconds * 1e9), **{k: p[k] for k in keys if k in p}}


def idle_burst(rng):
    """One stop, for `during_idle`."""
    return {"bursts": [[0.0, round(rng.uniform(1.2, 2.0), 2)]]}


def during_idle(seed, prefix, at_s, p):
    """No requests before the stop, then some that arrive while it lasts."""
    length = p["bursts"][0][1]
    gap = length / 4
    late = workload.volley(seed, prefix, at_s + 0.15, 3, gap, 30, 12, "normal2")
    return late, ((at_s - 1.5, at_s + length),)


def look_alikes(front, prompts, words, tokens, many, short):
    """What looks like a fault of any server and is none: `prompts` (fewest, most) prompts of so many `words` and `tokens` to come; `many` (fewest, most)
    requests at once of `short` (words, tokens); a fresh start; an orderly end of the process `front`."""
    return (
        Fault("long-prefill", "a few very long prompts", "NOT_A_FAULT", params=lambda rng: {"count": rng.randint(*prompts), "words": rng.randint(*words)},
              requests=lambda seed, prefix, at_s, p: (workload.volley(seed, prefix, at_s, p["count"], 0.6, p["words"], tokens, "longprompt"), ()),
              act=until_done("longprompt")),
        Fault("burst", "many requests at once", "NOT_A_FAULT", params=lambda rng: {"count": rng.randint(*many)},
              requests=lambda seed, prefix, at_s, p: (workload.volley(seed, prefix, at_s, p["count"], 0.01, *short, "many"), ()),
              act=until_done("many")),
        Fault("warm-up", "the first requests after the server's start", "NOT_A_FAULT", fresh=True),
        Fault("shutdown", "an orderly end of the server", "NOT_A_FAULT",
              act=lambda scene, p, at_ns: inject.terminate(scene.engine.processes[front], at_ns), last=True),
    )
