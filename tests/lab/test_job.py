"""Jobs of the fault laboratory without an engine: networks, relay, control groups, the hook under a profiler, the course of a case."""
import contextlib
import json
import os
import pathlib
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from lab import casefile, cgroup, course, fault, inject, job, memory, network, procs, relay  # noqa: E402
from lab.engine import Engine  # noqa: E402
from lab.errors import LabError  # noqa: E402
from lab.fsdp import faults as fsdp_faults  # noqa: E402
from lab.guard import Guard  # noqa: E402
from lab.hookplan import HookPlan  # noqa: E402

BUSY = [sys.executable, "-c", "while True: pass"]
NO_NETWORK = network.no_namespaces() or network.no_tap() or network.no_rate()
NO_GROUPS = cgroup.why_not("cpu", "cpu.cfs_quota_us")


def namespaces(pid=None):
    """Network namespaces of this process's runs, or of a given one's."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    return {line.split()[0] for line in listed.splitlines() if line.startswith(f"tl{pid or os.getpid()}")}


def groups(controller="cpu"):
    place = cgroup.mounts().get(controller)
    return set(place.rglob("teller-lab-*")) if place else set()


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="teller-lab-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def wait(self, condition, seconds=30):
        until = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), until, "did not happen")
            time.sleep(0.02)

    def busy(self, command=BUSY, **more):
        process = subprocess.Popen(command, **more)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process


class Plain(fault.Fault):
    """A fault with what jobs ask of it."""
    change = staticmethod(lambda plan, params: None)
    failing = False

    def right_ranks(self, rank, world):
        return [rank]


class Truth(unittest.TestCase):
    def test_ranks_that_share_the_starved_processor_are_all_right(self):
        with mock.patch("os.sched_getaffinity", return_value={0, 1}):
            self.assertEqual(fsdp_faults.ALL["cpu-contention"].right_ranks(3, 4), [1, 3])
            self.assertEqual(fsdp_faults.ALL["cpu-quota"].right_ranks(3, 4), [3])
        with mock.patch("os.sched_getaffinity", return_value=set(range(8))):
            self.assertEqual(fsdp_faults.ALL["cpu-contention"].right_ranks(3, 4), [3])

    def test_a_link_between_two_ranks_has_two_ends(self):
        self.assertEqual(fsdp_faults.ALL["link-delay"].right_ranks(1, 2), [0, 1])
        self.assertEqual(fsdp_faults.ALL["link-delay"].right_ranks(1, 4), [1])


def frame(data, first=0, protocol=6, port=1, back=False, acknowledged=0, options=0):
    """An Ethernet frame with a TCP segment from `port` to 9, or back."""
    ends = ((bytes(4), port), (bytes([1] * 4), 9))
    (source, source_port), (target, target_port) = reversed(ends) if back else ends
    tcp = struct.pack("!HHIIBBHHH", source_port, target_port, first, acknowledged, 5 << 4, 0x18, 0, 0, 0) + data
    ip = struct.pack("!BBHHHBBH4s4s", 0x45 + options // 4, 0, 20 + options + len(tcp), 0, 0, 64, protocol, 0, source, target) + bytes(options)
    return bytes(12) + b"\x08\x00" + ip + tcp


class Frames(unittest.TestCase):
    def test_a_segment_is_waited_for_until_it_is_sent_again_or_acknowledged(self):
        lost = relay.Segment.of(frame(b"data", 7))
        key = (lost.sender, lost.receiver, lost.first)
        self.assertEqual((lost.first, lost.size), (7, 4))
        for passes, ends in ((frame(b"data", 7), True), (frame(b"together", 3), True), (frame(b"before", 1), False), (frame(b"after", 8), False),
                             (frame(b"data", 7, port=2), False), (frame(b"", 7), False),
                             (frame(b"", back=True, acknowledged=11), True), (frame(b"", back=True, acknowledged=7), False),
                             (frame(b"", port=2, back=True, acknowledged=11), False)):
            self.assertEqual(relay.Segment.of(passes).ends(*key), ends, passes)

    def test_sequence_numbers_wrap(self):
        lost = relay.Segment.of(frame(b"data", 2**32 - 2))
        key = (lost.sender, lost.receiver, lost.first)
        self.assertTrue(relay.Segment.of(frame(b"data", 2**32 - 2)).ends(*key))
        self.assertTrue(relay.Segment.of(frame(b"", back=True, acknowledged=2)).ends(*key))
        self.assertFalse(relay.Segment.of(frame(b"data", 1)).ends(*key))
        self.assertFalse(relay.Segment.of(frame(b"", back=True, acknowledged=2**32 - 2)).ends(*key))

    def test_other_frames_are_no_segments(self):
        self.assertEqual(relay.Segment.of(frame(b"")).size, 0)
        self.assertEqual(relay.Segment.of(frame(b"data", options=12)).size, 4)
        for other in (frame(b"data", protocol=17), frame(b"data")[:40], b"", bytes(60), frame(b"", options=24)[:60]):
            self.assertIsNone(relay.Segment.of(other))

    def test_intervals_that_touch_are_one(self):
        self.assertEqual(inject.merged([(1, 4), (2, 3), (4, 6), (8, 9)]), [[1, 6], [8, 9]])
        self.assertEqual(inject.merged([]), [])


@unittest.skipIf(NO_NETWORK, f"SKIPPED: {NO_NETWORK}")
class Networks(Folder):
    def network(self, guard, relayed=None):
        engine = Engine(guard, self.folder, Plain("x", "", "NOT_A_FAULT"))
        engine.link = HookPlan(self.folder / "link")
        net = network.Network(guard, 2, relayed)
        self.addCleanup(net.remove)
        self.addCleanup(engine.stop)
        net.make(engine)
        return net, engine

    def echo(self, net):
        """Round trips between both ranks: a function that measures one of them in seconds, or gives None when it takes longer than 5 s."""
        serve = ("import socket\ns = socket.create_server(('0.0.0.0', 9))\nprint('up', flush=True)\nc, _ = s.accept()\n"
                 "c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)\nwhile (b := c.recv(65536)): c.sendall(b)\n")
        ask = ("import socket, sys, time\nc = socket.create_connection((sys.argv[1], 9))\nc.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)\n"
               "for line in sys.stdin:\n    t = time.monotonic()\n    n = int(line)\n    c.sendall(bytes(n))\n"
               "    while n: n -= len(c.recv(65536))\n    print(time.monotonic() - t, flush=True)\n")
        server = subprocess.Popen(net.inside(1, [sys.executable, "-c", serve]), stdout=subprocess.PIPE, text=True)
        self.assertEqual(server.stdout.readline(), "up\n")
        client = subprocess.Popen(net.inside(0, [sys.executable, "-c", ask, net.address(1)]), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True)
        for process in (server, client):
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    self.addCleanup(pipe.close)

        def once(size=64):
            client.stdin.write(f"{size}\n")
            client.stdin.flush()
            return float(client.stdout.readline())
        return once

    def test_ranks_reach_each_other_and_have_hosts_of_their_own(self):
        with Guard() as guard:
            net, _ = self.network(guard)
            self.assertLess(self.echo(net)(), 5)
            name = subprocess.run(net.inside(1, ["uname", "-n"]), capture_output=True, text=True).stdout
            self.assertEqual(name, "node-1\n")
            self.assertNotEqual(socket.gethostname(), "node-1")
            self.assertEqual(len(namespaces()), 3)
        self.assertEqual(namespaces(), set())

    def test_the_relay_delays_both_directions_while_it_is_told_to(self):
        with Guard() as guard:
            net, engine = self.network(guard, relayed=1)
            once = self.echo(net)
            once()
            now = time.time_ns()
            told = []
            orders = [{"site": "link", "effect": "delay", "ms": 60, "t0_ns": now, "t1_ns": now + 2 * 10**9}]
            worker = threading.Thread(target=lambda: told.extend(inject.hooked(engine.link, orders)))
            worker.start()
            self.wait(lambda: engine.link._table.count == 1)
            self.assertGreaterEqual(once(), 0.12)
            worker.join()
            self.assertEqual(len(told), 1)
            self.assertGreaterEqual(told[0][0], now)
            self.assertLess(min(once() for _ in range(20)), 0.06)

    def test_the_relay_loses_frames_and_says_so_and_nothing_when_none_came(self):
        with Guard() as guard:
            net, engine = self.network(guard, relayed=0)
            once = self.echo(net)
            once()
            for traffic in (True, False):
                now = time.time_ns()
                told = []
                orders = [{"site": "link", "effect": "lose", "share": 0.5, "t0_ns": now, "t1_ns": now + 10**9}]
                worker = threading.Thread(target=lambda: told.extend(inject.hooked(engine.link, orders)))
                if traffic:
                    worker.start()
                    self.wait(lambda: engine.link._table.count == 1)
                    once(500_000)
                    worker.join()
                    self.assertEqual(engine.link.begun(), len(engine.link.intervals()))  # all that was lost was sent again
                    self.assertGreaterEqual(told[0][0], now)
                    self.assertGreater(sum(end - begin for begin, end in told), 10**6)
                    self.assertTrue(all(a[1] < b[0] for a, b in zip(told, told[1:])), told)
                else:
                    os.kill(engine.helpers()[0], signal.SIGSTOP)  # no frame passes, so none can be lost
                    told.extend(inject.hooked(engine.link, orders))
                    self.assertEqual(told, [])

    def test_a_limited_link_is_slow_and_an_idle_one_is_no_fault(self):
        with Guard() as guard:
            net, _ = self.network(guard)
            once = self.echo(net)
            once(500_000)
            told = []
            worker = threading.Thread(target=lambda: told.extend(inject.link_rate(net.ends(1), time.time_ns(), 2.5, 2_000)))
            worker.start()
            time.sleep(0.3)
            self.assertGreaterEqual(once(250_000), 0.5)
            worker.join()
            self.assertEqual(len(told), 1)
            with self.assertRaisesRegex(LabError, "never held"):
                inject.link_rate(net.ends(1), time.time_ns(), 0.2, 2_000)

    def test_a_killed_run_leaves_no_namespace(self):
        code = ("import sys, time, pathlib\nfrom lab.guard import Guard\nfrom lab.network import Network\n"
                "guard = Guard()\nNetwork(guard, 2).make(None)\nprint('made', flush=True)\ntime.sleep(600)\n")
        run = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.addCleanup(run.stdout.close)
        self.assertEqual(run.stdout.readline(), "made\n")
        self.assertEqual(len(namespaces(run.pid)), 3)
        run.kill()
        run.wait()
        self.wait(lambda: not namespaces(run.pid))


@unittest.skipIf(NO_GROUPS, f"SKIPPED: {NO_GROUPS}")
class Quotas(Folder):
    def test_a_quota_is_felt_and_leaves_no_trace(self):
        process = self.busy()
        home = cgroup.home_of(process.pid, "cpu")
        with Guard() as guard:
            before = procs.stat(process.pid)[5]
            intervals = inject.cpu_quota(guard, [process.pid], time.time_ns(), 1.5, 3)  # on a busy machine, too
            used = procs.stat(process.pid)[5] - before
        self.assertGreaterEqual(len(intervals), 5)  # a stop lasts a period of 0.1 s, or two
        self.assertTrue(all(a[1] < b[0] for a, b in zip(intervals, intervals[1:])), intervals)
        stopped = sum(end - begin for begin, end in intervals) / 1e9
        length = (intervals[-1][1] - intervals[0][0]) / 1e9
        self.assertGreater(stopped, 0.8 * length)
        self.assertLess(used, 0.03 * length + 0.15)
        self.assertEqual(cgroup.home_of(process.pid, "cpu"), home)
        self.assertEqual({g for g in groups() if f"-{os.getpid()}-" in g.name}, set())

    def test_a_quota_that_stops_nobody_is_no_injection(self):
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        time.sleep(1)
        self.wait(lambda: procs.stat(process.pid)[1] == "S")
        with Guard() as guard, self.assertRaisesRegex(LabError, "never stopped"):
            inject.cpu_quota(guard, [process.pid], time.time_ns(), 0.3, 20)
        self.assertEqual({g for g in groups() if f"-{os.getpid()}-" in g.name}, set())

    def test_a_killed_run_leaves_no_group(self):
        code = ("import subprocess, sys, time\nfrom lab import inject\nfrom lab.guard import Guard\nguard = Guard()\n"
                f"child = subprocess.Popen({BUSY!r}, start_new_session=True)\nguard.session(child.pid)\nprint('go', flush=True)\n"
                "inject.cpu_quota(guard, [child.pid], time.time_ns(), 600, 20)\n")
        run = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.addCleanup(run.stdout.close)
        run.stdout.readline()
        mine = lambda: {g for g in groups() if f"-{run.pid}-" in g.name}  # noqa: E731
        self.wait(mine)
        run.kill()
        run.wait()
        self.wait(lambda: not mine())


HOLDER = [sys.executable, "-c", "held = bytearray(b'1') * (100 << 20)\nwhile True: pass"]
NO_MEMORY = memory.why_not() or memory.why_not_slow()
# Touches every page of a mapped file again and again.
READER = """import mmap, sys
with open(sys.argv[1], "rb") as file:
    pages = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
