"""One running vLLM server on this machine, with its span receiver."""
from lab import procs, traced
from lab.vllm import setup

TITLE = "VLLM::"  # of the processes that the server starts


def name_of(pid):
    title = procs.command(pid)
    if not title.startswith(TITLE):
        return None
    name = title.removeprefix(TITLE).split()[0]
    return "EngineCore" if name.startswith("EngineCore") else name


class Server(traced.Server):
    """Options: `kv_tokens`, the size of the KV cache; `tp`, the number of ranks."""

    def __init__(self, guard, folder, port, fault):
        super().__init__(guard, folder, port, fault)
        self.world_size = dict(self.options).get("tp", 1)

    def launch(self):
        self.start_receiver(setup.python())
        env = {**self.environment(), "VLLM_TARGET_DEVICE": "cpu", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1",
               "OTEL_BSP_SCHEDULE_DELAY": "500", "VLLM_CUSTOM_SCOPES_FOR_PROFILING": "1", "VLLM_RPC_BASE_PATH": str(self.folder / "tmp")}
        profiler = f'{{"profiler":"torch","torch_profiler_dir":"{self.traces}","torch_profiler_with_stack":false}}'
        command = [str(setup.home() / "venv" / "bin" / "vllm"), "serve", str(setup.home() / "model"), "--served-model-name", "tiny",
                   "--host", "127.0.0.1", "--port", str(self.port), "--dtype", "float32", "--load-format", "dummy", "--enforce-eager",
                   "--max-model-len", "2048", "--max-num-batched-tokens", "2048", "--max-num-seqs", "24",
                   "--otlp-traces-endpoint", self.span_url, "--enable-logging-iteration-details", "--profiler-config", profiler]
        if tokens := dict(self.options).get("kv_tokens"):
            command += ["--num-gpu-blocks-override", str(tokens // 128), "--block-size", "128"]
        if self.world_size > 1:
            env["VLLM_CPU_OMP_THREADS_BIND"] = "|".join(str(rank) for rank in range(self.world_size))  # one processor a rank
            command += ["--tensor-parallel-size", str(self.world_size)]
        self.spawn(command, env, self.log)

    def name_processes(self):
        workers = ["Worker"] if self.world_size == 1 else [f"Worker_TP{rank}" for rank in range(self.world_size)]
        self.processes = {"APIServer": self.leader(), **self.find_processes(name_of, ["EngineCore", *workers])}
