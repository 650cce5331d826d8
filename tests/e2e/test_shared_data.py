"""Real traces, logs and labelled runs beside the repository (../shared). Skipped aloud where they are absent."""
import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import unittest

from harness import ROOT, SANITIZED, TELLER, Case, teller


# Fewer labelled runs than this means that the data moved, not that all is well.
LEAST_LABELS = 25

TRACELENS = "data/traces/tracelens/"
# trace -> what its one step is: (kind, batch, prefill requests, decode requests, new tokens). The first annotation's text is cut.
STEPS = {
    "vllm_b200_eager_tp8_rank.json.gz": ("prefill", 1, 1, 0, 888),
    "sglang_qwen3_8b_extend_step.json.gz": ("prefill", 15, 15, 0, 15360),
    "sglang_qwen3_8b_decode/decode_step.json.gz": ("decode", 32, 0, 32, 32),
    "vllm_mixed_piecewise_step.json.gz": ("mixed", 46, 9, 37, 8192),
}


class LabelledRuns(Case):
    def test_every_verdict_keeps_the_contract(self):
        labels = sorted(self.needs("data/lab").rglob("label.json"))
        self.assertGreaterEqual(len(labels), LEAST_LABELS)
        for label in labels:
            with self.subTest(case=label.parent.name):
                self.diagnose(label.parent)

    @unittest.skipIf(SANITIZED, "the release build is scored")
    def test_lab_score(self):
        """Thresholds over the faults that a trace or a log can show; never an accusation where nothing is broken."""
        score = self.needs("tools/score.py")
        out = self.folder / "score.json"
        done = subprocess.run([sys.executable, str(score), "--teller", TELLER, "--visible", "trace,log", "--json", str(out)],
                              capture_output=True, text=True, cwd=ROOT, timeout=1200)
        totals = [line for line in done.stdout.splitlines() if line.startswith("== ")]
        print("\n" + "\n".join(totals))
        every = totals[-1]
        self.assertTrue(every.startswith("== ALL"), every)

        def number(pattern):
            found = re.search(pattern, every)
            self.assertIsNotNone(found, every)
            return float(found.group(1))

        rows = json.loads(out.read_text())
        self.assertFalse([r["case"] for r in rows if r["crash"] or r.get("bad_json")])
        self.assertEqual(number(r"false_alarms=(\d+)/"), 0, every)
        self.assertGreaterEqual(number(r"F1=([\d.]+)"), 0.90, every)
        self.assertGreaterEqual(number(r"where1=([\d.]+)"), 0.80, every)
        self.assertGreaterEqual(number(r"class1=([\d.]+)"), 0.70, every)
        self.assertGreaterEqual(number(r"op3=([\d.]+)"), 0.70, every)


