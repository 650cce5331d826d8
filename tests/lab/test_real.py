"""The full list of real cases and the table of what is visible where, without an engine: a runner and a program that stand for them."""
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from lab import real, stacks, visible  # noqa: E402
from lab.errors import LabError  # noqa: E402
from lab.fault import Fault, Stack  # noqa: E402


def fault(kind, culprit=None, **more):
    return Fault(kind, "", "PROC_DEATH" if culprit else "NOT_A_FAULT", culprit=culprit, **more)


def stack(name, *faults):
    return Stack(name, "1", "tiny", None, {f.kind: f for f in faults}, None)


def write_case(folder, **label):
    folder.mkdir(parents=True)
    (folder / "server.log").write_text("line\n")
    base = {"is_fault": True, "fault_class": "PROC_DEATH", "accept_classes": [], "fault_kind": "killed", "seed": 1, "stack": "one", "world_size": 1,
            "culprit": {"rank": 0}, "accept_ranks": None, "background": {"whole_case": 0.1}}
    (folder / "label.json").write_text(json.dumps({**base, **label}))


class Engine:
    """Makes cases of what it is told to; fails on kinds that it was given."""

    def __init__(self, bad=(), busy=()):
        """`bad`: kinds that fail; `busy`: kinds during which the machine was busy the first time."""
        self.bad, self.busy, self.ran = bad, set(busy), []

    def __call__(self, stack, say, **options):
        self.stack = stack
        return self

    def run(self, plan, after):
        for kind, seed, folder in plan:
            self.ran.append((self.stack.name, kind, seed))
            error = LabError("it died\nwith a log") if kind in self.bad else None
            if not error:
                write_case(folder, stack=self.stack.name, fault_kind=kind, seed=seed,
                           culprit=self.stack.faults[kind].culprit, background={"whole_case": 1.5 if kind in self.busy else 0.1})
                self.busy.discard(kind)
            after(kind, seed, error)
        if self.bad:
            raise LabError("some cases were not made")


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="teller-real-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class List(Folder):
    stacks = [stack("one", fault("healthy"), fault("killed", {}, last=True), fault("warm-up", fresh=True), fault("slow", {})),
              stack("two", fault("healthy"), fault("slow", {}))]

    def make(self, engine, tries=1, limit=None, **more):
        planned = real.plan(self.stacks, self.folder, **more)
        failed = real.make(self.stacks, planned, engine, say=lambda text: None, tries=tries, limit=limit)
        return planned, real.summary(planned, failed)

    def test_every_kind_of_every_stack_is_planned_and_look_alikes_twice(self):
        planned = real.plan(list(stacks.ALL.values()), self.folder)
        for one in stacks.ALL.values():
            for f in one.faults.values():
                seeds = [c.seed for c in planned if (c.stack, c.kind) == (one.name, f.kind)]
                self.assertEqual(sorted(seeds), [] if f.why_not() else [1] if f.culprit else [1, 2], (one.name, f.kind))
        self.assertEqual(len({c.folder for c in planned}), len(planned))

    def test_the_list_is_as_long_as_it_has_to_be(self):
        planned = real.plan(list(stacks.ALL.values()), self.folder)
        self.assertGreaterEqual(len(planned), 60)
        self.assertGreaterEqual(len({c.stack for c in planned}), 3)
        self.assertGreaterEqual(len({c.kind for c in planned if c.is_fault}), 12)
        self.assertGreaterEqual(len({c.kind for c in planned if not c.is_fault}), 5)
        for name in stacks.ALL:
            self.assertIn((name, "healthy"), {(c.stack, c.kind) for c in planned})

    def test_which_kinds_share_an_engine_is_drawn(self):
        many = [stack("one", *(fault(f"kind{i:02}", {}) for i in range(20)))]
        order = lambda seed: [c.kind for c in real.plan(many, self.folder, seed=seed)]
        self.assertEqual(order(1), order(1))
        self.assertNotEqual(order(1), order(2))
        self.assertEqual(sorted(order(1)), sorted(order(2)))
        neighbours = sum(int(b[4:]) - int(a[4:]) == 1 for a, b in zip(order(1), order(1)[1:]))
        self.assertLess(neighbours, 8)  # of 19; the table's own order has 19

    def test_engines_are_started_seldom(self):
        faults = [fault("a"), fault("end", last=True), fault("start", fresh=True), fault("small", options=(("n", 1),)), fault("b"), fault("end2", last=True)]
        order = [(f.kind, seed) for f, seed in real.in_order([(f, seed) for f in faults for seed in (1, 2)])]
        self.assertEqual(len(set(order)), 12)
        self.assertEqual(order[order.index(("small", 1)) + 1], ("small", 2))
        self.assertEqual([pair for pair in order if pair[0] != "small"],
                         [("start", 1), ("a", 1), ("a", 2), ("b", 1), ("b", 2), ("end", 1), ("start", 2), ("end", 2), ("end2", 1), ("end2", 2)])

    def test_a_list_goes_on_where_it_stopped(self):
        first = Engine(bad=("slow",))
        _, made = self.make(first)
        self.assertEqual([(f["stack"], f["kind"]) for f in made["failed"]], [("one", "slow"), ("two", "slow")])
        second = Engine()
        planned, made = self.make(second)
        self.assertEqual(second.ran, [("one", "slow", 1), ("two", "slow", 1)])
        self.assertEqual(made["failed"], [])
        self.assertEqual(made["cases"], len(planned))
        third = Engine()
        self.make(third)
        self.assertEqual(third.ran, [])

    def test_what_is_in_the_way_is_said_and_left_alone(self):
        write_case(self.folder / "two" / "slow-1", fault_kind="another")
        (self.folder / "one" / "slow-1").mkdir(parents=True)
        engine = Engine()
        _, made = self.make(engine)
        self.assertEqual(sorted((f["stack"], f["kind"]) for f in made["failed"]), [("one", "slow"), ("two", "slow")])
        self.assertTrue(all("remove it" in f["why"] for f in made["failed"]))
        self.assertNotIn(("two", "slow", 1), engine.ran)
        self.assertNotIn("slow", made["counts"]["two"])

    def test_a_stack_that_cannot_run_fails_and_the_others_are_made(self):
        def runner(stack, say, **options):
            if stack.name == "one":
                raise LabError("the one stack is not set up")
            return engine(stack, say)
        engine = Engine()
        _, made = self.make(runner)
        self.assertEqual(set(made["counts"]), {"two"})
        self.assertEqual({f["why"] for f in made["failed"]}, {"the one stack is not set up"})
        self.assertEqual(len(made["failed"]), 6)

    def test_the_summary_counts_by_stack_and_kind(self):
        _, made = self.make(Engine())
        self.assertEqual((made["cases"], made["stacks"], made["fault_kinds"], made["look_alikes"]), (9, 2, 2, 1))
        self.assertEqual(made["counts"]["one"], {"healthy": 2, "killed": 1, "warm-up": 2, "slow": 1})
        text = real.text(made)
        self.assertIn("9 cases of 2 stacks", text)
        _, made = self.make(Engine(bad=("slow",)), kinds=("slow",), seed=7)
        self.assertIn("not made: two slow seed 7: it died", real.text(made))

    def test_what_fails_is_tried_again_as_often_as_said(self):
        engine = Engine(bad=("slow",))
        _, made = self.make(engine, tries=3)
        self.assertEqual(engine.ran.count(("one", "slow", 1)), 3)
        self.assertEqual(engine.ran.count(("one", "healthy", 1)), 1)
        self.assertEqual(len(made["failed"]), 2)

    def test_a_case_of_a_busy_machine_is_counted_or_made_again(self):
        planned, made = self.make(Engine(busy=("warm-up",)))
        first = next(c for c in planned if c.kind == "warm-up")
        self.assertEqual(made["disturbed"], [f"one/{first.folder.name}"])
        self.assertIn("1 of them were made while other programs", real.text(made))
        shutil.rmtree(self.folder / "one")
        engine = Engine(busy=("warm-up",))
        _, made = self.make(engine, tries=2, limit=0.5)
        self.assertEqual((engine.ran.count(("one", "warm-up", first.seed)), engine.ran.count(("one", "healthy", 1))), (2, 1))
        self.assertEqual((made["disturbed"], made["failed"]), ([], []))
        shutil.rmtree(self.folder / "one")
        _, made = self.make(Engine(busy=("warm-up",)), tries=1, limit=0.5)
        self.assertIn("other programs used 1.5 processors", made["failed"][0]["why"])
        self.assertFalse((self.folder / "one" / first.folder.name).exists())

    def test_other_work_that_is_the_fault_is_no_disturbance(self):
        stacks = [stack("one", fault("hogs", {"layer": "host"}))]
        planned = real.plan(stacks, self.folder)
        self.assertEqual(real.make(stacks, planned, Engine(busy=("hogs",)), say=lambda text: None, limit=0.5), {})
        self.assertEqual(real.summary(planned, {})["disturbed"], [])

    def test_what_the_machine_cannot_have_is_no_failure(self):
        stacks = [stack("one", fault("healthy"), fault("quota", {}, why_not=lambda: "no cgroups here"))]
        planned = real.plan(stacks, self.folder)
        self.assertEqual({case.kind for case in planned}, {"healthy"})
        text = real.text(real.summary(planned, {}, real.impossible(stacks)))
        self.assertIn("not possible here: one quota: no cgroups here", text)
        self.assertEqual(real.impossible(stacks, ("healthy",)), [])

    def test_kinds_that_no_stack_has_are_refused(self):
        with self.assertRaisesRegex(LabError, "nonsense"):
            real.plan(self.stacks, self.folder, kinds=("nonsense",))


