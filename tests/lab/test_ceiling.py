"""The upper mark of what can be seen: planted excess is seen, noise is not, and the rank that has it is named."""
import json
import pathlib
import random
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from lab import ceiling, costs  # noqa: E402

STEP = 10_000_000


def features(seed, ranks=1, steps=40, slow=None, op_slow=None, wait=0):
    """Lines as `teller export --to features` writes them. `slow`, `op_slow`: (rank, first, last, factor)."""
    draw, at, lines, number = random.Random(seed), 1_000, [], 0
    within = lambda what, rank, i: what and rank == what[0] and what[1] <= i <= what[2]
    for i in range(steps):
        for rank in range(ranks):
            time = STEP * draw.uniform(0.97, 1.03)
            op = 0.02 * STEP * draw.uniform(0.9, 1.1) * (op_slow[3] if within(op_slow, rank, i) else 1)
            time = (time + op) * (slow[3] if within(slow, rank, i) else 1)
            lines.append({"type": "step", "step": number, "rank": rank, "index": i, "kind": "decode", "shape": "decode b1", "work": -1, "new_tokens": 1, "begin_ns": at,
                          "end_ns": at + int(time), "gap_ns": 100_000, "observer": i == 0})
            lines.append({"type": "op", "step": number, "op": "aten::mm", "total_ns": int(op)})
            number += 1
        at += 2 * STEP
        if wait:
            members = [{"rank": rank, "arrival_ns": at - 2 * STEP + 5, "wait_ns": 0 if rank else wait} for rank in range(ranks)]
            lines.append({"type": "collective", "step": None, "transfer_ns": 77, "members": members})
    return [json.dumps(line) for line in lines]


def make(name, lines, ranks=1, first=None, last=None, **culprit):
    rows = costs.parse(lines)
    label = {"case": name, "is_fault": first is not None, "fault_class": "X", "fault_kind": "x", "source": "simulated", "stack": "vllm", "world_size": ranks,
             "culprit": culprit if first is not None else None, "abnormal_steps": [], "visible_in": None, "t_start_ns": None, "t_end_ns": None, "intervals_ns": []}
    if first is not None:
        label["abnormal_steps"] = [{"index": i, "ranks": [[rows[r][i].begin, rows[r][i].end] for r in range(ranks)]} for i in range(first, last + 1)]
        label["t_start_ns"], label["t_end_ns"] = rows[0][first].begin, rows[0][last].end
    return ceiling.Case(pathlib.Path(name), label, rows, *ceiling.sort_rows(label, rows))


def look(case, ranks=1):
    controls = [make(f"c{i}", features(100 + i, ranks), ranks) for i in range(4)]
    return ceiling.look(case, ceiling.Marks(ceiling.controls_of([case, *controls], [], "", pathlib.Path())))


class Look(unittest.TestCase):
    def test_slow_steps_are_seen(self):
        told = look(make("f", features(1, slow=(0, 10, 19, 1.5)), first=10, last=19))
        self.assertTrue(told["visible"] and told["clear"])
        self.assertEqual((told["steps"], told["seen"], told["alone"]), (10, 10, 10))

    def test_noise_is_not_seen(self):
        told = [look(make("f", features(seed), first=10, last=19)) for seed in range(40)]
        self.assertEqual(sum(one["clear"] for one in told), 0)
        # Ten steps and their window against the largest of 160 steps and of a few independent windows: one in ten exceeds one of them.
        self.assertLessEqual(sum(one["visible"] for one in told), 6)

    def test_an_operator_shows_where_the_step_does_not(self):
        lines = features(2, op_slow=(0, 10, 19, 1.6))
        self.assertTrue(look(make("f", lines, first=10, last=19, operator="aten::mm"))["clear"])
        self.assertFalse(look(make("f", lines, first=10, last=19))["clear"])

    def test_a_long_window_shows_less_than_its_steps_do(self):
        told = look(make("f", features(3, slow=(0, 10, 24, 1.025)), first=10, last=24))
        self.assertTrue(told["visible"])
        self.assertLess(told["alone"], told["steps"])

    def test_a_fault_of_the_whole_run_has_nothing_to_compare_with(self):
        self.assertIsNone(look(make("f", features(4, slow=(0, 0, 39, 3)), first=0, last=39)))

    def test_the_rank_with_the_largest_excess_is_named(self):
        right = make("f", features(5, 3, slow=(2, 10, 19, 1.5)), 3, first=10, last=19, rank=2)
        self.assertTrue(look(right, 3)["rank"])
        wrong = make("f", features(5, 3, slow=(2, 10, 19, 1.5)), 3, first=10, last=19, rank=1)
        self.assertFalse(look(wrong, 3)["rank"])


