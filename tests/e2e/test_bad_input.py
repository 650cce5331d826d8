"""Bad input: one clear line and exit status 2, or a counted diagnostic and exit status 3; never a crash, never silence."""
import gzip
import itertools
import json
import os
import subprocess
import unittest

from harness import DEMO, SANITIZED, TELLER, Case, span, teller, trace

EVENTS = [span(f"aten::op{i % 3}", 1000 + 10 * i, 8, **{"External id": i + 1}) for i in range(200)]


class Refused(Case):
    def test_usage(self):
        self.fails()
        self.fails("diagnose")
        self.fails("diagnose", DEMO, "--format", "xml", says="xml")
        self.fails("frobnicate", "x", says="frobnicate")
        self.fails("--frobnicate", says="--frobnicate")
        self.fails("diagnose", DEMO, "--false-alarms", "nan", says="more than 0 and at most 0.5")

    def test_what_is_not_in_the_run_leaves_the_output_empty(self):
        for args, says in ((("--rank", "77"), "there are 0, 1, 2"), (("--step", "99999"), "there are")):
            done = teller("tree", DEMO, *args)
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertIn(says, done.stderr.decode())
        self.fails("tree", DEMO, "--rank", "77", "-o", self.folder / "out")
        self.assertFalse((self.folder / "out").exists())

    def test_pipes_and_devices(self):
        pipe = self.folder / "x.log"
        os.mkfifo(pipe)
        self.fails("diagnose", pipe, says="is a pipe", timeout=10)
        self.fails("diagnose", "--logs", pipe, says="is a pipe", timeout=10)
        self.fails("diagnose", self.folder, says="is a pipe", timeout=10)
        self.fails("diagnose", "/dev/null", says="is a device")
        done = subprocess.run([TELLER, "diagnose", "/dev/stdin"], input=b"INFO 01-15 09:30:00 one\n", capture_output=True, timeout=10)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"is a pipe", done.stderr)

    def test_a_limit_on_the_size_of_files(self):
        done = subprocess.run(["bash", "-c", 'ulimit -f 1; exec "$0" "$@"', TELLER, "diagnose", str(DEMO), "--format", "html", "-o",
                               str(self.folder / "out.html")], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(b"File too large", done.stderr)

    def test_unreadable_folder(self):
        locked = self.folder / "locked"
        locked.mkdir(mode=0)
        self.addCleanup(locked.chmod, 0o700)
        self.folder.chmod(0o755)
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        try:
            text = self.fails("diagnose", locked, says="Permission denied", **user)
        except PermissionError as refused:
            self.skipTest(f"another user may not run the program: {refused}")
        self.assertNotIn("neither", text)
        self.write("t.json", trace(EVENTS)).chmod(0o644)
        verdict, status = self.diagnose(self.folder, **user)
        self.assertEqual(status, 3)
        found = [d for d in verdict["diagnostics"] if d["code"] == "input.unreadable_folder"]
        self.assertIn("locked", found[0]["places"][0])

    def test_nothing_there(self):
        self.fails("diagnose", self.folder / "absent", says="absent")

    def test_folder_with_nothing(self):
        self.fails("diagnose", self.folder)

    def test_folder_with_neither_traces_nor_logs(self):
        self.write("picture.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
        self.write("weights.bin", os.urandom(4096))
        self.fails("diagnose", self.folder)

    def test_unreadable_file(self):
        if os.path.exists("/proc/self/mem"):
            self.fails("diagnose", "/proc/self/mem")

    def test_no_space_for_the_output(self):
        with open("/dev/full", "wb") as full:
            for args in (("diagnose", DEMO), ("diagnose", DEMO, "--format", "html"), ("inspect", DEMO), ("export", DEMO), ("--help",)):
                done = teller(*args, stdout=full)
                self.assertEqual(done.returncode, 2, args)
                self.assertIn(b"No space left", done.stderr)
        self.fails("diagnose", DEMO, "-o", "/dev/full", says="No space left")

    def test_output_into_a_folder_that_is_not_there(self):
        self.fails("diagnose", DEMO, "-o", self.folder / "no" / "such" / "file", says="cannot write")

    def test_hostile_file_name_is_shown_harmlessly(self):
        text = self.fails("diagnose", self.folder / "a\x1b[31m\nb")
        self.assertNotIn("\x1b", text)


class Arguments(Case):
    def test_every_order_of_the_files_gives_the_same_verdict(self):
        traces = sorted((DEMO / "traces").iterdir())
        logs = sorted((DEMO / "logs").iterdir())
        expected = teller("diagnose", *traces, *logs, "--format", "json").stdout
        self.assertTrue(json.loads(expected)["input"]["files"])
        orders = [*itertools.permutations(traces + logs)][::131]
        for order in orders + [(*reversed(traces), *logs, *traces)]:
            self.assertEqual(teller("diagnose", *order, "--format", "json").stdout, expected, order)

    def test_every_order_of_named_logs_gives_the_same_verdict(self):
        logs = sorted((DEMO / "logs").iterdir())
        said = {teller("diagnose", "--format", "json", *(w for log in order for w in ("--logs", log))).stdout
                for order in itertools.permutations(logs)}
        self.assertEqual(len(said), 1)
        self.assertEqual(len(json.loads(said.pop())["input"]["files"]), 3)


class Reported(Case):
    def lost(self, path, code):
        """Exit status 3, and a diagnostic with this code that counts and locates the loss."""
        verdict, status = self.diagnose(path)
        found = [d for d in verdict["diagnostics"] if d["code"] == code]
        self.assertTrue(found, verdict["diagnostics"])
        self.assertEqual(status, 3)
        self.assertGreaterEqual(found[0]["count"], 1)
        return verdict

    def test_truncated_gzip(self):
        whole = gzip.compress(trace(EVENTS).encode())
        path = self.folder / "t.json.gz"
        path.write_bytes(whole[: len(whole) // 2])
        self.lost(path, "trace.damaged_gzip")

    def test_json_cut_in_mid_event(self):
        text = trace(EVENTS)
        verdict = self.lost(self.write("t.json", text[: len(text) * 2 // 3]), "trace.truncated")
        self.assertGreater(verdict["input"]["files"][0]["spans"], 100)

    def test_wrong_types(self):
        events = EVENTS + [span("bad", "soon", 3), span("worse", 5, {"a": 1}), span(17, 5, 1), 42, "text", None, [1]]
        verdict, status = self.diagnose(self.write("t.json", trace(events)))
        self.assertEqual(status, 3)
        self.assertGreaterEqual(sum(d["count"] for d in verdict["diagnostics"]), 3)

    def test_numbers_beyond_all_bounds(self):
        text = trace(EVENTS).replace('"ts": 1010', '"ts": 1e400').replace('"ts": 1020', '"ts": 99999999999999999999999999')
        text = text.replace('"ts": 1030', '"ts": NaN').replace('"dur": 8', '"dur": -Infinity', 1)
        done = teller("diagnose", self.write("t.json", text), "--format", "json")
        self.assertIn(done.returncode, (2, 3), done.stderr)

    def test_negative_duration(self):
        verdict, _ = self.diagnose(self.write("t.json", trace(EVENTS + [span("back", 500, -5)])))
        self.assertTrue([d for d in verdict["diagnostics"] if d["code"] == "trace.negative_duration"])

    def test_deep_nesting(self):
        deep = json.dumps(span("deep", 1, 2)).replace("{}", "[" * 100_000 + "]" * 100_000, 1)
        text = trace(EVENTS).replace("]}", "," + deep + "]}")
        self.assertIn(teller("diagnose", self.write("t.json", text)).returncode, (2, 3))

    def test_deeply_nested_spans(self):
        events = [span(f"f{i}", 1000 + i, 400_000 - 2 * i, cat="python_function") for i in range(150_000)]
        for args in (("tree",), ("diagnose", "--format", "html")):
            self.assertIn(teller(*args, self.write("t.json", trace(events))).returncode, (0, 3))

    def test_invalid_utf8(self):
        text = trace(EVENTS).encode().replace(b"aten::op1", b"aten::\xff\xfe\xc3(")
        verdict, _ = self.diagnose(self.write("t.json", text))
        self.assertEqual(verdict["input"]["files"][0]["spans"], len(EVENTS))

    def test_not_a_trace(self):
        done = teller("diagnose", self.write("t.json", '{"hello": [1, 2, 3]}'))
        self.assertIn(done.returncode, (2, 3))
        self.assertTrue(done.stderr)

    def test_empty_file(self):
        done = teller("diagnose", self.write("t.json", ""))
        self.assertIn(done.returncode, (2, 3))

    def test_other_files_in_the_folder_do_not_disturb(self):
        self.write("run/t.json", trace(EVENTS))
        self.write("run/picture.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
        self.write("run/data.json", '{"a": 1}')
        verdict, _ = self.diagnose(self.folder / "run")
        self.assertEqual(sum(f["spans"] for f in verdict["input"]["files"]), len(EVENTS))

    def test_empty_trace_of_an_idle_process_is_no_loss(self):
        idle = [{"ph": "M", "name": "process_name", "pid": 9, "tid": 0, "args": {"name": "python"}},
                {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 1, "dur": 5}]
        self.write("run/a.json", trace(EVENTS))
        self.write("run/b.json", trace(idle))
        _, status = self.diagnose(self.folder / "run")
        self.assertEqual(status, 0)

    @unittest.skipIf(SANITIZED, "too slow with a sanitizer")
    def test_one_line_of_a_gigabyte(self):
        for name, head in (("t.json", b'{"traceEvents":[{"ph":"X","name":"'), ("server.log", b"INFO 01-15 09:30:00 one ")):
            path = self.write(name, head)
            with open(path, "r+b") as file:
                file.truncate(1 << 30)
            done = subprocess.run(["bash", "-c", 'ulimit -v 4000000; exec "$0" "$@"', TELLER, "diagnose", str(path)], capture_output=True, timeout=300)
            self.assertIn(done.returncode, (2, 3), done.stderr)
            path.unlink()


class Hostile(Case):
    NAME = "</script><script>document.title='owned'</script>\x1b]0;owned\x07\u202e\x00<img src=x onerror=alert(1)>"

    def run_folder(self):
        for rank in range(2):
            events = []
            for step in range(12):
                at = 1000 + 2000 * step
                long = 900 if rank == 1 and step == 7 else 0
                events += [span(f"decode step {step}", at, 500 + long, cat="user_annotation"), span(self.NAME, at + 10, 400 + long)]
            top = {"distributedInfo": {"rank": rank, "world_size": 2}}
            self.write(f"run/rank{rank}.json", trace(events, **top))
        self.write("run/server.log", "2026-01-15 09:30:00,010 ERROR [a.py:1] \x1b[2J" + self.NAME + "\n")
        return self.folder / "run"

    def test_terminal_output_has_no_control_bytes(self):
        run = self.run_folder()
        for args in (("diagnose",), ("inspect",), ("tree",), ("tree", "--step", "7"), ("logs",)):
            done = teller(*args, run)
            self.assertIn(done.returncode, (0, 3), done.stderr)
            self.assertFalse(set(done.stdout) & (set(range(32)) - {10}), args)
            self.assertNotIn("\u202e", done.stdout.decode())

    def test_json_and_export_are_valid(self):
        run = self.run_folder()
        for args in (("diagnose", "--format", "json"), ("inspect", "--json"), ("logs", "--json"), ("export",)):
            self.assertFalse(set(teller(*args, run).stdout) - set(range(32, 127)) - {10}, args)
        self.diagnose(run)
        for args in (("inspect", "--json"), ("logs", "--json"), ("export",)):
            json.loads(teller(*args, run).stdout)