# Says PROC_DEATH on rank 1 where it is given a log, SCHED_STALL on rank 0 where it is given a trace; what it is given is noted.
PROGRAM = """#!{python}
import json, os, sys
run = sys.argv[2]
names = sorted(os.listdir(run))
with open({seen!r}, "a") as file:
    file.write(run + " " + " ".join(names) + "\\n")
if os.path.exists(os.path.join(run, "spans.jsonl")) and len(names) == 1:
    sys.exit("teller: cannot read this")
kind = ("PROC_DEATH", 1) if "server.log" in names else ("SCHED_STALL", 0) if "traces" in names else None
print(json.dumps({{"findings": [{{"class": kind[0], "culprit": {{"rank": kind[1]}}}}] if kind else []}}))
"""


class Table(Folder):
    def setUp(self):
        super().setUp()
        self.teller = self.folder / "teller"
        self.seen = self.folder / "seen"
        self.teller.write_text(PROGRAM.format(python=sys.executable, seen=str(self.seen)))
        self.teller.chmod(self.teller.stat().st_mode | stat.S_IXUSR)
        self.cases = self.folder / "cases"

    def rows(self):
        return visible.run(self.cases, str(self.teller))

    def test_each_view_gets_its_inputs_and_never_the_truth(self):
        write_case(self.cases / "one" / "killed-1")
        for name in ("requests.jsonl", "evidence.json", "metrics.txt"):
            (self.cases / "one" / "killed-1" / name).write_text("x")
        (self.cases / "one" / "killed-1" / "traces").mkdir()
        (self.cases / "one" / ".half.partial-1").mkdir()
        (self.cases / "one" / ".half.partial-1" / "label.json").write_text("{}")
        write_case(self.cases / "set.part" / "killed-2")
        self.rows()
        seen = [line.split() for line in self.seen.read_text().splitlines()]
        self.assertEqual(sorted(words[1:] for words in seen), [["metrics.txt"], ["metrics.txt", "server.log", "traces"], ["server.log"], ["traces"]])
        self.assertFalse([words for words in seen if "killed" in words[0]])

    def test_found_class_and_rank_are_counted_by_kind_and_view(self):
        for number, rank in ((1, 1), (2, 0)):
            write_case(self.cases / f"killed-{number}", world_size=2, culprit={"rank": rank})
            (self.cases / f"killed-{number}" / "traces").mkdir()
        write_case(self.cases / "healthy", fault_kind="healthy", is_fault=False, fault_class="NOT_A_FAULT", culprit=None)
        rows = self.rows()
        healthy, killed = visible.by_kind(rows)
        self.assertEqual(killed["views"]["logs"], {"cases": 2, "found": 2, "class": 2, "rank": 1})
        self.assertEqual(killed["views"]["traces"], {"cases": 2, "found": 2, "class": 0, "rank": 1})
        self.assertIsNone(killed["views"]["spans, counters"])
        self.assertEqual(killed["shown_by"], ["logs"])
        self.assertIsNone(healthy["shown_by"])
        text = visible.text(visible.by_kind(rows), rows)
        self.assertIn("alarm 1 of 1", text)
        self.assertIn("all: 2 of 2 faults found, 2 with the right class; 1 of 1 others gave a false alarm", text)

    def test_accepted_classes_count_and_what_only_the_whole_shows_is_said(self):
        write_case(self.cases / "a", fault_class="KV_PRESSURE", accept_classes=["SCHED_STALL"])
        (self.cases / "a" / "traces").mkdir()
        (self.cases / "a" / "server.log").unlink()
        self.assertEqual(visible.by_kind(self.rows())[0]["shown_by"], ["traces"])
        self.assertEqual(visible.shown_by({"logs": {"cases": 1, "class": 0}, visible.WHOLE: {"cases": 1, "class": 1}}), ["only together"])

    def test_a_case_that_cannot_be_diagnosed_is_listed(self):
        write_case(self.cases / "a")
        (self.cases / "a" / "spans.jsonl").write_text("x")
        (self.cases / "b").mkdir()
        (self.cases / "b" / "label.json").write_text("[]")
        done = subprocess.run([sys.executable, "-m", "lab", "visible", str(self.cases), "--teller", str(self.teller)], cwd=ROOT, capture_output=True,
                              text=True, env={**os.environ, "TELLER_LAB_HOME": str(self.folder / "home")})
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("cannot read this", done.stdout)
        self.assertEqual(done.stdout.count("not diagnosed"), 2)

    def test_errors_are_one_line(self):
        self.cases.mkdir()
        write_case(self.folder / "some" / "a")
        for args, says in (([str(self.cases), "--teller", str(self.teller)], "no case"), ([str(self.folder / "some"), "--teller", "/nowhere"], "no program")):
            done = subprocess.run([sys.executable, "-m", "lab", "visible", *args], cwd=ROOT, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main()