class Cases(unittest.TestCase):
    def test_drafts_are_none(self):
        with tempfile.TemporaryDirectory(suffix=".part") as folder:  # a root is what was asked for, whatever its name
            root = pathlib.Path(folder)
            for case in ("one", "deep/two", "set.part/three", ".four.partial-7"):
                (root / case).mkdir(parents=True)
                (root / case / "label.json").write_text("{}")
            self.assertEqual(ceiling.cases_in([root]), [root / "deep/two", root / "one"])
            self.assertEqual(ceiling.cases_in([root / "one", root]), [root / "deep/two", root / "one"])


class Costs(unittest.TestCase):
    def test_waits_go_to_the_step_of_their_rank(self):
        rows = costs.parse(features(6, ranks=2, wait=1_000_000))
        self.assertEqual({row.wait for row in rows[0]}, {1_000_000})
        self.assertEqual({row.wait for row in rows[1]}, {0})
        self.assertEqual({row.transfer for row in rows[0] + rows[1]}, {77})

    def test_steps_of_other_sizes_are_compared_with_the_nearest(self):
        row = lambda size, time: costs.Row(0, 0, "prefill", f"t{size}", size, 0, time, 0, False)
        others = [row(size, 1000 * size) for size in (10, 11, 12, 13, 14, 90, 91, 92, 93, 94)]
        over = lambda size, peers: costs.Peers(peers).excess([row(size, 2000 * size)], costs.at_place("step"), True)
        self.assertEqual(over(12, others) + over(92, others), [1, 1])
        self.assertEqual(over(12, others[:2]), [None])
        self.assertEqual([peer.size for peer in costs.Peers(others).of(row(92, 0), range(0))], [92, 91, 93, 90, 94])

    def test_a_window_left_out_is_as_if_it_had_not_been_there(self):
        draw = random.Random(9)
        for _ in range(200):
            rows = [costs.Row(0, i, draw.choice(("prefill", "decode")), f"t{draw.randrange(4)}", draw.randrange(9), 0, draw.randrange(1, 99), draw.randrange(9), False) for i in range(draw.randrange(30))]
            first = draw.randrange(len(rows) + 1)
            window = rows[first:first + draw.randrange(12)]
            place, relative = costs.at_place(draw.choice(("step", "gap", "own"))), draw.random() < 0.5
            rest = costs.Peers(rows[:first] + rows[first + len(window):])
            self.assertEqual(costs.Peers(rows).excess(window, place, relative, range(first, first + len(window))), rest.excess(window, place, relative))

    def test_names_are_compared_as_the_scorer_does(self):
        self.assertTrue(costs.same_name("Model.Layers.2.mlp", "model layers 2 mlp"))
        self.assertTrue(costs.same_name("aten::mm", "mm") is False and costs.same_name("aten::addmm", "addmm"))


class Truth(unittest.TestCase):
    def test_steps_that_no_rank_finished_are_not_asked(self):
        case = make("f", features(7), first=20, last=20)
        case.label["abnormal_steps"][0]["ranks"][0][1] = None
        abnormal, _ = ceiling.sort_rows(case.label, case.rows)
        self.assertEqual(abnormal, {0: []})

    def test_where_no_steps_are_told_the_injection_tells_them(self):
        case = make("f", features(8), first=20, last=21)
        case.label |= {"abnormal_steps": None, "intervals_ns": [[case.rows[0][5].begin + 10, case.rows[0][5].begin + 20]]}
        abnormal, healthy = ceiling.sort_rows(case.label, case.rows)
        self.assertEqual([row.index for row in abnormal[0]], [5])
        self.assertFalse({5, 20, 21, 0} & {row.index for row in healthy[0]})


if __name__ == "__main__":
    unittest.main()