class NsightExports(Case):
    def test_every_command_works_and_kernels_sum_up_as_in_sql(self):
        exports = sorted(self.needs("data/traces/nsys").glob("*.sqlite"))
        self.assertGreaterEqual(len(exports), 4)
        for export in exports:
            with self.subTest(export=export.name):
                with contextlib.closing(sqlite3.connect(f"file:{export}?immutable=1", uri=True)) as database:
                    count, total = database.execute("SELECT count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
                traced = self.folder / "trace.json"
                teller("export", export, "-o", traced)
                kernels = [e for e in json.loads(traced.read_text())["traceEvents"] if e.get("cat") == "kernel" and e["ph"] == "X"]
                self.assertEqual(len(kernels), count)
                self.assertAlmostEqual(sum(e["dur"] for e in kernels) * 1000, total, delta=count)
                for command in (["inspect"], ["tree"], ["tree", "--stats"]):
                    done = teller(*command, export)
                    self.assertEqual(done.returncode, 0, done.stderr)
                verdict, status = self.diagnose(export)
                self.assertEqual(status, 0)
                self.assertEqual(verdict["input"]["files"][0]["kind"], "nsys")


class RealFiles(Case):
    def test_few_lines_of_real_logs_are_in_no_known_grammar(self):
        """At most 1 % of all lines. Program output (tables, rulers, banners: told by its form) counts as known; prints of
        scripts that have no form count as unknown, also where a file holds nothing else."""
        logs = sorted(p for p in self.needs("data/logs").rglob("*.log*") if p.is_file())
        logs += sorted(self.needs("data/lab").rglob("*.log"))
        self.assertGreater(len(logs), 40)
        done = teller("logs", "--json", "-q", *(word for path in logs for word in ("--logs", path)))
        self.assertIn(done.returncode, (0, 3), done.stderr.decode(errors="replace"))
        coverage = json.loads(done.stdout)["coverage"]
        self.assertEqual(len(coverage["files"]), len(logs))
        print(f"\n{'lines':>7} {'unknown':>8} {'printed':>8}")
        for row in (*coverage["files"], {**coverage, "path": "all"}):
            if row["unknown"] or row["path"] == "all":
                name = "/".join(row["path"].split("/")[-2:])
                print(f"{row['lines']:7} {row['unknown']:8} {row['program_output']:8}  {100 * row['unknown_share']:6.2f} %  {name}")
        self.assertLessEqual(coverage["unknown_share"], 0.01)

    def test_html_of_real_runs_stays_small(self):
        for run in sorted(self.needs("data/lab/fsdp").iterdir()):
            if run.is_dir():
                page = teller("diagnose", run, "--format", "html").stdout
                self.assertLess(len(page), 3_000_000, run.name)
                self.assertTrue(page.endswith(b"</html>\n"))

    def test_steps_of_vllm_and_sglang_have_kind_and_size(self):
        for name, wanted in STEPS.items():
            with self.subTest(trace=name):
                steps = json.loads(teller("inspect", self.needs(TRACELENS + name), "--json").stdout)["step_list"]
                keys = ("kind", "batch", "prefill_requests", "decode_requests", "new_tokens")
                self.assertEqual([tuple(s[k] for k in keys) for s in steps], [wanted])

    def test_tree_says_what_a_step_computes(self):
        wide = {**os.environ, "COLUMNS": "200"}
        text = teller("tree", self.needs(TRACELENS + "vllm_mixed_piecewise_step.json.gz"), env=wide).stdout.decode()
        self.assertIn("mixed, batch 46 (9 prefill, 37 decode), 8192 new tokens, 42919 context", text)

    def test_log_is_tied_to_the_traced_iteration(self):
        logs = json.loads(teller("logs", self.needs(TRACELENS + "xdit_sd35_pair"), "--json").stdout)
        records = {r["message"]: r for r in logs["records"]}
        traced = [m for m in records if m.startswith("Profiling iteration 4/4") or "ROCTracer produced duplicate" in m]
        self.assertEqual(len(traced), 2, traced)
        for message in traced:
            self.assertEqual(records[message]["step"], 0, message)
            self.assertGreaterEqual(records[message]["align_confidence"], 0.5)
            self.assertIn("time inside the step", records[message]["align_reason"])
        begin = records["Profiling iteration 4/4"]["at_ns"]
        far = [r for r in logs["records"] if r["time_from"] == "stamp" and abs(r["at_ns"] - begin) >= 2_000_000_000]
        self.assertGreaterEqual(len(far), 20)
        self.assertEqual([r["message"] for r in far if r["step"] is not None], [])
        # Stamps are whole seconds and the step takes 1.2 s: only its neighbours may be tied to it as well.
        tied = [r for r in logs["records"] if r["step"] is not None]
        self.assertTrue(all(abs(r["at_ns"] - begin) <= 2_000_000_000 for r in tied))
        self.assertLessEqual(len(tied), 6)

    def test_clock_relation_and_its_error_are_printed(self):
        run = self.needs(TRACELENS + "xdit_sd35_pair")
        verdict, _ = self.diagnose(run)
        self.assertEqual(verdict["input"]["clock"]["domain"], "epoch")
        self.assertEqual(verdict["input"]["log_clock"]["method"], "the lines' own stamps")
        self.assertEqual(verdict["input"]["log_clock"]["error_ns"], 500_000_000)  # stamps in whole seconds
        text = teller("diagnose", run, env={**os.environ, "COLUMNS": "200"}).stdout.decode()
        self.assertRegex(text, r"logs on the trace clock by the lines' own stamps, \+/- 500 ms")

    def test_logs_alone_name_the_first_cause(self):
        oom, _ = self.diagnose(self.needs("data/logs/vllm_oom_traceback"))
        self.assertEqual(oom["verdict"]["class"], "GPU_MEM_OOM")

    def test_orderly_shutdown_is_no_crash(self):
        folder = self.needs("data/logs/vllm_sglang_dgx_spark")
        for name in ("vllm_a04_nvfp4_ok.log", "vllm_a08_int4_ok.log", "vllm_a10_int4_262k_ok.log", "sglang_a09_int4_ok.log"):
            with self.subTest(log=name):
                verdict, _ = self.diagnose(folder / name)
                self.assertNotEqual(verdict["verdict"]["status"], "abnormal", verdict["verdict"]["summary"])

    def test_flight_recorder_names_the_injected_ranks(self):
        folder = self.needs("data/logs/nccl_flight_recorder")
        for case in ("gpu_error_1st", "lock_gil_1st"):
            with self.subTest(case=case):
                truth = (folder / case / "fault_injection.log").read_text()
                ranks = {int(r) for r in re.findall(r"[Rr]ank\D{0,3}(\d+)", truth)}
                verdict, _ = self.diagnose(folder / case)
                named = {f["culprit"]["rank"] for f in verdict["findings"][:3]}
                self.assertTrue(ranks & named, (truth, named))

    def test_wait_and_transfer_of_collectives_are_split(self):
        data = json.loads(teller("inspect", self.needs("data/traces/param_dlrm8"), "--json").stdout)
        waited = {}
        for c in data["collectives"]:
            self.assertEqual(len(c["members"]), 8)
            waited[c["late_rank"]] = waited.get(c["late_rank"], 0) + sum(m["wait_ns"] for m in c["members"])
            for m in c["members"]:
                self.assertLessEqual(m["wait_ns"], m["end_ns"] - m["arrival_ns"])
        self.assertEqual(max(waited, key=waited.get), 7)

    def test_late_rank_of_the_all_to_all_is_named(self):
        verdict, _ = self.diagnose(self.needs("data/traces/param_dlrm8"))
        self.assertEqual(verdict["verdict"]["status"], "abnormal")
        first = verdict["findings"][0]
        self.assertEqual(first["culprit"]["rank"], 7)
        self.assertNotIn(first["class"], ("NET_LINK_FAULT", "NET_PATH_WRONG", "INTRA_LINK_DEGRADED"))


if __name__ == "__main__":
    unittest.main()
