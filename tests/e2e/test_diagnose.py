"""The bundled run: right answer, stable whatever the order, threads and format."""
import gzip
import json
import shutil
import subprocess

from harness import DEMO, ROOT, TELLER, Case, teller


class Demo(Case):
    def test_names_the_planted_culprit(self):
        verdict, status = self.diagnose(DEMO)
        self.assertEqual(status, 0)
        self.assertEqual(verdict["verdict"]["status"], "abnormal")
        first = verdict["findings"][0]
        self.assertEqual(first["culprit"]["rank"], 2)
        self.assertIn("mm", first["culprit"]["op"])
        self.assertEqual(verdict["input"]["ranks"], [0, 1, 2])
        steps = {s["index"] for s in first["steps"]}
        self.assertTrue(steps <= set(range(13, 21)), steps)
        self.assertGreaterEqual(len(steps & set(range(14, 20))), 5, steps)

    def test_larger_batches_are_no_fault(self):
        verdict, _ = self.diagnose(DEMO)
        for finding in verdict["findings"]:
            self.assertFalse({s["index"] for s in finding["steps"]} & {4, 9, 22, 25})

    def test_answer_does_not_depend_on_threads_or_order(self):
        traces = sorted(DEMO.glob("traces/*")) + sorted(DEMO.glob("logs/*"))
        answers = []
        for paths, threads in ((traces, 1), (traces, 2), (traces[::-1], 4)):
            verdict, _ = self.diagnose(*paths, "--threads", threads)
            answers.append([(f["class"], f["culprit"], f["onset_ns"], f["end_ns"], sorted(s["index"] for s in f["steps"]))
                            for f in verdict["findings"]] + [(s["culprit"], s["class"], s["cost_ns"], s["text"]) for s in verdict["suspects"]])
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(answers[0], answers[2])

    def test_same_bytes_twice(self):
        for form in ("text", "json", "html"):
            self.assertEqual(teller("diagnose", DEMO, "--format", form).stdout, teller("diagnose", DEMO, "--format", form).stdout)

    def test_generator_writes_the_committed_files(self):
        subprocess.run(["python3", str(ROOT / "tools" / "make_demo_run.py"), str(self.folder)], check=True)
        for path in sorted(p for p in DEMO.rglob("*") if p.is_file()):
            again = (self.folder / path.relative_to(DEMO)).read_bytes()
            # Compressed bytes may differ with the zlib in use; what they hold may not.
            opened = gzip.decompress if path.suffix == ".gz" else bytes
            self.assertEqual(opened(again), opened(path.read_bytes()), path)


class Commands(Case):
    def test_text_is_plain_when_it_is_no_terminal(self):
        for args in (("diagnose",), ("inspect",), ("tree",), ("logs",)):
            done = teller(*args, DEMO)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn(b"\x1b", done.stdout)
            self.assertEqual(done.stderr, b"")

    def test_width_follows_columns(self):
        narrow = teller("diagnose", DEMO, env={"COLUMNS": "50"}).stdout.decode()
        self.assertLessEqual(max(map(len, narrow.splitlines())), 80)
        wide = teller("diagnose", DEMO, env={"COLUMNS": "140"}).stdout.decode()
        self.assertGreater(len(narrow.splitlines()), len(wide.splitlines()))

    def test_output_file_gets_what_stdout_would(self):
        out = self.folder / "verdict.json"
        done = teller("diagnose", DEMO, "--format", "json", "-o", out)
        self.assertEqual((done.returncode, done.stdout), (0, b""))
        self.assertEqual(out.read_bytes(), teller("diagnose", DEMO, "--format", "json").stdout)

    def test_fail_on_finding_exits_with_1(self):
        self.assertEqual(teller("diagnose", DEMO, "--fail-on-finding").returncode, 1)

    def test_inspect_counts_what_the_files_hold(self):
        data = json.loads(teller("inspect", DEMO, "--json").stdout)
        self.assertEqual(data["schema"], "teller.inspect/1")
        self.assertEqual(data["ranks"], [0, 1, 2])
        self.assertEqual(sum(c["spans"] for c in data["categories"]), data["spans"])
        for f in data["files"]:
            if f["kind"] == "kineto":
                kept = f["spans"] + f["instants"] + f["counters"] + f["flows"] + f["metadata"] + f["repaired_away"] + f["dropped"]
                self.assertEqual(f["records_read"], kept)

    def test_tree_of_a_step_reaches_from_python_to_operators(self):
        text = teller("tree", DEMO, "--step", "15", "--rank", "2").stdout.decode()
        self.assertIn("decode step 15", text)
        self.assertIn("aten::mm", text)
        self.assertIn("nn.Module: DownProj_2", text)

    def test_tree_stats_are_short(self):
        text = teller("tree", DEMO, "--stats").stdout.decode()
        for word in ("spans", "read", "trees", "peak memory"):
            self.assertIn(word, text)
        self.assertLess(len(text.splitlines()), 30)

    def test_unknown_step_and_rank_are_refused(self):
        self.fails("tree", DEMO, "--step", "999", says="no step 999")
        self.fails("tree", DEMO, "--rank", "9", says="no rank 9")

    def test_logs_shows_records_and_json(self):
        data = json.loads(teller("logs", DEMO, "--json").stdout)
        self.assertEqual(data["schema"], "teller.logs/1")
        self.assertGreater(len(data["records"]), 20)
        self.assertTrue(all(r["at_ns"] is not None for r in data["records"]))

    def test_export_is_a_trace_again(self):
        out = self.folder / "export.json"
        self.assertEqual(teller("export", "--to", "perfetto", DEMO, "-o", out).returncode, 0)
        before = json.loads(teller("inspect", DEMO, "--json").stdout)
        after = json.loads(teller("inspect", out, "--json").stdout)
        marks = next(c["spans"] for c in after["categories"] if c["name"] == "teller")
        self.assertEqual(after["spans"] - marks, before["spans"])
        self.assertEqual(after["begin_ns"], before["begin_ns"])

    def test_closed_pipe_is_success(self):
        done = subprocess.run(["bash", "-c", f'"{TELLER}" export "{DEMO}" | head -c 10 >/dev/null; exit ${{PIPESTATUS[0]}}'])
        self.assertEqual(done.returncode, 0)


class Copies(Case):
    def test_names_of_files_do_not_matter(self):
        for i, path in enumerate(sorted(DEMO.glob("traces/*"))):
            shutil.copy(path, self.folder / f"{'zyx'[i]}.bin")
        verdict, _ = self.diagnose(self.folder)
        self.assertEqual(verdict["findings"][0]["culprit"]["rank"], 2)
