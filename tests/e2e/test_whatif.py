"""`teller whatif`: what a step would have taken with an operator at another duration."""
import json
import unittest

from harness import DEMO, SHARED, Case, span, teller, trace

STEP_US = 1000
SLOW_STEP = 6


def rank_events(rank, slow_us):
    """Twelve steps: a long operator, then a collective that ends for all ranks 100 us after the last arrival."""
    events = []
    at = 0
    for step in range(12):
        slow = slow_us if step == SLOW_STEP else 0
        own = 300 + (slow if rank == 1 else 0)
        both = 300 + slow
        begin = at
        events.append(span("aten::mm", begin + 10, own))
        arrival, end = begin + 10 + own + 5, begin + 10 + both + 5 + 100
        events.append(span("gloo:all_reduce", arrival, end - arrival, cat="user_annotation"))
        events.append(span(f"ProfilerStep#{step}", begin, end + 20 - begin, cat="user_annotation"))
        at = end + 30
    return events


class WhatIf(Case):
    def make(self, slow_us=2000):
        for rank in range(2):
            self.write(f"rank{rank}.json", trace(rank_events(rank, slow_us), distributedInfo={"rank": rank, "world_size": 2}))

    def ask(self, *args):
        done = teller("whatif", self.folder, "--op", "aten::mm", "--json", "--threads", 1, *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_slow_operator_at_its_normal_shortens_all_ranks(self):
        self.make()
        answer = self.ask("--step", SLOW_STEP)
        self.assertEqual(answer["step"]["rank"], 1)
        self.assertFalse(answer["nothing_changes"])
        self.assertAlmostEqual(answer["step"]["difference_ns"], -2_000_000, delta=20_000)
        (other,) = answer["other_processes"]
        self.assertEqual(other["rank"], 0)
        self.assertAlmostEqual(other["difference_ns"], -2_000_000, delta=20_000)

    def test_victims_operator_changes_nothing(self):
        self.make()
        answer = self.ask("--step", SLOW_STEP, "--rank", 0, "--to", "0x")
        self.assertTrue(answer["nothing_changes"])
        self.assertAlmostEqual(answer["step"]["difference_ns"], 0, delta=5_000)

    def test_healthy_step_says_that_nothing_would_change(self):
        self.make()
        for step in range(12):
            if step != SLOW_STEP:
                self.assertTrue(self.ask("--step", step)["nothing_changes"])
        text = teller("whatif", self.folder, "--step", 3, "--op", "aten::mm").stdout.decode()
        self.assertIn("Nothing would change", text)

    def test_verdict_carries_what_the_repair_would_save(self):
        verdict, _ = self.diagnose(DEMO)
        finding = verdict["findings"][0]
        self.assertGreater(finding["without_it"]["saved_share"], 0.8)
        self.assertLess(finding["without_it"]["step_ns"], finding["without_it"]["observed_ns"])

    def test_questions_without_an_answer_are_refused_in_one_line(self):
        self.make()
        for args, words in ((("--step", "99", "--op", "aten::mm"), "no step 99"),
                            (("--step", "3", "--op", "aten::nothing"), "nothing is named"),
                            (("--step", "3", "--op", "a"), "fits"),
                            (("--step", "3", "--op", "aten::mm", "--rank", "7"), "rank 7"),
                            (("--step", "3", "--op", "aten::mm", "--to", "-4ms"), "no time to change to"),
                            (("--step", "3", "--op", "aten::mm", "--to", "nan"), "no time to change to"),
                            (("--step", "3", "--op", "aten::mm", "--to", "0x10ms"), "no time to change to"),
                            (("--step", "3", "--op", "aten::mm", "--to", "1e300x"), "no time to change to")):
            with self.subTest(args=args):
                done = teller("whatif", self.folder, *args)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stdout, b"")
                message = done.stderr.decode()
                self.assertIn(words, message)
                self.assertEqual(message.count("\n"), 1)

    @unittest.skipUnless(SHARED.is_dir(), "SKIPPED: no ../shared beside the repository")
    def test_real_slow_operator_on_two_ranks(self):
        done = teller("whatif", SHARED / "data/lab/fsdp/slow_mm_tp_w2", "--step", 4, "--op", "aten::mm", "--json")
        answer = json.loads(done.stdout)
        self.assertEqual(answer["step"]["rank"], 1)
        for change in (answer["step"], *answer["other_processes"]):
            self.assertLess(change["expected_ns"], 0.4 * change["recorded_ns"])
            self.assertLess(abs(change["model_error_ns"]), 0.03 * change["recorded_ns"])


if __name__ == "__main__":
    unittest.main()
