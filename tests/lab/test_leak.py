"""The laboratory's search for leaks: what counts as chance, and whether a leak is seen and its absence is not."""
import os
import pathlib
import random
import subprocess
import sys
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from lab import leak  # noqa: E402
from lab.baselines import setup  # noqa: E402


def case(i, cls, right, rank=0, stack="vllm"):
    answer = {"class_right": right, "rank_place": 1 if right else 0, "process_place": None, "op_place": None, "abnormal": True}
    return {"folder": str(i), "source": "simulated", "recording": "", "stack": stack, "world_size": 4, "counts": True, "is_fault": True, "class": cls, "kind": cls.lower(), "rank": rank, "ops": [],
            "answers": {name: answer for name in leak.LEARNED}}


def scores(rights, classes=("A", "B")):
    return {"cases": [case(i, classes[i % len(classes)], right, rank=i % 4) for i, right in enumerate(rights)]}


class Chance(unittest.TestCase):
    def test_is_the_best_constant_answer_of_each_kind_of_run(self):
        cases = [(case(i, cls, False, rank, stack), False) for i, (cls, rank, stack) in enumerate(
            [("A", 0, "vllm"), ("A", 1, "vllm"), ("B", 2, "vllm"), ("C", 3, "fsdp")])]
        self.assertAlmostEqual(leak.chance(cases, "class"), 3 / 4)
        self.assertAlmostEqual(leak.chance(cases, "rank"), 2 / 4)

    def test_a_rank_is_guessed_at_least_as_often_as_by_a_die(self):
        cases = [(case(i, "A", False, rank=i % 4), False) for i in range(8)]
        self.assertAlmostEqual(leak.chance(cases, "rank"), 1 / 4)


class Blind(unittest.TestCase):
    def rows(self, true, shuffled):
        report = leak.Report()
        leak.blind(report, true, shuffled, 1)
        return {(row["source"], row["faults"], row["figure"]): row["above_chance"] for row in report.rows}

    def test_what_true_labels_add_is_a_leak(self):
        draw = random.Random(3)
        guessed = [scores([draw.random() < 0.4 for _ in range(80)]) for _ in range(2)]
        known = scores([draw.random() < 0.9 for _ in range(80)])
        self.assertEqual(self.rows(known, guessed), {(source, faults, figure): True for source in ("all", "simulated") for faults in ("all", leak.TIMED)
                                                     for figure in ("class", "rank")})

    def test_what_a_fault_itself_does_to_counts_is_none(self):
        draw = random.Random(6)
        classes = ("PROC_DEATH", "CPU_STARVED")
        guessed = [scores([draw.random() < 0.3 for _ in range(160)], classes) for _ in range(3)]
        effects = scores([i % 2 == 0 or draw.random() < 0.3 for i in range(160)], classes)
        rows = self.rows(effects, guessed)
        self.assertTrue(rows["all", "all", "rank"])
        self.assertFalse(rows["all", leak.TIMED, "rank"])

    def test_guesses_are_none(self):
        draw = random.Random(4)
        runs = [scores([draw.random() < 0.4 for _ in range(80)]) for _ in range(4)]
        self.assertFalse(any(self.rows(runs[0], runs[1:]).values()))

    def test_shuffled_lessons_at_chance_are_no_leak(self):
        draw = random.Random(5)
        runs = [scores([draw.random() < 0.2 for _ in range(80)]) for _ in range(3)]
        report = leak.Report()
        leak.after_shuffle(report, runs, 1)
        self.assertTrue(report.rows)
        self.assertFalse(any(row["above_chance"] for row in report.rows))


@unittest.skipUnless(setup.is_ready(), "SKIPPED: no scikit-learn here; ./dev lab setup baselines installs it")
class Stragglers(unittest.TestCase):
    def test_the_rule_names_the_rank_that_begins_the_most_uneven_collective_last(self):
        program = textwrap.dedent("""
            import json
            import numpy as np
            from lab.baselines.collective import HtaStraggler, Longest
            from lab.baselines.task import Case

            def meeting(op, step, starts, end):
                return {"op": op, "step": step, "transfer_ns": 0, "members": [{"rank": r, "arrival_ns": s, "end_ns": end, "wait_ns": 0} for r, s in enumerate(starts)]}

            steps, ms = 6, 1_000_000
            meetings = []
            for i in range(steps):
                at = i * 100 * ms
                meetings += [meeting("even", i, [at, at + ms, at], at + 40 * ms), meeting("uneven", i, [at + 50 * ms, at + 52 * ms, at + 80 * ms], at + 90 * ms)]
                meetings += [meeting("short", i, [at + 91 * ms, at + 91 * ms, at + 91 * ms + 1000], at + 91 * ms + 2000)]
            case = Case("c", [0, 1, 2], [], [0] * steps, np.arange(steps), ["decode"] * steps, np.full(steps, 100.0 * ms), np.zeros((steps, 4)), [], np.zeros((steps, 0)),
                        [[]] * steps, meetings, [], {})
            first = lambda method, params: method.fit([], params, 1)(case).candidates[0]
            print(json.dumps([first(HtaStraggler(), {"candidates": 1})["rank"], first(HtaStraggler(), {"candidates": 1})["op"], first(Longest(), {})["rank"]]))
            """)
        done = subprocess.run([setup.python(), "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(done.stdout.strip(), '[2, "uneven", 0]')


if __name__ == "__main__":
    unittest.main()
