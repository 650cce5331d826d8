"""One running llama.cpp server on this machine, whose log lines are stamped as a collector would."""
import os
import pathlib
import sys

from lab import server as base
from lab.llamacpp import setup

HERE = pathlib.Path(__file__).resolve().parent
SLOTS = 4
CONTEXT = 4096


class Server(base.Server):
    def launch(self):
        self._stamps = self.folder / "log_arrival_ns.txt"
        command = [str(setup.python()), "-u", str(HERE / "serve.py"), str(setup.model()), str(self.port), str(SLOTS), str(CONTEXT)]
        stamped = [sys.executable, str(HERE.parent / "stamp.py"), str(self.log), str(self._stamps), *command]
        self.spawn(stamped, {**os.environ, "TMPDIR": str(self.folder / "tmp")}, self.folder / "stamp.log")

    def name_processes(self):
        # The stamping process leads the session; the server is its only child.
        self.processes = {"llama-server": next(pid for pid in self.members() if pid != self.leader())}

    def helpers(self):
        return [*super().helpers(), self.leader()]

    def mark(self):
        return self.log.stat().st_size, self._stamps.stat().st_size

    def collect(self, folder, mark, profiled):
        log_at, _ = mark
        self.copy_log(folder, log_at)
        # One stamp a line, of the lines that were copied.
        data = self.log.read_bytes()
        stamps = self._stamps.read_text().split()
        start = data[: min(self.startup_bytes, log_at)].count(b"\n")
        before = data[:log_at].count(b"\n")
        kept = stamps[:start] + stamps[before:data.count(b"\n")]
        (folder / "log_arrival_ns.txt").write_text("".join(s + "\n" for s in kept))
