"""One running vLLM server on this machine, with its span receiver."""
from lab import procs, traced
from lab.vllm import setup

NAMES = {"VLLM::EngineCor": "EngineCore", "VLLM::Worker": "Worker"}  # as the kernel cuts process titles


class Server(traced.Server):
    """Option: `kv_tokens`, the size of the KV cache."""

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
        self.spawn(command, env, self.log)

    def name_processes(self):
        self.processes = {"APIServer": self.leader(), **self.find_processes(lambda pid: NAMES.get((procs.stat(pid) or ("",))[0]), NAMES.values())}
