"""Real traces, logs and labelled runs beside the repository (../shared). Skipped aloud where they are absent."""
import json

import re
import subprocess
import sys
import unittest

from harness import ROOT, SANITIZED, TELLER, Case, teller


class LabelledRuns(Case):
    def test_every_verdict_keeps_the_contract(self):
        for label in sorted(self.needs("data/lab").rglob("label.json")):
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


class RealFiles(Case):
    def test_html_of_real_runs_stays_small(self):
        for run in sorted(self.needs("data/lab/fsdp").iterdir()):
            if run.is_dir():
                page = teller("diagnose", run, "--format", "html").stdout
                self.assertLess(len(page), 3_000_000, run.name)
                self.assertTrue(page.endswith(b"</html>\n"))

    def test_steps_of_vllm_and_sglang_have_kind_and_size(self):
        text = teller("tree", self.needs("data/traces/tracelens")).stdout.decode(errors="replace")
        self.assertRegex(text, r"decode|prefill|mixed")

    def test_log_is_aligned_and_clock_relation_is_stated(self):
        run = self.needs("data/traces/tracelens/xdit_sd35_pair")
        verdict, _ = self.diagnose(run)
        self.assertIsNotNone(verdict["input"]["clock"]["domain"])
        logs = json.loads(teller("logs", run, "--json").stdout)
        self.assertTrue([r for r in logs["records"] if r["step"] is not None or r["align_confidence"] > 0])

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
