"""Start-up hook: wraps a few functions of an engine when their modules are imported, without editing a file of it.

Python runs this in every process of the server because its folder is in PYTHONPATH. What to do and when stands in the file that
SITE_PLAN names (lab.hookplan); what was done is appended to the file of the same name with ".done". Wrappers are compiled under
the name and file of what they wrap, so that in a trace or traceback they look like the engine's own code.
"""
import importlib.abc
import importlib.util
import inspect
import os
import sys

# Site -> (module, class, function). A site that this version of the engine lacks is left out.
SITES = {
    "tokenizer": ("transformers.tokenization_utils_base", "PreTrainedTokenizerBase", "__call__"),
    # vLLM
    "admission": ("vllm.v1.engine.input_processor", "InputProcessor", "process_inputs"),
    "output": ("vllm.v1.engine.output_processor", "OutputProcessor", "process_outputs"),
    "engine_step": ("vllm.v1.engine.core", "EngineCoreProc", "_process_engine_step"),
    "schedule": ("vllm.v1.core.sched.scheduler", "Scheduler", "schedule"),
    "mlp": ("vllm.model_executor.models.llama", "LlamaMLP", "forward"),
    "execute": ("vllm.v1.worker.gpu_worker", "Worker", "execute_model"),
    # SGLang
    "request": ("sglang.srt.managers.tokenizer_manager", "TokenizerManager", "_create_tokenized_object"),
    "running_batch": ("sglang.srt.managers.scheduler", "Scheduler", "update_running_batch"),
    "forward": ("sglang.srt.managers.tp_worker", "TpModelWorker", "forward_batch_generation"),
    "llama_mlp": ("sglang.srt.models.llama", "LlamaMLP", "forward"),
    "detokenize": ("sglang.srt.managers.detokenizer_manager", "DetokenizerManager", "handle_batch_token_id_out"),
}

WRAPPER = '''
def {name}(*args, **kwargs):
    order = due(site, args)
    if order:
        begin = clock()
        try:
            carry_out(order, args)
        finally:
            record(order, begin)
    return inner(*args, **kwargs)
'''

WORKER = '''
def due(site, args, cache={{}}):
    try:
        stamp = os.stat(path).st_mtime_ns
    except OSError:
        return None
    if cache.get("stamp") != stamp:
        try:
            with open(path) as file:
                orders = json.load(file)
        except (OSError, ValueError):
            return None
        cache.update(stamp=stamp, orders=orders, hits={{}})
    now = clock()
    for number, order in enumerate(cache["orders"]):
        if order["site"] != site or not order["t0_ns"] <= now < order["t1_ns"]:
            continue
        place = order.get("place")
        if place and place not in getattr(getattr(args[0], "gate_up_proj", None), "prefix", ""):
            continue
        if order.get("rank", 0) != rank_here():
            continue
        if cache["hits"].get(number, 0) >= order.get("max_hits", 1 << 60):
            continue
        cache["hits"][number] = cache["hits"].get(number, 0) + 1
        return order
    return None

def rank_here():
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    return distributed.get_rank() if distributed and distributed.is_initialized() else 0

def carry_out(order, args):
    effect = order["effect"]
    until = clock() + int(order.get("ms", 0) * 1e6)
    if effect == "sleep":
        time.sleep(order["ms"] / 1e3)
    elif effect == "spin":
        while clock() < until:
            pass
    elif effect == "collect":
        keep = [[i, {{}}] for i in range(order["objects"])]
        gc.collect()
        del keep
    elif effect == "multiply":
        import torch
        one = torch.ones(192, 192)
        while clock() < until:
            torch.mm(one, one)
    elif effect == "raise":
        raise RuntimeError(order["text"])

def record(order, begin):
    line = json.dumps({{"site": order["site"], "t0_ns": begin, "t1_ns": clock(), "pid": os.getpid()}}) + "\\n"
    with open(path + ".done", "a") as file:
        file.write(line)
'''


def wrap(function, site, path):
    import functools
    import gc
    import json
    import time

    names = {"os": os, "sys": sys, "json": json, "time": time, "gc": gc, "clock": time.time_ns, "path": path, "site": site, "inner": function}
    file = inspect.getsourcefile(function) or function.__code__.co_filename
    line = function.__code__.co_firstlineno
    text = WORKER.format() + WRAPPER.format(name=function.__name__)
    exec(compile("\n" * line + text, file, "exec"), names)
    return functools.wraps(function)(names[function.__name__])


class Finder(importlib.abc.MetaPathFinder):
    def __init__(self, path):
        self.path = path
        self.wanted = {}
        for site, (module, owner, function) in SITES.items():
            self.wanted.setdefault(module, []).append((site, owner, function))

    def find_spec(self, name, path=None, target=None):
        if name not in self.wanted:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                self.after(spec.loader, name)
                return spec
        return None

    def after(self, loader, name):
        run = loader.exec_module

        def exec_module(module):
            run(module)
            for site, owner, function in self.wanted.pop(name, ()):
                cls = getattr(module, owner, None)
                inner = cls.__dict__.get(function) if cls is not None else None
                if inner is not None and hasattr(inner, "__code__"):
                    setattr(cls, function, wrap(inner, site, self.path))

        loader.exec_module = exec_module


if os.environ.get("SITE_PLAN"):
    sys.meta_path.insert(0, Finder(os.environ["SITE_PLAN"]))
