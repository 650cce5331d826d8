"""One running SGLang server on this machine, with its span receiver."""
from lab import procs, traced
from lab.sglang import setup

KV_TOKENS = 16384
TITLE = "sglang::"  # of the processes that the server starts


def name_of(pid):
    title = procs.command(pid)
    return title.removeprefix(TITLE).split()[0] if title.startswith(TITLE) else None


class Server(traced.Server):
    """Options: `kv_tokens`, the size of a KV cache that is filled as if outputs were short; `tp`, the number of ranks."""
    health = "/model_info"  # /health runs a request

    def __init__(self, guard, folder, port, fault):
        super().__init__(guard, folder, port, fault)
        self.world_size = dict(self.options).get("tp", 1)

    def launch(self):
        self.start_receiver(setup.python())
        tokens = dict(self.options).get("kv_tokens")
        env = {**self.environment(), "SGLANG_USE_CPU_ENGINE": "1", "SGLANG_LOG_MS": "1", "SGLANG_TORCH_PROFILER_DIR": str(self.traces),
               "SGLANG_PROFILE_WITH_STACK": "0", "OMP_NUM_THREADS": "1"}  # one thread: the other processor is for the other processes
        command = [str(setup.python()), "-m", "sglang.launch_server", "--model-path", str(setup.home() / "model"), "--served-model-name", "tiny",
                   "--host", "127.0.0.1", "--port", str(self.port), "--device", "cpu", "--dtype", "float32", "--load-format", "dummy",
                   "--attention-backend", "torch_native", "--sampling-backend", "pytorch", "--grammar-backend", "none",
                   "--cuda-graph-backend-decode", "disabled", "--cuda-graph-backend-prefill", "disabled", "--disable-overlap-schedule",
                   "--context-length", "2048", "--max-running-requests", "24", "--max-total-tokens", str(tokens or KV_TOKENS),
                   "--skip-server-warmup", "--random-seed", "1", "--enable-metrics", "--decode-log-interval", "4",
                   "--log-requests", "--log-requests-level", "1", "--enable-trace", "--otlp-traces-endpoint", self.span_url]
        if tokens:
            env["SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION"] = "16"
            command += ["--schedule-conservativeness", "0.1"]
        if self.world_size > 1:
            # One processor a rank; without a library of its name the engine leaves NCCL alone.
            env["SGLANG_CPU_OMP_THREADS_BIND"] = "|".join(str(rank) for rank in range(self.world_size))
            env["SGLANG_NCCL_SO_PATH"] = str(self.folder / "no-nccl.so")
            command += ["--tp", str(self.world_size)]
        self.spawn(command, env, self.log)

    def name_processes(self):
        ranks = ["scheduler"] if self.world_size == 1 else [f"scheduler_TP{rank}" for rank in range(self.world_size)]
        self.processes = {"tokenizer_manager": self.leader(), **self.find_processes(name_of, [*ranks, "detokenizer"])}
