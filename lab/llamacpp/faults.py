"""The faults and look-alikes that the llama.cpp stack can have. Its one process is scheduler, worker and front end."""
from lab import inject, workload
from lab.casefile import culprit
from lab.fault import Fault, bursts, no_quota, quota, stop, until_done

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
    Fault("long-prefill", "a few very long prompts", "NOT_A_FAULT", params=lambda rng: {"count": rng.randint(1, 2), "words": rng.randint(250, 300)},
          requests=lambda seed, prefix, at_s, p: (workload.volley(seed, prefix, at_s, p["count"], 0.6, p["words"], 8, "longprompt"), ()),
          act=until_done("longprompt")),
    Fault("burst", "many requests at once", "NOT_A_FAULT", params=lambda rng: {"count": rng.randint(6, 10)},
          requests=lambda seed, prefix, at_s, p: (workload.volley(seed, prefix, at_s, p["count"], 0.01, 20, 12, "many"), ()),
          act=until_done("many")),
    Fault("warm-up", "the first requests after the server's start", "NOT_A_FAULT", fresh=True),
    Fault("shutdown", "an orderly end of the server", "NOT_A_FAULT",
          act=lambda scene, p, at_ns: inject.terminate(scene.engine.processes[SERVER], at_ns), last=True),
)}
