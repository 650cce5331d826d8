"""The fault laboratory without an engine: case writer, client truth, start-up hook, clean-up, command line."""
import contextlib
import http.server
import io
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from lab import __main__ as commands  # noqa: E402
from lab import casefile, client, host, inject, parallel, procs, served, server, stacks, standins, workload  # noqa: E402
from lab.errors import LabError  # noqa: E402
from lab.fault import until_done  # noqa: E402
from lab.guard import Guard  # noqa: E402
from lab.hookplan import HookPlan  # noqa: E402

STACK = stacks.ALL["sglang"]
SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


def every_fault():
    return [fault for stack in stacks.ALL.values() for fault in stack.faults.values()]


def label(**changes):
    base = {"is_fault": True, "fault_class": "RUNTIME_PAUSE", "accept_classes": [], "fault_kind": "stop", "t_start_ns": 10, "t_end_ns": 20,
            "stack": "vllm", "world_size": 1, "culprit": casefile.culprit(process="EngineCore", layer="process"), "victims": [],
            "intervals_ns": [[10, 20]], "observer_ns": [], "seed": 1, "params": {}, "visible_in": ["trace"], "background": {}}
    return {**base, **changes}


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="teller-lab-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def wait(self, condition, seconds=20):
        until = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), until, "did not happen")
            time.sleep(0.02)


class CaseWriter(Folder):
    def test_a_case_has_its_name_only_when_it_is_whole(self):
        target = self.folder / "case"
        with casefile.CaseFolder(target) as case:
            (case.path / "server.log").write_text("line\n")
            self.assertFalse(target.exists())
            case.finish(label(), [{"request_id": "a"}])
        self.assertEqual(sorted(p.name for p in target.iterdir()), ["label.json", "requests.jsonl", "server.log"])
        self.assertEqual(json.loads((target / "label.json").read_text())["schema"], "teller.label/1")
        self.assertEqual([p.name for p in self.folder.iterdir()], ["case"])

    def test_a_failure_leaves_nothing(self):
        for failure in (OSError(28, "No space left on device"), KeyboardInterrupt()):
            with self.assertRaises(type(failure)), casefile.CaseFolder(self.folder / "case") as case:
                (case.path / "server.log").write_text("line\n")
                raise failure
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_full_disk_at_the_last_moment_leaves_nothing(self):
        if not pathlib.Path("/dev/full").exists():
            self.skipTest("no /dev/full")
        with self.assertRaises(OSError), casefile.CaseFolder(self.folder / "case") as case:
            (case.path / "label.json").symlink_to("/dev/full")
            case.finish(label(), [])
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_an_existing_folder_is_not_touched(self):
        (self.folder / "case").mkdir()
        with self.assertRaisesRegex(LabError, "exists"), casefile.CaseFolder(self.folder / "case"):
            self.fail("must not be entered")

    def test_labels_that_say_what_cannot_be_are_refused(self):
        bad = [label(culprit=None), label(is_fault=False), label(t_end_ns=10), label(intervals_ns=[]),
               label(culprit=casefile.culprit(rank=1))]
        bad.append(label())
        del bad[-1]["seed"]
        for wrong in bad:
            with self.assertRaises(LabError):
                casefile.check_label(wrong)
        casefile.check_label(label())
        casefile.check_label(label(is_fault=False, culprit=None, t_start_ns=None, t_end_ns=None, intervals_ns=[]))


