"""The faults and look-alikes that the SGLang stack can have: what is done, and the truth about it."""
from lab import inject, memory, workload
from lab.casefile import culprit
from lab.fault import ERROR_LINE, ERROR_TEXT, Fault, bursts, during_idle, idle_burst, kill, look_alikes, no_memory, oom_kill, order, stop, until_done

SPANS = ("spans", "requests")
STEPS = ("trace", "log", "spans", "requests")
HTTP, SCHEDULER, DETOKENIZER = "tokenizer_manager", "scheduler", "detokenizer"
TOKENIZER = "PreTrainedTokenizerBase.__call__"
PAUSE = {"fault_class": "RUNTIME_PAUSE", "accept": ("CPU_STARVED",)}
FRONT = {"fault_class": "HOST_CPU_BOUND", "accept": ("PRE_FORWARD_STALL", "FRONTEND_NET"), "visible": SPANS}
TP2 = (("tp", 2),)
SMALL_CACHE = (("kv_tokens", 2048),)


def of(process, layer, **more):
    return culprit(process=process, layer=layer, **more)


def flood(extra):
    """Many requests that the server has to refuse."""
    return {"fault_class": "CLIENT_ERROR", "visible": ("log", "requests"), "culprit": of("client", "request"),
            "params": lambda rng: {"count": rng.randint(40, 80), "gap_s": 0.02},
            "requests": lambda seed, prefix, at_s, p: (
                workload.volley(seed, prefix, at_s, p["count"], p["gap_s"], 8, 4, "invalid", extra), ()),
            "act": until_done("invalid")}


def slow_mlp(rank, process):
    return {"fault_class": "KERNEL_REGRESSION", "visible": STEPS, "accept": ("HOST_CPU_BOUND",), "operators": ("aten::mm", "aten::linear", "aten::addmm"),
            "culprit": of(process, "op", rank=rank, module="model.layers.2.mlp", function="LlamaMLP.forward"),
            "params": lambda rng: {"ms": rng.randint(15, 30), "place": "model.layers.2.mlp", "rank": rank, "seconds": round(rng.uniform(1.2, 2.0), 2)},
            "act": order("llama_mlp", "multiply")}


def tokenizer(effect, about):
    return {"about": about, **FRONT, "culprit": of(HTTP, "python", function=TOKENIZER), "act": order("tokenizer", effect),
            "params": lambda rng: {"ms": rng.randint(250, 450), "seconds": round(rng.uniform(2.2, 3.0), 2)}}


