"""A server under test: one process group of its own, on one port of this machine."""
import http.client
import socket
import time

from lab import procs, workload
from lab.client import LoadClient
from lab.engine import Engine, tail
from lab.errors import LabError
from lab.hookplan import HookPlan
from lab.served import DRAIN_S, ServedCase

START_LIMIT_S = 300
TITLE_LIMIT_S = 60  # a process may take its title after the server answers
WARM_REQUESTS = 6


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


class Server(Engine):
    """What all servers share. A stack says how it starts and what it leaves behind."""
    course = ServedCase
    health = "/health"
    world_size = 1

    def __init__(self, guard, folder, port, fault):
        super().__init__(guard, folder, fault)
        self.log = self.folder / "server.log"
        if port:
            check_free(port)
        self.port = port or free_port()
        self.hook = HookPlan(self.folder / "plan.json")
        self.startup_bytes = 0

    def start(self):
        (self.folder / "tmp").mkdir()
        self.launch()
        self._wait()
        self.name_processes()
        self.startup_bytes = self.log.stat().st_size

    def warm(self, stack):
        client = LoadClient(self.port, stack)
        client.start(workload.volley(0, "warm", 0.0, WARM_REQUESTS, 0.3, 40, 16, "warm"), time.time_ns())
        time.sleep(0.5 * WARM_REQUESTS)
        client.drain(DRAIN_S)

    def launch(self):
        """Starts helpers and server (`spawn`)."""
        raise NotImplementedError

    def name_processes(self):
        raise NotImplementedError

    def find_processes(self, name_of, wanted):
        """{name: pid} of the server's processes that name_of(pid) gives a name, once all wanted names are there."""
        until = time.monotonic() + TITLE_LIMIT_S
        while True:
            found = {name: pid for pid in self.members() if (name := name_of(pid))}
            missing = sorted(set(wanted) - set(found))
            if not missing:
                return found
            if time.monotonic() > until:
                raise LabError(f"the server runs, but no process of it is named {' or '.join(missing)}")
            time.sleep(0.2)

    def mark(self):
        """Where the server's outputs stand now; given back to `collect`."""
        raise NotImplementedError

    def collect(self, folder, mark, profiled):
        """Puts what the server wrote since the mark into a case's folder."""
        raise NotImplementedError

    @property
    def _process(self):
        return self._started[0]

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
                raise LabError(f"the server died at its start; the end of its log:\n{tail(self.log, 12)}")
            if time.monotonic() > until:
                raise LabError(f"the server did not answer within {START_LIMIT_S} s; the end of its log:\n{tail(self.log, 12)}")
            time.sleep(0.2)

    def copy_log(self, folder, since):
        """The server's start and what it wrote since then."""
        with open(self.log, "rb") as source, open(folder / "server.log", "wb") as out:
            out.write(source.read(min(self.startup_bytes, since)))
            source.seek(since)
            while block := source.read(1 << 20):
                out.write(block)
