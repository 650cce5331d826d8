"""The faults and look-alikes that the vLLM stack can have: what is done, and the truth about it."""
from lab import inject, memory, workload
from lab.casefile import culprit
from lab.fault import ERROR_LINE, ERROR_TEXT, Fault, bursts, during_idle, idle_burst, look_alikes, no_memory, no_quota, oom_kill, order, quota, stop, until_done

SPANS = ("spans", "requests")
STEPS = ("trace", "log", "spans", "requests")
SMALL_CACHE = (("kv_tokens", 2304),)


TP2 = (("tp", 2),)


def of(process, layer, **more):
    return culprit(process=process, layer=layer, **more)


def slow_mlp(rank, process):
    return {"fault_class": "KERNEL_REGRESSION", "visible": STEPS, "accept": ("HOST_CPU_BOUND",), "operators": ("aten::mm", "aten::linear", "aten::addmm"),
            "culprit": of(process, "op", rank=rank, module="model.layers.2.mlp", function="LlamaMLP.forward"),
            "params": lambda rng: {"ms": rng.randint(15, 30), "place": "model.layers.2.mlp", "rank": rank, "seconds": round(rng.uniform(1.2, 2.0), 2)},
            "act": order("mlp", "multiply")}


PAUSE = {"fault_class": "RUNTIME_PAUSE", "accept": ("CPU_STARVED",)}
FRONT = {"fault_class": "HOST_CPU_BOUND", "accept": ("PRE_FORWARD_STALL", "FRONTEND_NET"), "visible": SPANS}
TOKENIZER = "PreTrainedTokenizerBase.__call__"

