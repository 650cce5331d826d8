"""Start-up hook: wraps a few functions of an engine when their modules are imported, without editing a file of it.

Python runs this in every process of the engine because its folder is in PYTHONPATH. What to do and when stands in memory shared
through the file that SITE_PLAN names (site_orders); what was done is appended to the file of the same name with ".done".

Nothing may give the hook away. Wrappers are compiled under the name and file of what they wrap, so that in a trace or traceback they
look like the engine's own code. And they call no Python or built-in function, which a profiler with stacks would record: orders are
fields of shared memory, and clock, sleep and writing are reached through ctypes, which profilers do not see.
"""
import ctypes
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
    # FSDP
    "fetch": ("lab.fsdp.serving.engine", "Feed", "fetch"),
    "agree": ("lab.fsdp.serving.engine", "Engine", "agree"),
    "step": ("lab.fsdp.serving.engine", "Engine", "forward"),
    "layer": ("lab.fsdp.serving.model", "Layer", "forward"),
    "product": ("lab.fsdp.serving.model", "RowParallel", "forward"),
    "reduce": ("lab.fsdp.serving.model", "RowParallel", "reduce"),
}

WRAPPER = '''
def {name}(*args, **kwargs):
    if table.count:
        clock(0, ref)
        begin = at.s * 1000000000 + at.ns
        for order in table.orders:
            if order.site != site or not order.t0_ns <= begin < order.t1_ns or order.hits >= order.max_hits:
                continue
            if order.place:
                try:
                    prefix = args[0].prefix
                except AttributeError:
                    prefix = args[0].gate_up_proj.prefix
                if order.place not in prefix:
                    continue
            if order.rank >= 0:
                distributed = getattr(modules.get("torch"), "distributed", None)
                if order.rank != (distributed.get_rank() if distributed and distributed.is_initialized() else 0):
                    continue
            order.hits += 1
            effect, now, until = order.effect, begin, begin + order.ns
            if effect == "sleep":
                rest(order.ns // 1000)
            elif effect == "spin":
                while now < until:
                    clock(0, ref)
                    now = at.s * 1000000000 + at.ns
            elif effect == "collect":
                keep = list(map(list, repeat((None,), order.objects)))
                collect()
                del keep
            elif effect == "multiply":
                import torch
                one = torch.ones(192, 192)
                while now < until:
                    torch.mm(one, one)
                    clock(0, ref)
                    now = at.s * 1000000000 + at.ns
            elif effect == "lengthen":
                lengthen(order.ns)
                result = inner(*args, **kwargs)
            elif effect == "twice":
                inner(*args, **kwargs)
            clock(0, ref)
            write(done, entry % (begin, at.s * 1000000000 + at.ns), length)
            if effect == "raise":
                raise RuntimeError(order.text)
            if effect == "lengthen":
                return result
            if effect == "skip":
                return args[-1]
            break
    return inner(*args, **kwargs)
'''


class Moment(ctypes.Structure):
    _fields_ = [("s", ctypes.c_int64), ("ns", ctypes.c_int64)]


def wrap(function, site, table, done):
    import functools
    import itertools

    at = Moment()
    here = ctypes.PyDLL(None)  # keeps the interpreter's lock, as Python code that computes does
    entry = b'{"site": "%s", "t0_ns": %%19d, "t1_ns": %%19d}\n' % site.encode()
    product = os.environ.get("SITE_PRODUCT")
    names = {"table": table, "site": site, "inner": function, "done": done, "entry": entry, "length": len(entry % (0, 0)), "at": at,
             "ref": ctypes.byref(at), "clock": here.clock_gettime, "rest": ctypes.CDLL(None).usleep, "write": here.write,
             "collect": here.PyGC_Collect, "repeat": itertools.repeat, "modules": sys.modules}
    if product:
        names["lengthen"] = ctypes.PyDLL(product).LengthenNextProduct
        names["lengthen"].argtypes = [ctypes.c_int64]
    file = inspect.getsourcefile(function) or function.__code__.co_filename
    line = function.__code__.co_firstlineno
    exec(compile("\n" * (line - 2) + WRAPPER.format(name=function.__name__), file, "exec"), names)
    return functools.wraps(function)(names[function.__name__])


class Finder(importlib.abc.MetaPathFinder):
    def __init__(self, path):
        import site_orders
        self.table = site_orders.attach(path)
        self.done = os.open(f"{path}.done", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
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
                    setattr(cls, function, wrap(inner, site, self.table, self.done))

        loader.exec_module = exec_module


if os.environ.get("SITE_PLAN"):
    sys.meta_path.insert(0, Finder(os.environ["SITE_PLAN"]))
