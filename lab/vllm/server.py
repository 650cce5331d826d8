"""One running vLLM server on this machine, with its span receiver."""
import os
import pathlib
import shutil

from lab import procs
from lab import server as base
from lab.errors import LabError
from lab.vllm import setup

LAB = pathlib.Path(__file__).resolve().parent.parent
NAMES = {"VLLM::EngineCor": "EngineCore", "VLLM::Worker": "Worker"}  # as the kernel cuts process titles


class Server(base.Server):
    """Option: `kv_tokens`, the size of the KV cache."""
    profiler = ("/start_profile", "/stop_profile")

    def launch(self):
        self._traces = self.folder / "traces"
        self._spans = self.folder / "spans.jsonl"
        self._traces.mkdir()
        self._spans.touch()
        span_port = base.free_port()
        temporary = {**os.environ, "TMPDIR": str(self.folder / "tmp")}
        self.spawn([str(setup.python()), str(LAB / "otlp.py"), str(span_port), str(self._spans)], temporary,
                   self.folder / "receiver.log", helper=True)
        env = {**temporary, "VLLM_TARGET_DEVICE": "cpu", "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1",
               "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf", "OTEL_BSP_SCHEDULE_DELAY": "500",
               "VLLM_CUSTOM_SCOPES_FOR_PROFILING": "1", "PYTHONPATH": str(LAB / "hook"), "SITE_PLAN": str(self.hook.path),
               "PYTHONDONTWRITEBYTECODE": "1", "VLLM_RPC_BASE_PATH": str(self.folder / "tmp")}
        profiler = f'{{"profiler":"torch","torch_profiler_dir":"{self._traces}","torch_profiler_with_stack":false}}'
        command = [str(setup.home() / "venv" / "bin" / "vllm"), "serve", str(setup.home() / "model"), "--served-model-name", "tiny",
                   "--host", "127.0.0.1", "--port", str(self.port), "--dtype", "float32", "--load-format", "dummy", "--enforce-eager",
                   "--max-model-len", "2048", "--max-num-batched-tokens", "2048", "--max-num-seqs", "24",
                   "--otlp-traces-endpoint", f"http://127.0.0.1:{span_port}/v1/traces", "--enable-logging-iteration-details",
                   "--profiler-config", profiler]
        if tokens := dict(self.options).get("kv_tokens"):
            command += ["--num-gpu-blocks-override", str(tokens // 128), "--block-size", "128"]
        self.spawn(command, env)

    def name_processes(self):
        self.processes = {"APIServer": self.leader()}
        for pid in self.members():
            if name := NAMES.get(procs.stat(pid)[0]):
                self.processes[name] = pid
        missing = {"EngineCore", "Worker"} - set(self.processes)
        if missing:
            raise LabError(f"the server runs, but no process of it is named {' or '.join(sorted(missing))}")

    def mark(self):
        return self.log.stat().st_size, self._spans.stat().st_size, set(self._traces.iterdir())

    def collect(self, folder, mark, profiled):
        log_at, spans_at, old_traces = mark
        self.copy_log(folder, log_at)
        with open(self._spans, "rb") as source, open(folder / "spans.jsonl", "wb") as out:
            source.seek(spans_at)
            shutil.copyfileobj(source, out)
        traces = sorted(set(self._traces.iterdir()) - old_traces)
        if profiled and not traces:
            raise LabError("the profiler wrote no trace; the end of the server's log:\n" + self.tail())
        if traces:
            (folder / "traces").mkdir()
        for trace in traces:
            shutil.move(trace, folder / "traces" / trace.name)
