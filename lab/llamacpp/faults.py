"""The faults and look-alikes that the llama.cpp stack can have. Its one process is scheduler, worker and front end."""
from lab import inject, memory, workload
from lab.casefile import culprit
from lab.fault import Fault, bursts, look_alikes, no_quota, oom_kill, quota, stop, until_done

SERVER = "llama-server"

ALL = {fault.kind: fault for fault in (
    Fault("healthy", "nothing", "NOT_A_FAULT"),
    Fault("cpu-contention", "busy loops of other programs on both processors", "CPU_STARVED", ("log", "host", "requests"),
          ("HOST_CPU_BOUND",), culprit(layer="host", process=SERVER),
          params=lambda rng: {"count": rng.randint(6, 10), "seconds": round(rng.uniform(1.5, 2.5), 2)},
          act=lambda scene, p, at_ns: inject.hogs(scene.guard, at_ns, p["seconds"], p["count"], (0, 1))),
    Fault("cpu-quota", "the server gets a share of a processor", "CPU_STARVED", ("log", "host", "requests"), ("HOST_CPU_BOUND",),
          culprit(layer="host", process=SERVER, rank=0),
          params=lambda rng: {"percent": rng.randint(15, 35), "seconds": round(rng.uniform(1.5, 2.5), 2)}, act=quota(SERVER), why_not=no_quota),
    Fault("sigstop", "the server is stopped while it serves", "RUNTIME_PAUSE", ("log", "requests"), ("CPU_STARVED",),
          culprit(process=SERVER, layer="process", rank=0), params=bursts, act=stop(SERVER)),
    Fault("context-overflow", "prompts that do not fit", "CLIENT_ERROR", ("log", "requests"), (),
          culprit(layer="request", process="client"), params=lambda rng: {"count": rng.randint(4, 8), "words": 2400},
          requests=lambda seed, prefix, at_s, p: (workload.volley(seed, prefix, at_s, p["count"], 0.15, p["words"], 8, "invalid"), ()),
          act=until_done("invalid")),
    Fault("memory-limit", "less memory than its weights need: they are read from disk again and again", "HOST_MEM_PRESSURE", ("log", "host", "requests"),
          ("CPU_STARVED",), culprit(layer="host", process=SERVER, rank=0), why_not=memory.why_not_slow,
          params=lambda rng: {"share": round(rng.uniform(0.5, 0.85), 2), "seconds": round(rng.uniform(2.0, 3.0), 2)},
          act=lambda scene, p, at_ns: memory.limit(scene.guard, scene.engine.processes[SERVER], at_ns, p["seconds"], p["share"])),
    Fault("oom-kill", "the kernel kills the server for want of memory", "PROC_DEATH", ("requests",), ("HOST_MEM_PRESSURE",),
          culprit(process=SERVER, layer="process", rank=0), act=oom_kill(SERVER), why_not=memory.why_not, last=True),
    *look_alikes(SERVER, (1, 2), (250, 300), 8, (6, 10), (20, 12)),
)}