ALL = {fault.kind: fault for fault in (
    Fault("healthy", "nothing", "NOT_A_FAULT"),
    Fault("cpu-contention", "busy loops of other programs on both processors", "CPU_STARVED", (*STEPS, "host"), ("HOST_CPU_BOUND",),
          culprit(layer="host"), params=lambda rng: {"count": rng.randint(6, 10), "seconds": round(rng.uniform(1.2, 2.2), 2)},
          act=lambda scene, p, at_ns: inject.hogs(scene.guard, at_ns, p["seconds"], p["count"], (0, 1))),
    Fault("cpu-quota", "the worker process gets a share of a processor", "CPU_STARVED", (*STEPS, "host"), ("HOST_CPU_BOUND",),
          of("Worker", "host", rank=0), params=lambda rng: {"percent": rng.randint(20, 45), "seconds": round(rng.uniform(1.2, 2.2), 2)},
          act=quota("Worker"), why_not=no_quota),
    Fault("sigstop-engine", "the engine process is stopped while it serves", **PAUSE, visible=("trace", *SPANS),
          culprit=of("EngineCore", "process"), params=bursts, act=stop("EngineCore")),
    Fault("sigstop-worker", "the worker process is stopped while it serves", **PAUSE, visible=("trace", "host", *SPANS),
          culprit=of("Worker", "process", rank=0), params=bursts, act=stop("Worker")),
    Fault("sigstop-api", "the API server is stopped while it serves", **PAUSE, visible=SPANS,
          culprit=of("APIServer", "process"), params=bursts, act=stop("APIServer")),
    Fault("sigstop-engine-idle", "the idle engine process is stopped, then requests come", **PAUSE, visible=SPANS,
          culprit=of("EngineCore", "process"), params=idle_burst, requests=during_idle, act=stop("EngineCore")),
    Fault("sigstop-api-idle", "the idle API server is stopped, then requests come", **PAUSE, visible=("requests",),
          culprit=of("APIServer", "process"), params=idle_burst, requests=during_idle, act=stop("APIServer")),
    Fault("gc-engine", "collections of a large heap in the engine process", "RUNTIME_PAUSE", ("trace", *SPANS),
          ("HOST_CPU_BOUND", "SCHED_STALL"), of("EngineCore", "python", function="EngineCoreProc._process_engine_step"),
          params=lambda rng: {"objects": rng.randint(400, 700) * 1000, "max_hits": rng.randint(2, 4), "seconds": 3.0},
          act=order("engine_step", "collect")),
    Fault("slow-scheduler", "the scheduler computes before every step", "HOST_CPU_BOUND", ("trace", *SPANS), ("SCHED_STALL", "IPC_OVERHEAD"),
          of("EngineCore", "scheduler", function="Scheduler.schedule"),
          params=lambda rng: {"ms": rng.randint(20, 45), "seconds": round(rng.uniform(1.5, 2.5), 2)}, act=order("schedule", "spin")),
    Fault("slow-operator", "the MLP of one layer multiplies more", **slow_mlp(0, "Worker")),
    Fault("slow-tokenizer", "the tokenizer waits", **FRONT, culprit=of("APIServer", "python", function=TOKENIZER),
          params=lambda rng: {"ms": rng.randint(250, 450), "seconds": round(rng.uniform(2.2, 3.0), 2)}, act=order("tokenizer", "sleep")),
    Fault("slow-tokenizer-spin", "the tokenizer computes", **FRONT, culprit=of("APIServer", "python", function=TOKENIZER),
          params=lambda rng: {"ms": rng.randint(250, 450), "seconds": round(rng.uniform(2.2, 3.0), 2)}, act=order("tokenizer", "spin")),
    Fault("event-loop-blocked", "a call in the API server's event loop blocks", "HOST_CPU_BOUND", SPANS,
          ("PRE_FORWARD_STALL", "FRONTEND_NET", "RUNTIME_PAUSE"), of("APIServer", "python", function="InputProcessor.process_inputs"),
          params=lambda rng: {"ms": rng.randint(500, 900), "max_hits": 2, "seconds": 3.0}, act=order("admission", "sleep")),
    Fault("kv-pressure", "long outputs on a small KV cache", "KV_PRESSURE", ("metrics", *SPANS), (),
          of("EngineCore", "scheduler"), params=lambda rng: {"count": rng.randint(8, 11), "max_tokens": rng.randint(220, 300)},
          requests=lambda seed, prefix, at_s, p: (workload.volley(seed, prefix, at_s, p["count"], 0.05, 150, p["max_tokens"], "long"), ()),
          act=until_done("long"), options=SMALL_CACHE),
    Fault("small-cache", "nothing, on a small KV cache", "NOT_A_FAULT", options=SMALL_CACHE),
    Fault("bad-requests", "a flood of invalid requests", "CLIENT_ERROR", ("log", "requests"), (), culprit(layer="request", process="client"),
          params=lambda rng: {"count": rng.randint(40, 80), "gap_s": 0.02},
          requests=lambda seed, prefix, at_s, p: (
              workload.volley(seed, prefix, at_s, p["count"], p["gap_s"], 8, 4, "invalid", {"max_tokens": -1}), ()),
          act=until_done("invalid")),
    Fault("worker-error", "an exception in the worker's step", "PROC_DEATH", ("log", *SPANS), (),
          of("Worker", "process", rank=0, function="Worker.execute_model", log_record=ERROR_LINE),
          params=lambda rng: {"text": ERROR_TEXT, "max_hits": 1, "seconds": 5.0},
          act=order("execute", "raise"), last=True),
    Fault("oom-kill", "the kernel kills the worker for want of memory", "PROC_DEATH", ("log", *SPANS), ("HOST_MEM_PRESSURE",),
          of("Worker", "process", rank=0), act=oom_kill("Worker"), why_not=memory.why_not, last=True),
    Fault("no-memory", "the worker is given no more memory: what it asks for is refused", "PROC_DEATH", ("log", *SPANS), ("HOST_MEM_PRESSURE",),
          of("Worker", "process", rank=0), act=no_memory("Worker"), last=True),
    *look_alikes("APIServer", (1, 3), (450, 620), 12, (12, 20), (40, 24)),
    Fault("healthy-tp", "nothing, on two ranks", "NOT_A_FAULT", options=TP2),
    Fault("slow-operator-tp", "the MLP of one layer multiplies more on one of two ranks", **slow_mlp(1, "Worker_TP1"), options=TP2),
    Fault("sigstop-rank-tp", "one of two ranks is stopped while it serves", **PAUSE, visible=(*STEPS, "host"), options=TP2,
          culprit=of("Worker_TP1", "process", rank=1), params=bursts, act=stop("Worker_TP1")),
)}
