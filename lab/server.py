"""A server under test: one process group of its own, on one port of this machine."""
import http.client
import pathlib
import socket
import subprocess
import time

from lab import procs
from lab.errors import LabError
from lab.hookplan import HookPlan

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
    """What all stacks share. A stack says how it starts and what it leaves behind.

    `processes`: name -> pid of what serves, as host counters and labels name it. `folder` is the server's own; it goes with it.
    """
    health = "/health"
    world_size = 1
    profiler = None  # (path that starts it, path that stops it) where the server has one

    def __init__(self, guard, folder, port, fault):
        self.folder = pathlib.Path(folder)
        self.options = fault.options
        self.log = self.folder / "server.log"
        self._guard = guard
        if port:
            check_free(port)
        self.port = port or free_port()
        self.hook = HookPlan(self.folder / "plan.json")
        self.processes = {}
        self.startup_bytes = 0
        self._process = None
        self._helpers = []

    def start(self):
        (self.folder / "tmp").mkdir()
        self.launch()
        self._wait()
        self.name_processes()
        self.startup_bytes = self.log.stat().st_size

    def launch(self):
        """Starts helpers and server (`spawn`)."""
        raise NotImplementedError

    def name_processes(self):
        raise NotImplementedError

    def mark(self):
        """Where the server's outputs stand now; given back to `collect`."""
        raise NotImplementedError

    def collect(self, folder, mark, profiled):
        """Puts what the server wrote since the mark into a case's folder."""
        raise NotImplementedError

    def spawn(self, command, env, log=None, helper=False):
        """Starts a process in a session of its own. The one that is no helper is the server."""
        with open(log or self.log, "wb") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=env,
                                       start_new_session=True)
        process.began = self._guard.session(process.pid)
        if helper:
            self._helpers.append(process)
        else:
            self._process = process
        return process

    def members(self):
        return procs.members(self._process.pid, self._process.began)

    def leader(self):
        return self._process.pid

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
        return self._process.poll() is None and all((procs.stat(pid) or ("", "Z"))[1] != "Z" for pid in self.processes.values())

    def _wait(self):
        until = time.monotonic() + START_LIMIT_S
        while self.call("GET", self.health) != 200:
            if self._process.poll() is not None:
                raise LabError(f"the server died at its start; the end of its log:\n{self.tail()}")
            if time.monotonic() > until:
                raise LabError(f"the server did not answer within {START_LIMIT_S} s; the end of its log:\n{self.tail()}")
            time.sleep(0.2)

    def helpers(self):
        """Pids that belong to the laboratory."""
        return [process.pid for process in self._helpers]

    def tail(self, lines=12):
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def copy_log(self, folder, since):
        """The server's start and what it wrote since then."""
        with open(self.log, "rb") as source, open(folder / "server.log", "wb") as out:
            out.write(source.read(min(self.startup_bytes, since)))
            source.seek(since)
            while block := source.read(1 << 20):
                out.write(block)

    def stop(self):
        """Ends server and helpers. True when nothing is left."""
        done = True
        for process, patience in ((self._process, 5), *((p, 0) for p in self._helpers)):
            if process is not None:
                done &= procs.end_session(process.pid, process.began, patience_s=patience)
                process.wait()
        return done