turns = 0
while True:
    for at in range(0, len(pages), 4096):
        pages[at]
    turns += 1
    print(turns, flush=True)
"""


@unittest.skipIf(NO_MEMORY, f"SKIPPED: {NO_MEMORY}")
class Memory(Folder):
    MB = 48

    def reader(self):
        path = self.folder / "weights"
        path.write_bytes(b"w" * (self.MB << 20))
        with open(path, "rb") as file:
            os.fsync(file.fileno())  # pages that are not on disk yet cannot be taken back
        process = subprocess.Popen([sys.executable, "-c", READER, str(path)], stdout=subprocess.PIPE, text=True)
        for clean in (process.stdout.close, process.wait, process.kill):
            self.addCleanup(clean)
        process.stdout.readline()
        if memory.own_file_bytes(process.pid) < self.MB << 20:
            self.skipTest("SKIPPED: files of the temporary folder are no file pages (tmpfs?)")
        threading.Thread(target=lambda: [None for _ in process.stdout], daemon=True).start()
        return process

    def nothing_left(self, pid):
        self.assertEqual({g for g in groups("memory") if f"-{pid}-" in g.name}, set())

    def test_a_limit_makes_a_process_read_its_files_again(self):
        process = self.reader()
        home = cgroup.home_of(process.pid, "memory")
        with Guard() as guard:
            before = memory.reads(process.pid)
            (begin, end), = memory.limit(guard, process.pid, time.time_ns(), 5.0, 0.5)  # the disk may be busy
            self.assertGreater(memory.reads(process.pid), before)
        self.assertGreaterEqual(end - begin, 5 * 10**9)
        self.assertEqual(cgroup.home_of(process.pid, "memory"), home)
        self.nothing_left(os.getpid())

    def test_files_that_the_kernel_passes_over_are_given_up_again(self):
        with mock.patch.object(memory, "give_up_files") as give_up, mock.patch.object(memory, "own_file_bytes", side_effect=[48, 48, 20]):
            memory.give_up_to(os.getpid(), 24)
        self.assertEqual(give_up.call_count, 3)
        with mock.patch.object(memory, "give_up_files") as give_up, mock.patch.object(memory, "own_file_bytes", return_value=48):
            memory.give_up_to(os.getpid(), 24)  # they stay: what comes of it is looked at by who asked
        self.assertEqual(give_up.call_count, memory.GIVE_UP_TRIES)

    def test_a_process_that_is_gone_is_said(self):
        process = self.busy()
        process.kill()
        process.wait()
        for attempt in (memory.own_file_bytes, memory.give_up_files, memory.reads):
            with self.assertRaisesRegex(LabError, "is gone"):
                attempt(process.pid)

    def test_a_process_without_files_of_its_own_is_left_alone(self):
        with Guard() as guard, self.assertRaisesRegex(LabError, "would not slow it"):
            memory.limit(guard, self.busy().pid, time.time_ns(), 1.0, 0.5)
        self.nothing_left(os.getpid())

    def test_a_limit_that_is_not_felt_is_no_injection(self):
        process = self.reader()
        process.send_signal(signal.SIGSTOP)  # it touches nothing
        self.addCleanup(process.send_signal, signal.SIGCONT)
        with Guard() as guard, self.assertRaisesRegex(LabError, "it was not felt"):
            memory.limit(guard, process.pid, time.time_ns(), 0.3, 0.5)
        self.nothing_left(os.getpid())

    def test_the_kernel_kills_the_process_and_nobody_else(self):
        process, bystander = self.busy(HOLDER), self.busy()
        self.wait(lambda: int(pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096 > 100 << 20)
        with Guard() as guard:
            (begin, end), = memory.kill(guard, process.pid, time.time_ns())
        self.assertGreater(end, begin)
        self.assertEqual(process.wait(), -signal.SIGKILL)
        self.assertIsNone(bystander.poll())
        self.nothing_left(os.getpid())

    def test_a_killed_run_leaves_no_group_and_no_neighbour(self):
        code = ("import subprocess, time\nfrom lab import memory\nfrom lab.guard import Guard\nguard = Guard()\n"
                f"child = subprocess.Popen({BUSY!r}, start_new_session=True)\nguard.session(child.pid)\nprint('go', flush=True)\n"
                "memory.kill(guard, child.pid, time.time_ns() + 600 * 10**9)\n")
        run = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.addCleanup(run.stdout.close)
        run.stdout.readline()
        mine = lambda: {g for g in groups("memory") if f"-{run.pid}-" in g.name}  # noqa: E731
        self.wait(mine)
        run.kill()
        run.wait()
        self.wait(lambda: not mine())


class Refusals(Folder):
    def test_a_process_that_asks_for_memory_ends(self):
        process = self.busy([sys.executable, "-c", "import time\nheld = []\nprint(1, flush=True)\nwhile True: held.append(bytearray(1 << 20)); time.sleep(0.05)"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(process.stdout.close)
        process.stdout.readline()
        (begin, end), = memory.refuse(process.pid, time.time_ns())
        self.assertGreater(end, begin)
        self.assertEqual(process.wait(), 1)  # Python's own MemoryError, no signal

    def test_a_process_that_asks_for_none_lives_and_has_its_limit_back(self):
        process = self.busy([sys.executable, "-c", "print(1, flush=True)\nwhile True: pass"], stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        process.stdout.readline()
        usual = resource.prlimit(process.pid, resource.RLIMIT_AS)
        with mock.patch.object(memory, "REFUSE_S", 0.3), self.assertRaisesRegex(LabError, "lives on without"):
            memory.refuse(process.pid, time.time_ns())
        self.assertIsNone(process.poll())
        self.assertEqual(resource.prlimit(process.pid, resource.RLIMIT_AS), usual)

    def test_a_process_that_is_gone_is_said(self):
        process = subprocess.Popen([sys.executable, "-c", ""])
        process.wait()
        with self.assertRaisesRegex(LabError, "is gone"):
            memory.refuse(process.pid, time.time_ns())


class Stops(Folder):
    def test_a_process_is_stopped_only_while_it_computes(self):
        process = subprocess.Popen([sys.executable, "-c", "import sys\nprint(1, flush=True)\nsys.stdin.read()\nwhile True: pass"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for clean in (process.wait, process.kill, process.stdout.close):
            self.addCleanup(clean)
        process.stdout.readline()
        self.wait(lambda: procs.stat(process.pid)[1] == "S")
        stops = []
        worker = threading.Thread(target=lambda: stops.extend(inject.stop_bursts(process.pid, time.time_ns(), [[0.0, 0.1]], running=True)))
        worker.start()
        time.sleep(0.5)
        self.assertEqual(procs.stat(process.pid)[1], "S")
        told = time.time_ns()
        process.stdin.close()
        worker.join()
        self.assertGreater(stops[0][0], told)

    def test_one_that_never_computes_is_not_stopped(self):
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait(lambda: procs.stat(process.pid)[1] == "S")
        time.sleep(1)
        with self.assertRaisesRegex(LabError, "did not compute"):
            inject.until_running(process.pid, limit_s=0.5)

    def test_a_kill_is_over_when_the_process_is(self):
        process = self.busy()
        intervals = inject.kill(process.pid, time.time_ns())
        self.assertEqual(procs.stat(process.pid)[1], "Z")
        self.assertGreater(intervals[0][1], intervals[0][0])


class LateEffects(Folder):
    def test_an_effect_that_outlasts_its_order_is_waited_for(self):
        plan = HookPlan(self.folder / "plan")
        now = time.time_ns()

        def begin_late():
            plan._table.orders[0].hits += 1
            time.sleep(1.5)
            with open(f"{plan.path}.done", "a") as done:
                done.write(json.dumps({"site": "x", "t0_ns": now, "t1_ns": time.time_ns()}) + "\n")
        worker = threading.Timer(0.1, begin_late)
        worker.start()
        told = inject.hooked(plan, [{"site": "x", "effect": "sleep", "t0_ns": now, "t1_ns": now + 3 * 10**8}], settle_s=0.1)
        worker.join()
        self.assertEqual(len(told), 1)


class HookUnderProfiler(Folder):
    """A profiler with stacks must see nothing of the hook but frames that look like the wrapped function."""
    MODULE = "class PreTrainedTokenizerBase:\n    prefix = 'layers.1.mlp'\n    def __call__(self, text):\n        return text\n"

    def events(self, order):
        (self.folder / "transformers").mkdir(exist_ok=True)
        (self.folder / "transformers" / "__init__.py").write_text("")
        (self.folder / "transformers" / "tokenization_utils_base.py").write_text(self.MODULE)
        plan = HookPlan(self.folder / "plan")
        now = time.time_ns()
        plan.order([{"site": "tokenizer", "t0_ns": now, "t1_ns": now + 10**12, **order}] if order else [])
        code = textwrap.dedent("""
            import sys
            from transformers.tokenization_utils_base import PreTrainedTokenizerBase
            one, seen = PreTrainedTokenizerBase(), []
            def watch(frame, event, what):
                if event == "call":
                    seen.append(f"{frame.f_code.co_filename.rsplit('/')[-1]}:{frame.f_code.co_name}")
                elif event == "c_call":
                    seen.append(f"builtin:{what.__name__}")
            sys.setprofile(watch)
            try:
                one("x")
            except RuntimeError:
                pass
            sys.setprofile(None)
            print(sorted(set(seen) - {"builtin:setprofile"}))
            """)
        env = {**os.environ, "PYTHONPATH": f"{ROOT / 'lab' / 'hook'}:{self.folder}", "SITE_PLAN": str(plan.path)}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip(), plan.intervals()

    def test_no_effect_shows(self):
        for order in (None, {"effect": "spin", "ms": 5}, {"effect": "sleep", "ms": 5}, {"effect": "collect", "objects": 1000},
                      {"effect": "skip"}, {"effect": "twice"}, {"effect": "raise", "text": "x"}):
            with self.subTest(order=order):
                seen, done = self.events(order)
                self.assertEqual(seen, "['tokenization_utils_base.py:__call__']")
                self.assertEqual(len(done), 1 if order else 0)

    def test_an_order_for_another_place_does_nothing(self):
        self.assertEqual(len(self.events({"effect": "spin", "ms": 1, "place": "layers.2"})[1]), 0)
        self.assertEqual(len(self.events({"effect": "spin", "ms": 1, "place": "layers.1"})[1]), 1)


RANK = """
import json, sys, time
plan, rank = json.load(open(sys.argv[1])), int(sys.argv[2])
if plan.get("dies") == rank:
    print("cannot load weights", flush=True)
    sys.exit(3)