ALL = {fault.kind: fault for fault in (
    Fault("healthy", "nothing", "NOT_A_FAULT"),
    Fault("cpu-contention", "busy loops of other programs on both processors", "CPU_STARVED", (*STEPS, "host"), ("HOST_CPU_BOUND",),
          culprit(layer="host"), params=lambda rng: {"count": rng.randint(6, 10), "seconds": round(rng.uniform(1.2, 2.2), 2)},
          act=lambda scene, p, at_ns: inject.hogs(scene.guard, at_ns, p["seconds"], p["count"], (0, 1))),
    Fault("sigstop-scheduler", "the scheduler process is stopped while it serves", **PAUSE, visible=(*STEPS, "host"),
          culprit=of(SCHEDULER, "process", rank=0), params=bursts, act=stop(SCHEDULER)),
    Fault("sigstop-detokenizer", "the detokenizer process is stopped while it serves", **PAUSE, visible=SPANS,
          culprit=of(DETOKENIZER, "process"), params=bursts, act=stop(DETOKENIZER)),
    Fault("sigstop-http", "the HTTP server's process is stopped while it serves", **PAUSE, visible=SPANS,
          culprit=of(HTTP, "process"), params=bursts, act=stop(HTTP)),
    Fault("sigstop-scheduler-idle", "the idle scheduler process is stopped, then requests come", **PAUSE, visible=SPANS,
          culprit=of(SCHEDULER, "process", rank=0), params=idle_burst, requests=during_idle, act=stop(SCHEDULER)),
    Fault("gc-scheduler", "collections of a large heap in the scheduler process", "RUNTIME_PAUSE", ("trace", *SPANS),
          ("HOST_CPU_BOUND", "SCHED_STALL"), of(SCHEDULER, "python", rank=0, function="Scheduler.update_running_batch"),
          params=lambda rng: {"objects": rng.randint(400, 700) * 1000, "max_hits": rng.randint(2, 4), "seconds": 3.0},
          act=order("running_batch", "collect")),
    Fault("slow-scheduler", "the scheduler computes before every decode step", "HOST_CPU_BOUND", STEPS, ("SCHED_STALL", "IPC_OVERHEAD"),
          of(SCHEDULER, "scheduler", rank=0, function="Scheduler.update_running_batch"),
          params=lambda rng: {"ms": rng.randint(20, 45), "seconds": round(rng.uniform(1.5, 2.5), 2)}, act=order("running_batch", "spin")),
    Fault("slow-operator", "the MLP of one layer multiplies more", **slow_mlp(0, SCHEDULER)),
    Fault("slow-detokenizer", "the detokenizer computes before every output", "HOST_CPU_BOUND", SPANS, ("IPC_OVERHEAD", "FRONTEND_NET"),
          of(DETOKENIZER, "python", function="DetokenizerManager.handle_batch_token_id_out"),
          params=lambda rng: {"ms": rng.randint(150, 300), "seconds": round(rng.uniform(2.0, 3.0), 2)}, act=order("detokenize", "spin")),
    Fault("slow-tokenizer", **tokenizer("sleep", "the tokenizer waits")),
    Fault("slow-tokenizer-spin", **tokenizer("spin", "the tokenizer computes")),
    Fault("event-loop-blocked", "a call in the HTTP server's event loop blocks", "HOST_CPU_BOUND", SPANS,
          ("PRE_FORWARD_STALL", "FRONTEND_NET", "RUNTIME_PAUSE"), of(HTTP, "python", function="TokenizerManager._create_tokenized_object"),
          params=lambda rng: {"ms": rng.randint(500, 900), "max_hits": 2, "seconds": 3.0}, act=order("request", "sleep")),
    Fault("kv-pressure", "long outputs on a small KV cache", "KV_PRESSURE", ("log", "metrics", *SPANS), (),
          of(SCHEDULER, "scheduler", rank=0), params=lambda rng: {"count": rng.randint(10, 14), "max_tokens": rng.randint(220, 300)},
          requests=lambda seed, prefix, at_s, p: (workload.volley(seed, prefix, at_s, p["count"], 0.05, 60, p["max_tokens"], "long"), ()),
          act=until_done("long"), options=SMALL_CACHE),
    Fault("small-cache", "nothing, on a small KV cache", "NOT_A_FAULT", options=SMALL_CACHE),
    Fault("bad-requests", "a flood of invalid requests", **flood({"max_tokens": -1})),
    Fault("context-overflow", "a flood of prompts that do not fit", **flood({"prompt": [7] * 3000})),
    Fault("scheduler-killed", "the scheduler process is killed", "PROC_DEATH", ("log", *SPANS), (), of(SCHEDULER, "process", rank=0),
          act=kill(SCHEDULER), last=True),
    Fault("oom-kill", "the kernel kills the scheduler for want of memory", "PROC_DEATH", ("log", *SPANS), ("HOST_MEM_PRESSURE",),
          of(SCHEDULER, "process", rank=0), act=oom_kill(SCHEDULER), why_not=memory.why_not, last=True),
    Fault("no-memory", "the scheduler is given no more memory: what it asks for is refused", "PROC_DEATH", ("log", *SPANS), ("HOST_MEM_PRESSURE",),
          of(SCHEDULER, "process", rank=0), act=no_memory(SCHEDULER), last=True),
    Fault("scheduler-error", "an exception in the scheduler's step", "PROC_DEATH", ("log", *SPANS), (),
          of(SCHEDULER, "process", rank=0, function="TpModelWorker.forward_batch_generation", log_record=ERROR_LINE),
          params=lambda rng: {"text": ERROR_TEXT, "max_hits": 1, "seconds": 5.0},
          act=order("forward", "raise"), last=True),
    *look_alikes(HTTP, (1, 3), (450, 620), 12, (12, 20), (40, 24)),
    Fault("healthy-tp", "nothing, on two ranks", "NOT_A_FAULT", options=TP2),
    Fault("slow-operator-tp", "the MLP of one layer multiplies more on one of two ranks", **slow_mlp(1, "scheduler_TP1"), options=TP2),
    Fault("sigstop-rank-tp", "one of two ranks is stopped while it serves", **PAUSE, visible=(*STEPS, "host"), options=TP2,
          culprit=of("scheduler_TP1", "process", rank=1), params=bursts, act=stop("scheduler_TP1")),
)}
