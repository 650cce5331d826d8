"""The stacks that the laboratory knows."""
from lab.errors import LabError
from lab.fault import Stack
from lab.fsdp import faults as fsdp_faults
from lab.fsdp import job as fsdp_job
from lab.fsdp import setup as fsdp_setup
from lab.llamacpp import faults as llamacpp_faults
from lab.llamacpp import server as llamacpp_server
from lab.llamacpp import setup as llamacpp_setup
from lab.sglang import faults as sglang_faults
from lab.sglang import server as sglang_server
from lab.sglang import setup as sglang_setup
from lab.vllm import faults as vllm_faults
from lab.vllm import server as vllm_server
from lab.vllm import setup as vllm_setup

ALL = {stack.name: stack for stack in (
    Stack("vllm", f"vllm {vllm_setup.VERSION} (cpu), torch 2.13.0", "tiny", vllm_setup, vllm_faults.ALL, vllm_server.Server),
    Stack("sglang", f"sglang {sglang_setup.VERSION} (cpu), torch 2.14.1", "tiny", sglang_setup, sglang_faults.ALL, sglang_server.Server,
          id_field="rid"),
    Stack("fsdp", f"torch {fsdp_setup.VERSION} (gloo)", "", fsdp_setup, fsdp_faults.ALL, fsdp_job.TorchJob),
    Stack("llamacpp", llamacpp_setup.VERSION, "smollm2", llamacpp_setup, llamacpp_faults.ALL, llamacpp_server.Server, rate=1.2),
)}


def no_such_fault(kind, names):
    """The error for a fault that none of these stacks can have."""
    asked = ", ".join(names)
    others = [name for name, stack in ALL.items() if kind in stack.faults]
    if others:
        return LabError(f"{asked} cannot have \"{kind}\", only {', '.join(others)} can; ./dev lab list shows what each can have")
    return LabError(f"unknown fault \"{kind}\"; ./dev lab list shows what {asked} can have")
