"""One run of the torch service: what its ranks are given, drawn from the seed, and how a rank is launched."""
import os
import pathlib
import random

from lab import job, procs
from lab.fsdp import setup
from lab.hookplan import HookPlan

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SIZES = {"layers": 4, "dim": 192, "heads": 8, "hidden": 576, "vocab": 2048, "context": 2048}
MODES = ("tp", "fsdp", "fsdp2")
BEFORE, AFTER = 4, 4             # steps before and after the profiled ones
PROFILED = {False: 60, True: 24}  # steps, by whether Python frames are recorded


def shape(rng, options):
    """What a run looks like. It is drawn alike for every fault: nothing about the files of a case may tell its fault. `options`: choices
    that a fault leaves for some of it."""
    choices = {"mode": MODES, "world_size": (2, 2, 2, 4), "with_stack": (True, False, False), "log_format": ("plain", "vllm", "iso"),
               "relay": (True, False, False), **dict(options)}
    return {name: rng.choice(some) for name, some in choices.items()}


def requests(rng, world, steps, same):
    """Requests whose steps are at least as many as asked for. `same`: all ranks get the same prompts (tensor parallel)."""
    out, count = [], 0
    while count < steps:
        length = rng.randint(24, 64)
        lengths = [length] * world if same else [max(8, length + rng.randint(-4, 4)) for _ in range(world)]
        out.append({"batch": 2, "prompt_len": lengths, "decode": rng.randint(7, 12)})
        count += out[-1]["decode"] + 1
    return out


class TorchJob(job.Job):
    def make_plan(self, seed, rng, fault, params, profile):
        told = shape(random.Random(f"{seed}/{fault.kind}/shape"), fault.options)
        world = told["world_size"]
        draw = random.Random(f"{seed}/{fault.kind}/requests")
        wait, active = BEFORE + draw.randint(0, 6), PROFILED[told["with_stack"]]
        plan = {**told, "seed": seed, "model": SIZES, "timeout_s": fault.timeout_s, "folder": str(self.folder),
                "requests": requests(draw, world, wait + active + AFTER, told["mode"] == "tp"), "explained": [],
                "fault_step": wait + int(active * rng.uniform(0.3, 0.5)), "told": told,
                "profile": {"wait": wait, "active": active, "with_stack": told["with_stack"], "write_at_once": False,
                            "folder": str(self.folder)}}
        fault.change(plan, params)
        if not profile:
            plan["profile"] = None
        return plan

    def make_hooks(self):
        self.hooks = [HookPlan(self.folder / f"orders{rank}") for rank in range(self.plan["world_size"])]
        self.link = HookPlan(self.folder / "link")

    def command(self, rank):
        env = {"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8", "HOME": str(self.folder), "TMPDIR": str(self.folder / "tmp"),
               "PYTHONPATH": f"{ROOT / 'lab' / 'hook'}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1", "SITE_PLAN": str(self.hooks[rank].path),
               "SITE_PRODUCT": str(setup.plugin()), "MASTER_ADDR": self.network.address(0), "MASTER_PORT": str(self.port),
               "GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "INFO"}
        return ["taskset", "-c", str(procs.processor_of(rank)), str(setup.python()), "-u", "-m", "lab.fsdp.serving",
                str(self.folder / "plan.json"), str(rank)], env
