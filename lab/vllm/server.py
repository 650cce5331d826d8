"""One running vLLM server on this machine, with its span receiver."""
import http.client
import os
import pathlib
import socket
import subprocess
import time

from lab import procs
from lab.errors import LabError
from lab.hookplan import HookPlan
from lab.vllm import setup

LAB = pathlib.Path(__file__).resolve().parent.parent
NAMES = {"VLLM::EngineCor": "EngineCore", "VLLM::Worker": "Worker"}  # as the kernel cuts process titles
START_LIMIT_S = 300


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def check_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise LabError(f"port {port} is in use: give another with --port, or none") from error


class Server:
    """Start-up options that faults change: `kv_tokens` (size of the KV cache), None for the default."""

    def __init__(self, guard, folder, port=None, kv_tokens=None):
        self.folder = pathlib.Path(folder)
        self.kv_tokens = kv_tokens
        self.traces = self.folder / "traces"
        self.log = self.folder / "server.log"
        self.spans = self.folder / "spans.jsonl"
        self._guard = guard
        if port:
            check_free(port)
        self.port = port or free_port()
        self._span_port = free_port()
        self.hook = HookPlan(self.folder / "plan.json")
        self.processes = {}
        self.startup_bytes = 0

    def start(self):
        self.traces.mkdir()
        (self.folder / "tmp").mkdir()
        self.spans.touch()
        self._receiver = self._spawn([str(setup.python()), str(LAB / "otlp.py"), str(self._span_port), str(self.spans)],
                                     self.folder / "receiver.log", dict(os.environ))
        env = {**os.environ, "VLLM_TARGET_DEVICE": "cpu", "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1",
               "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf", "OTEL_BSP_SCHEDULE_DELAY": "500",
               "VLLM_CUSTOM_SCOPES_FOR_PROFILING": "1", "PYTHONPATH": str(LAB / "hook"), "SITE_PLAN": str(self.hook.path), "PYTHONDONTWRITEBYTECODE": "1",
               "TMPDIR": str(self.folder / "tmp"), "VLLM_RPC_BASE_PATH": str(self.folder / "tmp")}
        profiler = f'{{"profiler":"torch","torch_profiler_dir":"{self.traces}","torch_profiler_with_stack":false}}'
        command = [str(setup.home() / "venv" / "bin" / "vllm"), "serve", str(setup.home() / "model"), "--served-model-name", "tiny",
                   "--host", "127.0.0.1", "--port", str(self.port), "--dtype", "float32", "--load-format", "dummy", "--enforce-eager",
                   "--max-model-len", "2048", "--max-num-batched-tokens", "2048", "--max-num-seqs", "24",
                   "--otlp-traces-endpoint", f"http://127.0.0.1:{self._span_port}/v1/traces", "--enable-logging-iteration-details",
                   "--profiler-config", profiler]
        if self.kv_tokens:
            command += ["--num-gpu-blocks-override", str(self.kv_tokens // 128), "--block-size", "128"]
        self._process = self._spawn(command, self.log, env)
        self._wait()
        self._name()
        self.startup_bytes = self.log.stat().st_size

    def _spawn(self, command, log, env):
        with open(log, "wb") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=env,
                                       start_new_session=True)
        process.began = self._guard.session(process.pid)
        return process

    def call(self, method, path, timeout_s=10):
        """HTTP status, or None when nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            response.read()
            return response.status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def alive(self):
        return self._process.poll() is None and all(procs.stat(pid) and procs.stat(pid)[1] != "Z" for pid in self.processes.values())

    def _wait(self):
        until = time.monotonic() + START_LIMIT_S
        while self.call("GET", "/health") != 200:
            if self._process.poll() is not None:
                raise LabError(f"the server died at its start; the end of its log:\n{self.tail()}")
            if time.monotonic() > until:
                raise LabError(f"the server did not answer within {START_LIMIT_S} s; the end of its log:\n{self.tail()}")
            time.sleep(0.3)

    def _name(self):
        self.processes = {"APIServer": self._process.pid}
        for pid in procs.members(self._process.pid, self._process.began):
            if name := NAMES.get(procs.stat(pid)[0]):
                self.processes[name] = pid
        missing = {"EngineCore", "Worker"} - set(self.processes)
        if missing:
            raise LabError(f"the server runs, but no process of it is named {' or '.join(sorted(missing))}")

    def helpers(self):
        """Processes that belong to the laboratory."""
        return [self._receiver.pid]

    def tail(self, lines=12):
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def wait_exit(self, seconds):
        try:
            self._process.wait(seconds)
            return True
        except subprocess.TimeoutExpired:
            return False

    def stop(self):
        """Ends server and receiver. True when nothing is left."""
        done = procs.end_session(self._process.pid, self._process.began, patience_s=5)
        self._process.wait()
        done &= procs.end_session(self._receiver.pid, self._receiver.began)
        self._receiver.wait()
        return done
