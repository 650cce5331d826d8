"""A server whose processes write traces of torch.profiler into a folder and send spans to a receiver of the laboratory."""
import os
import pathlib
import shutil

from lab import server as base
from lab.engine import tail
from lab.errors import LabError

LAB = pathlib.Path(__file__).resolve().parent


class Server(base.Server):
    """A stack launches with `environment()`, tells its server where `traces` and `span_url` are, and names its processes."""
    profiler = ("/start_profile", "/stop_profile")

    def start_receiver(self, python):
        """Starts the receiver of spans with the stack's own Python, which has the message types."""
        self.traces = self.folder / "traces"
        self._spans = self.folder / "spans.jsonl"
        self.traces.mkdir()
        self._spans.touch()
        port = base.free_port()
        self.spawn([str(python), str(LAB / "otlp.py"), str(port), str(self._spans)], self._quiet(), self.folder / "receiver.log", helper=True)
        self.span_url = f"http://127.0.0.1:{port}/v1/traces"

    def _quiet(self):
        return {**os.environ, "TMPDIR": str(self.folder / "tmp")}

    def environment(self):
        """Of the server: start-up hook, spans over HTTP, no hub, nothing outside of its folder."""
        return {**self._quiet(), "HF_HUB_OFFLINE": "1", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
                "PYTHONPATH": str(LAB / "hook"), "SITE_PLAN": str(self.hook.path), "PYTHONDONTWRITEBYTECODE": "1"}

    def mark(self):
        return self.log.stat().st_size, self._spans.stat().st_size, set(self.traces.iterdir())

    def collect(self, folder, mark, profiled):
        log_at, spans_at, old_traces = mark
        self.copy_log(folder, log_at)
        with open(self._spans, "rb") as source, open(folder / "spans.jsonl", "wb") as out:
            source.seek(spans_at)
            shutil.copyfileobj(source, out)
        traces = sorted(set(self.traces.iterdir()) - old_traces)
        if profiled and not traces:
            raise LabError("the profiler wrote no trace; the end of the server's log:\n" + tail(self.log, 12))
        if traces:
            (folder / "traces").mkdir()
        for trace in traces:
            shutil.move(trace, folder / "traces" / trace.name)