with open(f"{plan['folder']}/steps{rank}.jsonl", "w", buffering=1) as notes:
    for n in range(plan["steps"]):
        notes.write(json.dumps({"step": n, "request": n // 4, "name": "decode", "profiled": n >= 2, "t0_ns": time.time_ns()}) + "\\n")
        time.sleep(0.1)
        notes.write(json.dumps({"step": n, "t1_ns": time.time_ns()}) + "\\n")
        print("step", n, flush=True)
open(f"{plan['folder']}/rank{rank}.json.gz", "w").write("{}")
"""


class FakeJob(job.Job):
    dies = None

    def make_plan(self, seed, rng, fault, params, profile):
        return {"world_size": 2, "steps": 12, "folder": str(self.folder), "profile": {"active": 10}, "explained": [], "told": {}, "fault_step": 4, "relay": False,
                "dies": self.dies}

    def make_hooks(self):
        pass

    def command(self, rank):
        return [sys.executable, "-c", RANK, str(self.folder / "plan.json"), str(rank)], dict(os.environ)


class DyingJob(FakeJob):
    dies = 1


class MeetingJob(FakeJob):
    """Ranks that listen at the port of their meeting, each at its own address."""

    def command(self, rank):
        listen = f"import socket\nmeeting = socket.socket()\nmeeting.bind(('0.0.0.0', {self.port}))\nmeeting.listen()\n"
        return [sys.executable, "-c", listen + RANK, str(self.folder / "plan.json"), str(rank)], dict(os.environ)


class FillingJob(FakeJob):
    """Rank 0 fills its disk after some steps."""

    def command(self, rank):
        fill = "\nwith open(f\"{plan['folder']}/more\", 'wb', buffering=0) as more:\n    while True: more.write(b'x' * 65536)\n"
        return [sys.executable, "-c", RANK + (fill if rank == 0 else ""), str(self.folder / "plan.json"), str(rank)], dict(os.environ)


def run_for_ever(folder):
    """For a process of its own: a case whose ranks have far more steps than anybody waits for."""
    class Endless(FakeJob):
        def make_plan(self, *args):
            return {**super().make_plan(*args), "steps": 10**6, "fault_step": 10**5}
    kind = fsdp_faults.JobFault("stop", "", "RUNTIME_PAUSE", culprit=casefile.culprit(layer="process"), act=lambda *_: [])
    course.Runner(fault.Stack("fake", "1", "", Ready, {"stop": kind}, Endless), say=lambda text: print(text, flush=True)).run([("stop", 1, folder)])


class Ready:
    @staticmethod
    def is_ready():
        return True


@unittest.skipIf(network.no_namespaces(), f"SKIPPED: {network.no_namespaces()}")
class Course(Folder):
    def run_case(self, kind, engine):
        stack = fault.Stack("fake", "1", "", Ready, {kind.kind: kind}, engine)
        course.Runner(stack, say=lambda text: None).run([(kind.kind, 1, self.folder / "case")])
        return json.loads((self.folder / "case" / "label.json").read_text())

    def fault(self, **more):
        base = {"kind": "stop", "about": "", "fault_class": "RUNTIME_PAUSE", "culprit": casefile.culprit(layer="process"),
                "act": lambda scene, p, at_ns: inject.stop_bursts(scene.engine.processes[f"rank{p['rank']}"], at_ns, [[0.0, 0.4]])}
        return fsdp_faults.JobFault(**{**base, **more})

    def nothing_left(self):
        self.assertEqual(namespaces(), set())
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name.startswith(".")], [])

    def test_a_case_has_traces_logs_and_steps_under_the_fault(self):
        label = self.run_case(self.fault(), FakeJob)
        case = self.folder / "case"
        self.assertEqual(sorted(p.name for p in (case / "traces").iterdir()), ["rank0.json.gz", "rank1.json.gz"])
        self.assertEqual(sorted(p.name for p in (case / "logs").iterdir()), ["rank0.log", "rank1.log"])
        self.assertEqual(label["world_size"], 2)
        self.assertIn(label["culprit"]["rank"], (0, 1))
        self.assertEqual(label["accept_ranks"], [label["culprit"]["rank"]])
        self.assertEqual(label["victims"], [1 - label["culprit"]["rank"]])
        (begin, end), = label["intervals_ns"]
        self.assertTrue(label["abnormal_steps"])
        for step in label["abnormal_steps"]:
            self.assertTrue(any(a < end and b > begin for a, b in step["ranks"]))
        self.assertFalse((case / "requests.jsonl").exists())
        self.nothing_left()

    def test_an_engine_that_dies_at_its_start_is_one_line_and_no_case(self):
        with self.assertRaises(LabError) as caught:
            self.run_case(self.fault(), DyingJob)
        self.assertIn("rank1 ended with status 3", str(caught.exception))
        self.assertIn("cannot load weights", str(caught.exception))
        self.assertEqual(str(caught.exception).count("\n"), 0)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.nothing_left()

    def test_a_port_in_use_outside_disturbs_no_rank(self):
        with socket.socket() as other:
            other.bind(("0.0.0.0", 0))
            other.listen()
            stack = fault.Stack("fake", "1", "", Ready, {"stop": self.fault()}, MeetingJob)
            course.Runner(stack, port=other.getsockname()[1], say=lambda text: None).run([("stop", 1, self.folder / "case")])
        self.assertTrue((self.folder / "case" / "label.json").exists())
        self.nothing_left()

    def small_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True).returncode:
            self.skipTest("SKIPPED: no permission to mount a small disk")
        self.addCleanup(subprocess.run, ["umount", str(disk)], check=False)
        return disk

    def test_a_full_disk_under_the_ranks_is_said_and_leaves_nothing(self):
        disk = self.small_disk()
        self.addCleanup(setattr, tempfile, "tempdir", tempfile.tempdir)
        tempfile.tempdir = str(disk)
        with self.assertRaisesRegex(LabError, "no space left for .*: set TMPDIR"):
            self.run_case(self.fault(), FillingJob)
        self.assertEqual(list(disk.iterdir()), [])
        self.assertFalse((self.folder / "case").exists())
        self.nothing_left()

    def test_a_full_disk_under_the_case_leaves_no_case_that_looks_whole(self):
        disk = self.small_disk()
        with open(disk / "other", "wb", buffering=0) as other, contextlib.suppress(OSError):
            while True: other.write(b"x" * 4096)
        stack = fault.Stack("fake", "1", "", Ready, {"stop": self.fault()}, FakeJob)
        with self.assertRaises((LabError, OSError)) as caught:
            course.Runner(stack, say=lambda text: None).run([("stop", 1, disk / "case")])
        self.assertIn("No space left", str(caught.exception))
        self.assertEqual([p.name for p in disk.iterdir()], ["other"])
        self.nothing_left()

    def test_a_run_that_is_killed_half_way_leaves_nothing(self):
        temporary = self.folder / "tmp"
        temporary.mkdir()
        code = f"from tests.lab.test_job import run_for_ever\nrun_for_ever({str(self.folder / 'case')!r})\n"
        run = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               env={**os.environ, "TMPDIR": str(temporary)})
        self.addCleanup(run.stdout.close)
        self.wait(lambda: list(temporary.glob("*/steps1.jsonl")))
        self.assertEqual([p.name.startswith(".case.partial") for p in self.folder.iterdir() if p != temporary], [True])
        ranks = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and str(temporary) in procs.command(pid)]
        self.assertGreaterEqual(len(ranks), 2)
        run.kill()
        run.wait()
        self.wait(lambda: not namespaces(run.pid) and not list(temporary.iterdir()))
        self.wait(lambda: all(procs.stat(pid) is None or procs.stat(pid)[1] == "Z" for pid in ranks))
        self.assertEqual(list(self.folder.iterdir()), [temporary])

    def test_a_fault_that_touches_no_profiled_step_is_no_case(self):
        late = self.fault(act=lambda scene, p, at_ns: [[at_ns + 10**10, at_ns + 10**10 + 1]])
        with self.assertRaisesRegex(LabError, "no profiled step"):
            self.run_case(late, FakeJob)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.nothing_left()

    def test_a_fault_that_cannot_be_made_here_is_said_before_anything_starts(self):
        with self.assertRaisesRegex(LabError, "^stop cannot be made here: no moon$"):
            self.run_case(self.fault(why_not=lambda: "no moon"), DyingJob)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_fault_that_never_happened_is_no_case(self):
        with self.assertRaisesRegex(LabError, "^stop never took effect$"):
            self.run_case(self.fault(act=lambda scene, p, at_ns: []), FakeJob)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.nothing_left()


@unittest.skipIf(network.no_namespaces(), f"SKIPPED: {network.no_namespaces()}")
class NoPermission(Folder):
    def test_list_says_why_and_what_would_help(self):
        """Root without any of its capabilities may do no more than others."""
        done = subprocess.run(["setpriv", "--inh-caps=-all", "--bounding-set=-all", sys.executable, "-m", "lab", "list"], cwd=ROOT,
                              capture_output=True, text=True, env={**os.environ, "TELLER_LAB_HOME": str(self.folder)})
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = iter(done.stdout.partition("fsdp:")[2].splitlines()[1:])
        for kind in fsdp_faults.ALL:
            self.assertRegex(next(lines), rf"^  {kind} .*not here: .*root")

    def test_a_case_is_refused_before_anything_starts(self):
        code = f"from tests.lab.test_job import run_for_ever\nrun_for_ever({str(self.folder / 'case')!r})\n"
        done = subprocess.run(["setpriv", "--inh-caps=-all", "--bounding-set=-all", sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.splitlines()[-1], r"LabError: stop cannot be made here: no network namespaces \(.*\): run it as root$")
        self.assertNotIn("starting", done.stdout)
        self.assertEqual(list(self.folder.iterdir()), [])


class Steps(Folder):
    def steps(self, *ranks):
        for rank, lines in enumerate(ranks):
            (self.folder / f"steps{rank}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        with Guard() as guard:
            engine = FakeJob(guard, self.folder, None, Plain("x", "", "NOT_A_FAULT"))
            return job.Steps(engine, {"world_size": len(ranks)})

    @staticmethod
    def lines(*times, start=0):
        out = []
        for n, (begin, end) in enumerate(times):
            out.append({"step": n, "request": 0, "name": "s", "profiled": n >= start, "t0_ns": begin})
            if end:
                out.append({"step": n, "t1_ns": end})
        return out

    def test_a_step_counts_with_the_gap_before_it(self):
        steps = self.steps(self.lines((0, 100), (200, 300), (300, 400)))
        abnormal, touched = steps.under([[110, 190]])
        self.assertEqual(([s["index"] for s in abnormal], touched), ([1], []))
        abnormal, touched = steps.under([[290, 310]])
        self.assertEqual(([s["index"] for s in abnormal], touched), ([], [1, 2]))

    def test_steps_are_numbered_from_the_first_profiled_one(self):
        steps = self.steps(self.lines((0, 100), (100, 200), (200, 300), start=1))
        self.assertEqual([s["annotation"] for s in steps.all], ["s", "s"])
        self.assertEqual([s["index"] for s in steps.under([[100, 300]])[0]], [0, 1])

    def test_a_step_that_a_rank_never_finished_has_failed(self):
        steps = self.steps(self.lines((0, 100), (100, 200), (200, 300)), self.lines((0, 100), (100, None)))
        self.assertEqual(steps.failed, 1)
        abnormal, _ = steps.under([[150, 151]])
        self.assertEqual([(s["index"], s["ranks"]) for s in abnormal], [(1, [[100, 200], [100, None]])])


if __name__ == "__main__":
    unittest.main()
