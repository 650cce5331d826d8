"""Simulated three-rank runs with one planted cause each: the right answer, whatever the order of records, files or threads."""
import subprocess
import sys
import unittest

from harness import ROOT, Case

# fault -> (rank, classes that are right, layers that are right). A gap without any span may be named after the scheduler or the host.
EXPECTED = {
    "slow_op": (2, {"KERNEL_REGRESSION"}, {"op"}),
    "late_rank": (1, {"HOST_CPU_BOUND"}, {"python"}),
    "host_gap": (0, {"HOST_CPU_BOUND"}, {"scheduler", "host"}),
}


class Planted(Case):
    def make(self, name, *args):
        out = self.folder / name
        subprocess.run([sys.executable, str(ROOT / "tools" / "make_demo_run.py"), str(out), *args], check=True)
        return out

    def answer(self, *args):
        verdict, status = self.diagnose(*args)
        self.assertEqual(status, 0)
        return verdict

    def check_fault(self, fault):
        rank, classes, layers = EXPECTED[fault]
        run = self.make("run", "--fault", fault)
        verdict = self.answer(run)
        self.assertEqual(verdict["verdict"]["status"], "abnormal")
        first = verdict["findings"][0]
        self.assertEqual(first["culprit"]["rank"], rank)
        self.assertIn(first["class"], classes)
        self.assertIn(first["culprit"]["layer"], layers)
        self.assertTrue({s["index"] for s in first["steps"]} <= set(range(13, 21)))
        # The other two wait for it; whoever is accused is no victim.
        self.assertEqual({v["rank"] for v in first["victims"]}, {0, 1, 2} - {rank})
        files = sorted(p for p in run.rglob("*") if p.is_file())
        others = {
            "one thread": self.answer(run, "--threads", 1),
            "four threads": self.answer(run, "--threads", 4),
            "files in another order": self.answer(*files[::-1]),
            "records in another order": self.answer(self.make("shuffled", "--fault", fault, "--shuffle", "7")),
        }
        for what, other in others.items():
            with self.subTest(what=what):
                keys = ("class", "culprit", "onset_ns", "end_ns")
                self.assertEqual([[f[k] for k in keys] for f in other["findings"]], [[f[k] for k in keys] for f in verdict["findings"]])

    def test_slow_operator_on_one_rank(self):
        self.check_fault("slow_op")

    def test_late_rank(self):
        self.check_fault("late_rank")

    def test_host_gap(self):
        self.check_fault("host_gap")

    def test_nothing_planted_nothing_found(self):
        self.assertEqual(self.answer(self.make("run", "--fault", "none"))["verdict"]["status"], "normal")

    def test_long_prefill_is_no_fault(self):
        self.assertEqual(self.answer(self.make("run", "--fault", "none", "--prefill"))["verdict"]["status"], "normal")

    def test_long_prefill_does_not_hide_a_fault(self):
        first = self.answer(self.make("run", "--fault", "slow_op", "--prefill"))["findings"][0]
        self.assertEqual(first["culprit"]["rank"], 2)
        self.assertEqual(first["class"], "KERNEL_REGRESSION")


if __name__ == "__main__":
    unittest.main()