class Streamer(http.server.BaseHTTPRequestHandler):
    """Answers like a completion server: as many pieces as asked for, 20 ms apart; refuses what is negative."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if body["max_tokens"] < 0:
            self.send_error(400)
            return
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        for _ in range(body["max_tokens"]):
            self.piece({"choices": [{"text": "x"}]})
            time.sleep(0.02)
        self.piece({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": body["max_tokens"], "total_tokens": 9}})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def piece(self, content):
        self.wfile.write(b"data: " + json.dumps(content).encode() + b"\n\n")
        self.wfile.flush()

    def log_message(self, *_):
        pass


class ClientTruth(Folder):
    def test_every_request_and_every_token_is_recorded(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Streamer)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        load = client.LoadClient(server.server_address[1], STACK)
        planned = [workload.Planned("a", 0.0, "one two", 5), workload.Planned("b", 0.05, "one", 3),
                   workload.Planned("c", 0.1, "one", 3, "invalid", {"max_tokens": -1})]
        t0 = time.time_ns()
        load.start(planned, t0)
        self.wait(lambda: len(load.records()) == 3 and all("t_end_ns" in r for r in load.records()))
        self.assertEqual(load.drain(20), 0)
        a, b, c = load.records()
        self.assertEqual([a["request_id"], b["request_id"], c["request_id"]], ["a", "b", "c"])
        self.assertEqual([len(a["token_times_ns"]), len(b["token_times_ns"])], [5, 3])
        self.assertEqual(a["usage"], {"prompt_tokens": 3, "completion_tokens": 5})
        for record in (a, b):
            times = [record["t_planned_ns"], record["t_send_ns"], *record["token_times_ns"], record["t_end_ns"]]
            self.assertEqual(times, sorted(times))
            self.assertEqual(record["t_first_token_ns"], record["token_times_ns"][0])
        self.assertEqual(c["http_status"], 400)
        self.assertNotIn("t_first_token_ns", c)

    def test_a_flood_lasts_from_its_first_request_to_the_end_of_its_last(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Streamer)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        load = client.LoadClient(server.server_address[1], STACK)
        scene = served.Scene(None, None, load)
        load.start([workload.Planned("a", 0.0, "one", 1), *workload.volley(1, "r", 0.2, 3, 0.5, 3, 1, "invalid", {"max_tokens": -1})], time.time_ns())
        begin, end = until_done("invalid")(scene, {"count": 3}, 0)[0]
        records = [r for r in load.records() if r["kind"] == "invalid"]
        self.assertEqual(len(records), 3)
        self.assertEqual((begin, end), (records[0]["t_send_ns"], records[2]["t_end_ns"]))
        self.assertGreater(end - begin, 900_000_000)
        self.assertEqual(load.drain(20), 0)
        with self.assertRaisesRegex(LabError, "no request"):
            scene.wait_for("other", 1, limit_s=0)

    def test_a_server_that_is_gone_is_an_error_of_the_request(self):
        load = client.LoadClient(1, STACK)
        load.start([workload.Planned("a", 0.0, "one", 1)], time.time_ns())
        self.wait(lambda: any("t_end_ns" in r for r in load.records()))
        self.assertIn("refused", load.records()[0]["error"])

    def test_no_id_tells_what_a_request_is_for(self):
        extra = workload.volley(3, "r", 4.0, 5, 0.1, 10, 4, "invalid")
        planned = workload.merge("r", workload.steady(3, "r", 10), extra)
        self.assertEqual([p.id for p in planned], [workload.name("r", i + 1) for i in range(len(planned))])
        self.assertEqual([p.at_s for p in planned], sorted(p.at_s for p in planned))
        self.assertEqual(sum(p.kind == "invalid" for p in planned), 5)

    def test_no_second_or_two_of_load_is_without_a_request(self):
        for seed in range(50):
            at = [0.0, *(p.at_s for p in workload.steady(seed, "r", 20)), 20.0]
            self.assertLessEqual(max(b - a for a, b in zip(at, at[1:])), 1.0001)

    def test_a_seed_plans_the_same_requests_and_another_seed_others(self):
        self.assertEqual(workload.steady(3, "r", 20), workload.steady(3, "r", 20))
        self.assertNotEqual(workload.steady(3, "r", 20), workload.steady(4, "r", 20))
        quiet = workload.steady(3, "r", 20, quiet=((5, 10),))
        self.assertFalse([p for p in quiet if 5 <= p.at_s < 10])
        self.assertEqual(len({p.id for p in quiet}), len(quiet))


class Cleaning(Folder):
    def leader(self, child=True):
        """A process that leads a session, with a child in it that ignores being asked."""
        code = "import signal, subprocess, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        if child:
            code += "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        process = subprocess.Popen([sys.executable, "-c", code + "time.sleep(600)"], start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(procs.send, process.pid, signal.SIGKILL)
        return process

    def test_a_session_ends_with_all_its_members_even_stopped_ones(self):
        process = self.leader()
        began = procs.start_ticks(process.pid)
        self.wait(lambda: len(procs.members(process.pid, began)) == 2)
        os.kill(procs.members(process.pid, began)[1], signal.SIGSTOP)
        self.assertTrue(procs.end_session(process.pid, began, patience_s=0.2))
        self.assertEqual(process.wait(), -signal.SIGKILL)

    def test_a_process_of_the_same_number_and_another_start_is_left_alone(self):
        process = self.leader(child=False)
        began = procs.start_ticks(process.pid)
        self.assertTrue(procs.end_session(process.pid, began - 1))
        self.assertIsNone(process.poll())

    def test_the_guard_cleans_up_behind_a_run_that_is_killed(self):
        half = self.folder / "half"
        half.mkdir()
        code = ("import subprocess, sys, time\nfrom lab.guard import Guard\nguard = Guard()\n"
                f"guard.folder({str(half)!r})\n"
                f"child = subprocess.Popen({SLEEPER!r}, start_new_session=True)\n"
                "guard.session(child.pid)\nprint(child.pid, flush=True)\ntime.sleep(600)\n")
        run = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.addCleanup(run.stdout.close)
        child = int(run.stdout.readline())
        self.assertIsNotNone(procs.stat(child))
        run.kill()
        run.wait()
        self.wait(lambda: (procs.stat(child) or ("", "Z"))[1] == "Z" and not half.exists())

    def killed_at(self, moment):
        """Runs a case of a stand-in whose process is killed at the moment of this code; what is left in the folder."""
        temporary = self.folder / "tmp"
        temporary.mkdir()
        code = ("import os, signal, sys\nfrom lab import course, engine, fault, procs\n"
                "class Ready:\n    is_ready = staticmethod(lambda: True)\n"
                "class Sleeper(engine.Engine):\n    def __init__(self, guard, folder, port, fault):\n        super().__init__(guard, folder, fault)\n"
                "    def start(self):\n"
                f"        self.spawn({SLEEPER!r}, dict(os.environ), self.folder / 'log')\n"
                f"{moment}\n"
                "stack = fault.Stack('x', '1', '', Ready, {'a': fault.Fault('a', '', 'NOT_A_FAULT', fresh=True)}, Sleeper)\n"
                f"course.Runner(stack, nice=1, say=lambda text: None).run([('a', 1, {str(self.folder / 'case')!r})])\n")
        run = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(temporary)})
        self.addCleanup(run.stderr.close)
        self.assertEqual(run.wait(), -signal.SIGKILL, run.stderr.read().decode())
        mark = f"TMPDIR={temporary}".encode()

        def running():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                with contextlib.suppress(OSError):
                    if mark in pathlib.Path(f"/proc/{pid}/environ").read_bytes():
                        yield pid
        self.wait(lambda: not list(running()))
        temporary.rmdir()  # fails when something is in it
        return [p.name for p in self.folder.iterdir()]

    def test_a_run_that_is_killed_in_between_leaves_nothing(self):
        die = "os.kill(os.getpid(), signal.SIGKILL)"
        for name, moment in (("folder", f"make = os.mkdir\ndef mkdir(path, *args, **more):\n    make(path, *args, **more)\n    if 'teller-lab-' in str(path): {die}\n"
                                        "os.mkdir = mkdir"),
                             ("case", f"make = os.mkdir\ndef mkdir(path, *args, **more):\n    make(path, *args, **more)\n    if '.partial-' in str(path): {die}\n"
                                      "os.mkdir = mkdir"),
                             ("process", f"procs.favour = lambda *_: {die}")):
            with self.subTest(name):
                self.assertEqual(self.killed_at(moment), [])

    def test_a_set_that_is_killed_half_way_leaves_nothing(self):
        code = (f"import pathlib, time\nfrom lab.casefile import whole_set\nwith whole_set(pathlib.Path({str(self.folder / 'set')!r})) as part:\n"
                "    (part / 'case').mkdir()\n    print('half', flush=True)\n    time.sleep(600)\n")
        run = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.addCleanup(run.stdout.close)
        self.assertEqual(run.stdout.readline(), "half\n")
        self.assertEqual([p.name for p in self.folder.iterdir()], ["set.part"])
        run.kill()
        run.wait()
        self.wait(lambda: not list(self.folder.iterdir()))

    def test_a_set_that_is_killed_just_after_its_folder_was_made_leaves_nothing(self):
        code = ("import os, pathlib, signal\nfrom lab.casefile import whole_set\nmake = os.mkdir\n"
                "def mkdir(path, *args, **more):\n    make(path, *args, **more)\n    if str(path).endswith('.part'): os.kill(os.getpid(), signal.SIGKILL)\n"
                f"os.mkdir = mkdir\nwith whole_set(pathlib.Path({str(self.folder / 'set')!r})) as part:\n    pass\n")
        run = subprocess.run([sys.executable, "-c", code], cwd=ROOT)
        self.assertEqual(run.returncode, -signal.SIGKILL)
        self.wait(lambda: not list(self.folder.iterdir()))

    def test_a_set_leaves_a_folder_alone_that_another_run_made_meanwhile(self):
        part = self.folder / "set.part"
        with mock.patch("os.path.lexists", return_value=False):
            part.mkdir()
            with self.assertRaises(LabError):
                with casefile.whole_set(self.folder / "set"):
                    pass
        self.assertEqual([p.name for p in self.folder.iterdir()], ["set.part"])

    def test_the_guard_ends_what_is_left_when_a_run_ends(self):
        with Guard() as guard:
            child = subprocess.Popen(SLEEPER, start_new_session=True)
            guard.session(child.pid)
        self.assertEqual(child.wait(timeout=20), -signal.SIGKILL)


class Injectors(Folder):
    def test_a_stopped_process_runs_again_and_the_truth_is_the_stop(self):
        child = subprocess.Popen(SLEEPER)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        states = []
        watch = threading.Thread(target=lambda: [states.append(procs.stat(child.pid)[1]) or time.sleep(0.02) for _ in range(40)])
        watch.start()
        intervals = inject.stop_bursts(child.pid, time.time_ns(), [[0.05, 0.3]])
        watch.join()
        self.assertIn("T", states)
        self.wait(lambda: procs.stat(child.pid)[1] == "S")
        self.assertEqual(len(intervals), 1)
        self.assertGreaterEqual(intervals[0][1] - intervals[0][0], 300_000_000)

    def test_a_killed_process_is_gone_and_one_that_is_gone_cannot_be_killed(self):
        child = subprocess.Popen(SLEEPER)
        begin = time.time_ns()
        intervals = inject.kill(child.pid, begin)
        self.assertEqual(procs.stat(child.pid)[1], "Z")
        self.assertEqual(child.wait(), -signal.SIGKILL)
        self.assertTrue(begin <= intervals[0][0] < intervals[0][1] <= time.time_ns())
        with self.assertRaisesRegex(LabError, "gone"):
            inject.kill(child.pid, time.time_ns())

    def test_a_port_in_use_is_said_before_a_server_starts(self):
        with socket.socket() as other, Guard() as guard:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            with self.assertRaisesRegex(LabError, f"port {port} is in use: give another"):
                STACK.engine(guard, self.folder, port, STACK.faults["healthy"])

    def test_a_process_that_takes_its_title_late_is_waited_for(self):
        begin = time.monotonic()

        class Late(server.Server):
            def members(self):
                return [7, 8] if time.monotonic() > begin + 0.5 else [7]

        late = Late.__new__(Late)
        self.assertEqual(late.find_processes({7: "a", 8: "b"}.get, ["a", "b"]), {"a": 7, "b": 8})
        server.TITLE_LIMIT_S, before = 0, server.TITLE_LIMIT_S
        self.addCleanup(setattr, server, "TITLE_LIMIT_S", before)
        with self.assertRaisesRegex(LabError, "no process of it is named c"):
            late.find_processes({7: "a", 8: "b"}.get, ["a", "c"])

    def test_busy_loops_end_by_themselves(self):
        with Guard(nice=-20) as guard:  # loops that other work leaves no time are refused
            intervals = inject.hogs(guard, time.time_ns(), 0.5, 2, (0,))
        self.assertGreaterEqual(intervals[0][1] - intervals[0][0], 500_000_000)

    def hooked(self, plan, code):
        """Runs code in a process with the hook, in which a module `engine` stands for the engine's."""
        (self.folder / "transformers").mkdir(exist_ok=True)
        (self.folder / "transformers" / "__init__.py").write_text("")
        (self.folder / "transformers" / "tokenization_utils_base.py").write_text(
            "import traceback\nclass PreTrainedTokenizerBase:\n    def __call__(self, text):\n"
            "        return [frame.filename + ':' + frame.name for frame in traceback.extract_stack()][-2:]\n")
        env = {**os.environ, "PYTHONPATH": f"{ROOT / 'lab' / 'hook'}:{self.folder}", "SITE_PLAN": str(plan.path)}
        text = "from transformers.tokenization_utils_base import PreTrainedTokenizerBase as T\n" + code
        return subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True, timeout=60)

    def test_the_hook_delays_what_it_is_told_to_and_says_when(self):
        plan = HookPlan(self.folder / "plan.json")
        now = time.time_ns()
        plan.order([{"site": "tokenizer", "effect": "sleep", "ms": 50, "max_hits": 2, "t0_ns": now, "t1_ns": now + 10**12}])
        done = self.hooked(plan, "for _ in range(4): T()('x')\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        intervals = plan.intervals()
        self.assertEqual(len(intervals), 2)
        for begin, end in intervals:
            self.assertGreaterEqual(end - begin, 50_000_000)
        plan.order([])
        self.assertEqual(plan.intervals(), [])

    def test_an_order_for_one_rank_and_layer_leaves_the_others_alone(self):
        package = self.folder / "sglang" / "srt" / "models"
        package.mkdir(parents=True)
        for folder in (package, package.parent, package.parent.parent):
            (folder / "__init__.py").write_text("")
        (package / "llama.py").write_text("class LlamaMLP:\n    def forward(self):\n        pass\n")
        (self.folder / "torch").mkdir()
        (self.folder / "torch" / "__init__.py").write_text("from . import distributed\n")
        (self.folder / "torch" / "distributed.py").write_text("rank = 0\nget_rank = lambda: rank\nis_initialized = lambda: True\n")
        plan = HookPlan(self.folder / "plan.json")
        now = time.time_ns()
        plan.order([{"site": "llama_mlp", "effect": "spin", "ms": 1, "rank": 1, "place": "layers.2.mlp", "t0_ns": now, "t1_ns": now + 10**12}])
        done = self.hooked(plan, "import types, torch\nfrom sglang.srt.models.llama import LlamaMLP\n"
                           "for torch.distributed.rank, layer in ((0, 2), (1, 1), (1, 2)):\n    mlp = LlamaMLP()\n"
                           "    mlp.gate_up_proj = types.SimpleNamespace(prefix=f'layers.{layer}.mlp.gate_up_proj')\n    mlp.forward()\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(plan.intervals()), 1)

    def test_no_frame_of_a_hooked_process_gives_the_hook_away(self):
        plan = HookPlan(self.folder / "plan.json")
        now = time.time_ns()
        plan.order([{"site": "tokenizer", "effect": "spin", "ms": 1, "t0_ns": now, "t1_ns": now + 10**12}])
        done = self.hooked(plan, "print(T()('x')); print(T.__call__.__name__)\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("tokenization_utils_base.py:__call__"), 2)
        self.assertNotIn("sitecustomize", done.stdout)

    def test_without_an_order_nothing_happens(self):
        plan = HookPlan(self.folder / "plan.json")
        done = self.hooked(plan, "T()('x')\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(plan.intervals(), [])


class Recorders(Folder):
    def test_host_counters_name_the_processes_and_see_other_work(self):
        path = self.folder / "host_cpu.jsonl"
        recorder = host.HostRecorder(path, {"APIServer": os.getpid()}, every_s=0.05)
        recorder.start()
        time.sleep(0.3)
        recorder.stop()
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertGreaterEqual(len(lines), 3)
        self.assertEqual(set(lines[0]), {"t_ns", "cpu_s", "majflt", "busy_s", "idle_s", "iowait_s", "steal_s", "procs_running"})
        self.assertEqual(list(lines[0]["cpu_s"]), ["APIServer"])
        self.assertEqual([x["t_ns"] for x in lines], sorted(x["t_ns"] for x in lines))
        self.assertGreaterEqual(recorder.other_work(), 0)


class Catalogue(Folder):
    def test_every_fault_can_make_a_valid_label(self):
        import random
        for fault in every_fault():
            with self.subTest(fault=fault.kind):
                params = fault.params(random.Random(5))
                json.dumps(params)
                more, quiet = fault.requests(5, "r", 6.0, params)
                self.assertTrue(all(p.at_s >= 6.0 for p in more))
                casefile.check_label(label(is_fault=fault.culprit is not None, culprit=fault.culprit, fault_class=fault.fault_class,
                                           world_size=dict(fault.options).get("tp", 1)))
                self.assertTrue(fault.culprit is None or fault.act)

    def test_labels_use_the_classes_that_the_reference_documents(self):
        text = (ROOT / "docs" / "reference" / "fault-classes.md").read_text()
        for fault in every_fault():
            for name in (fault.fault_class, *fault.accept):
                self.assertIn(name, text)


class AbsentKernels(Folder):
    def test_every_name_can_be_imported_and_none_called(self):
        package = self.folder / "sgl_kernel"
        package.mkdir()
        (package / "__init__.py").write_text((ROOT / "lab" / "sglang" / "sgl_kernel_names.py").read_text())
        code = ("import sgl_kernel\nfrom sgl_kernel import silu_and_mul\nfrom sgl_kernel.flash_attn import flash_attn_varlen_func as f\n"
                "import sgl_kernel.kvcacheio\nprint(hasattr(sgl_kernel, '__wrapped__'))\n"
                "for kernel in (f, silu_and_mul):\n    try:\n        kernel(1)\n    except NotImplementedError as error:\n        print(error)\n")
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(self.folder)}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split("\n")[:3], ["False", "sgl_kernel.flash_attn.flash_attn_varlen_func needs a GPU",
                                                       "sgl_kernel.silu_and_mul needs a GPU"])


class CommandLine(Folder):
    def lab(self, *args):
        return subprocess.run([sys.executable, "-m", "lab", *args], cwd=ROOT, capture_output=True, text=True, timeout=60,
                              env={**os.environ, "TELLER_LAB_HOME": str(self.folder / "home")})

    def test_errors_are_one_line(self):
        for args, says in ((["--fault", "healthy"], "not set up"), (["--fault", "nonsense"], "unknown fault"),
                           (["--fault", "collective-skipped"], "vllm cannot have \"collective-skipped\", only fsdp"),
                           (["--fault", "healthy:x"], "whole number"), (["--fault", "burst:1", "--fault", "burst:1"], "twice"),
                           (["--fault", "healthy:"], "whole number"), (["--fault", "healthy:-1"], "whole number"),
                           (["--fault", "healthy:99999999999999999999"], "whole number"), (["--fault", "healthy:²"], "whole number"),
                           (["--fault", "healthy", "--port", "70000"], "65535")):
            done = self.lab("run", "vllm", *args, "-o", str(self.folder / "case"))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(says, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_numbers_out_of_range_are_refused_by_every_verb(self):
        case = ["-o", str(self.folder / "case")]
        for verb, *args in (("run", "vllm", "--fault", "healthy", "--seed"), ("real", "--seed"), ("retimed", "--seed"), ("simulated", "--seed"), ("leak", ".", "--seed"),
                            ("run", "vllm", "--fault", "healthy", "--port"), ("real", "--tries"), ("real", "--limit"), ("retimed", "--count"), ("simulated", "--mix"),
                            ("simulated", "--healthy"), ("simulated", "--steps"), ("simulated", "--most-ranks"), ("leak", ".", "--shuffles"),
                            ("run", "vllm", "--fault", "healthy", "--nice"), ("real", "--nice")):
            for value in ("-1", "nan", "1e3", "99999999999999999999", "", "x"):
                if (verb, args[-1], value) == ("real", "--limit", "1e3") or args[-1] == "--nice" and value == "-1":
                    continue
                said = io.StringIO()
                with contextlib.redirect_stderr(said):
                    status = commands.main([verb, *args[:-1], f"{args[-1]}={value}", *case])
                self.assertEqual((status, said.getvalue().count("\n")), (2, 1), (verb, args, value, said.getvalue()))
                self.assertIn(args[-1], said.getvalue())
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_broken_files_are_one_line(self):
        (self.folder / "case").mkdir()
        (self.folder / "case/label.json").write_text("[]")
        (self.folder / "scores.json").write_text("{")
        (self.folder / "some.json").write_text('{"methods": [{"name": "chance"}], "cases": []}')
        case = str(self.folder / "case")
        for args, says in (([case], "label.json: is no JSON object"), ([case, "--scores", str(self.folder / "scores.json")], "scores.json: is no JSON object"),
                           ([case, "--scores", str(self.folder / "some.json")], "holds no answers of teller"), ([case, "--scores", case], "case: cannot be read"),
                           ([case, "--scores", str(self.folder / "none")], "none: cannot be read")):
            done = self.lab("ceiling", *args)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn(says, done.stderr)

    def test_list_names_every_fault(self):
        done = self.lab("list")
        self.assertEqual(done.returncode, 0)
        for fault in every_fault():
            self.assertIn(fault.kind, done.stdout)

    def test_verbs_of_their_own_say_on_one_line_what_stopped_them(self):
        for verb, args in (("simulated", ["-o", "set"]), ("retimed", ["-o", "set", "."]), ("leak", ["."])):
            done = self.lab(verb, *args, "--teller", "/nowhere/teller")
            self.assertEqual((done.returncode, done.stderr), (2, "lab: /nowhere/teller: No such file or directory; nothing was changed\n"))
        teller = self.folder / "teller"
        teller.write_text("#!/bin/sh\ntouch $0.began\nexec sleep 600\n")
        teller.chmod(0o755)
        run = subprocess.Popen([sys.executable, "-m", "lab", "simulated", "-o", str(self.folder / "set"), "--teller", str(teller)], cwd=ROOT,
                               stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.stderr.close)
        self.wait((self.folder / "teller.began").exists)
        run.terminate()
        self.assertEqual((run.wait(), run.stderr.read()), (2, "lab: interrupted; nothing was changed\n"))
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["teller", "teller.began"])

    def test_an_interruption_begins_nothing_more(self):
        begun = []

        def work(thing):
            begun.append(thing)
            if thing == 0:
                raise KeyboardInterrupt
            time.sleep(0.2)
        with self.assertRaises(KeyboardInterrupt):
            parallel.each(work, range(1000))
        self.assertLess(len(begun), 100 + 2 * os.cpu_count())
        self.assertEqual(parallel.each(lambda thing: -thing, range(5)), [0, -1, -2, -3, -4])


class StandIns(Folder):
    def test_a_library_loads_without_what_it_names(self):
        """A library that needs a versioned and an unversioned function of a library that is then taken away."""
        (self.folder / "gone.c").write_text("int with_version(void) { return 0; }\nint without(void) { return 0; }\n")
        (self.folder / "gone.map").write_text("GONE_1 { global: with_version; without; };\n")
        (self.folder / "user.c").write_text("int with_version(void); int without(void); int call(void) { return with_version() + without(); }\n")
        gcc = ["gcc", "-shared", "-fPIC"]
        subprocess.run([*gcc, "-Wl,-soname,libgone.so.7", "-Wl,--version-script=gone.map", "-o", "libgone.so.7", "gone.c"],
                       cwd=self.folder, check=True)
        subprocess.run([*gcc, "-Wl,-rpath,$ORIGIN", "-o", "libuser.so", "user.c", "./libgone.so.7"], cwd=self.folder, check=True)
        (self.folder / "libgone.so.7").unlink()
        wanted = standins.plan([self.folder / "libuser.so"], present=set())
        self.assertEqual(list(wanted), ["libgone.so.7"])
        standins.compile_one("libgone.so.7", wanted["libgone.so.7"], self.folder)
        code = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).call())"
        done = subprocess.run([sys.executable, "-c", code, str(self.folder / "libuser.so")], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.strip(), "2")


if __name__ == "__main__":
    unittest.main()
