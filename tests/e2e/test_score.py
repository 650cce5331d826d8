"""Scoring methods on labelled cases: neutral copies, outside methods, figures against scikit-learn's, broken answers."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import unittest

import jsonschema
from harness import BASE_NS, DEMO, ROOT, SHARED, TELLER, Case, span, teller, trace

SCHEMA = json.loads((ROOT / "docs/reference/teller.scores-1.schema.json").read_text())
ANSWER_SCHEMA = json.loads((ROOT / "docs/reference/teller.answer-1.schema.json").read_text())
LAB_HOME = pathlib.Path(os.environ.get("TELLER_LAB_HOME") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "teller-lab")
LAB_PYTHON = LAB_HOME / "baselines/venv/bin/python"
STEPS = 14
COUNTED = range(1, STEPS)  # the recorder's start touches the first


class Score(Case):
    def make_case(self, name, abnormal, extra=None):
        """Steps of 10 ms, those in `abnormal` 40 ms longer in aten::mm."""
        events, at = [], 1000.0
        for i in range(STEPS):
            dur = 10_000 + 37 * ((i * 7) % 5) + (40_000 if i in abnormal else 0)
            events.append(span(f"ProfilerStep#{i}", at, dur, cat="user_annotation"))
            events.append(span("aten::mm", at + 500, dur - 5000, **{"Input Dims": [[64, 64], [64, 64]]}))
            events.append(span("aten::add", at + dur - 4000, 3000, **{"Input Dims": [[64, 64], [64, 64]]}))
            at += dur + 200
        self.write(f"cases/{name}/traces/rank0.json", trace(events))
        begin, end = BASE_NS, BASE_NS + int(at * 1000)
        label = {"schema": "teller.label/1", "is_fault": bool(abnormal), "fault_class": "KERNEL_REGRESSION" if abnormal else "NOT_A_FAULT",
                 "fault_kind": "slow" if abnormal else "none", "world_size": 1, "stack": "torch", "seed": 1,
                 "culprit": {"layer": "op", "operator": "aten::mm"} if abnormal else None, "abnormal_steps": sorted(abnormal) if abnormal else None,
                 "t_start_ns": begin if abnormal else None, "t_end_ns": begin if abnormal else None, "visible_in": ["trace"] if abnormal else []}
        label.update(extra or {})
        self.write(f"cases/{name}/label.json", json.dumps(label))
        self.write(f"cases/{name}/requests.jsonl", "{}\n")
        self.write(f"cases/{name}/evidence.json", "{}\n")

    def make_cases(self):
        truth = {"calm1": set(), "calm2": set(), "slow1": {4, 5}, "slow2": {9}, "slow3": {2, 6, 7}}
        for name, abnormal in truth.items():
            self.make_case(name, abnormal)
        return truth

    def method(self, body):
        """An outside method: a script whose `say(name, index)` gives the answer to one case, None for none."""
        lines = ["import json, os, pathlib, sys", "task = json.load(open(sys.argv[1]))", textwrap.dedent(body), "for i, name in enumerate(task['test']):",
                 "    answer = say(name, i)", "    if answer is not None:",
                 "        answer = {'schema': 'teller.answer/1', 'case': name, **answer} if isinstance(answer, dict) else answer",
                 "        text = json.dumps(answer) if isinstance(answer, dict) else answer",
                 "        pathlib.Path(task['answers'], name + '.json').write_text(text)"]
        return f"own={sys.executable} {self.write('method.py', chr(10).join(lines))}"

    def score(self, *args, status=(0,)):
        folder = self.folder / f"results{len(list(self.folder.glob('results*')))}"
        done = teller("lab", "score", self.folder / "cases", "-o", folder, "--resamples", 20, *args, timeout=900)
        self.assertIn(done.returncode, status, done.stderr.decode())
        scores = json.loads((folder / "scores.json").read_text())
        jsonschema.validate(scores, SCHEMA)
        self.assertEqual((folder / "scores.txt").read_bytes(), done.stdout)
        self.assertFalse((folder / "work").exists() and "--keep-work" not in args)
        return scores, folder, done

    @staticmethod
    def figures(scores, method, group="all", value="all"):
        tables = next(m for m in scores["methods"] if m["name"] == method)["tables"]
        return {k: v["value"] for k, v in next(t for t in tables if (t["group"], t["value"]) == (group, value))["figures"].items()}

    def test_the_program_scores_itself(self):
        self.make_case("calm", set())
        shutil.copytree(DEMO, self.folder / "cases/demo")
        self.write("cases/demo/label.json", json.dumps({
            "schema": "teller.label/1", "is_fault": True, "fault_class": "KERNEL_REGRESSION", "fault_kind": "slow", "world_size": 3, "stack": "torch", "seed": 1,
            "culprit": {"rank": 2, "layer": "op", "operator": "aten::mm"}, "abnormal_steps": None, "t_start_ns": BASE_NS, "t_end_ns": BASE_NS + 1, "visible_in": ["trace"]}))
        scores, folder, _ = self.score("--method", "teller")
        figures = self.figures(scores, "teller")
        self.assertEqual([figures[k] for k in ("answered", "false_alarms", "case_f1", "op_ac1", "rank_ac1", "right")], [1, 0, 1, 1, 1, 1])
        for path in (folder / "answers/teller").iterdir():
            answer = json.loads(path.read_text())
            jsonschema.validate(answer, ANSWER_SCHEMA)
            self.assertGreater(answer["peak_bytes"], 1 << 20)
        page = (folder / "scores.html").read_text()
        self.assertIn("<svg", page)
        for word in ("http://", "https://", "<script", "src="):
            self.assertNotIn(word, page)

    def test_verdicts_are_tested_by_retiming(self):
        shutil.copytree(DEMO, self.folder / "cases/demo")
        self.write("cases/demo/label.json", json.dumps({
            "schema": "teller.label/1", "is_fault": True, "fault_class": "KERNEL_REGRESSION", "fault_kind": "slow", "world_size": 3, "stack": "torch", "seed": 1,
            "culprit": {"rank": 2, "layer": "op", "operator": "aten::mm"}, "abnormal_steps": None, "t_start_ns": BASE_NS, "t_end_ns": BASE_NS + 1, "visible_in": ["trace"]}))
        alone, folder, _ = self.score("--method", "teller")
        self.assertEqual(alone["confirmed"], [])
        steps = json.loads(next((folder / "answers/teller").iterdir()).read_text())["steps"]
        own = self.method(f"def say(name, i): return {{'status': 'abnormal', 'steps': {steps!r}, 'threshold': 0, 'candidates': [{{'rank': 0, 'op': 'aten::mm', 'p': 1}}]}}")
        scores, folder, _ = self.score("--method", "teller", "--method", own, "--retest")
        told = {m["name"]: {(row["view"], row["group"]): (row["verdicts"], row["right"]) for row in m["confirmed"]} for m in scores["methods"]}
        self.assertEqual(told["teller"]["horizontal", ">= 0.3"], (1, 1))
        self.assertEqual(told["teller"]["vertical", ">= 0.3"], (1, 1))
        self.assertEqual(told["own"]["horizontal", "< 0.3"], (1, 0))
        self.assertEqual(told["own"]["vertical", "< 0.3"], (1, 0), "the right operator of the wrong rank")
        self.assertEqual(scores["confirmed"], next(m for m in scores["methods"] if m["name"] == "own")["confirmed"], "TELLER is no part of it")
        self.assertIn("gone with the accused at its normal time", (folder / "scores.txt").read_text())
        self.assertIn("Would the repair help?", (folder / "scores.html").read_text())

    def test_methods_get_neither_truth_nor_names(self):
        self.make_cases()
        method = self.method("""
            def say(name, i):
                here = pathlib.Path(task["cases"], name)
                found = sorted(str(p.relative_to(here)) for p in here.rglob("*") if p.is_file())
                assert found == ["traces/rank0.json"], found
                assert set(task["train"]) == set() and "slow" not in json.dumps(task).replace(task["cases"], "")
                assert any(json.loads(l)["type"] == "step" for l in open(pathlib.Path(task["features"], name + ".jsonl")))
                return {"status": "normal", "confidence": 0.5}
            """)
        scores, _, _ = self.score("--method", method)
        self.assertEqual(scores["methods"][0]["problems"], [])
        self.assertEqual(self.figures(scores, "own")["answered"], 1)
        self.assertTrue(all(case["name"].startswith("case-") for case in scores["cases"]))

    def test_bad_answers_are_no_answers_and_are_said(self):
        self.make_cases()
        method = self.method("""
            def say(name, i):
                return [None, "{", {"status": "perhaps"}, {"status": "normal", "case": "other"}, {"status": "abstained"}][i]
            """)
        scores, _, done = self.score("--method", method, status=(3,))
        self.assertAlmostEqual(self.figures(scores, "own")["answered"], 0.2)
        self.assertEqual(scores["methods"][0]["unanswered"], 4)
        self.assertIn(b"own: no answer to 4 of 5 cases\n", done.stdout)
        self.assertEqual(done.stderr.splitlines()[-1], b"teller: own gave no answer to 4 of 5 cases; scores.txt says why")
        self.assertAlmostEqual(self.figures(scores, "own")["abstained"], 0.2)
        self.assertEqual(len(scores["methods"][0]["problems"]), 3)
        self.assertEqual(self.figures(scores, "own")["right"], 0)

    def test_a_method_that_dies_costs_only_its_answers(self):
        self.make_cases()
        scores, _, done = self.score("--method", "teller", "--method", "own=false", status=(3,))
        self.assertEqual(self.figures(scores, "own")["answered"], 0)
        self.assertEqual(self.figures(scores, "teller")["answered"], 1)
        self.assertIn("ended with status 1", scores["methods"][1]["problems"][0])
        self.assertEqual([m["unanswered"] for m in scores["methods"]], [0, 5])

    def test_a_method_that_fails_behind_its_answers_is_no_success(self):
        self.make_cases()
        name = self.method("""
            import atexit
            atexit.register(os._exit, 4)
            def say(name, i):
                return {"status": "normal", "confidence": 0.5}
            """)
        scores, _, done = self.score("--method", name, status=(3,))
        self.assertEqual(scores["methods"][0]["unanswered"], 0)
        self.assertIn(b"own failed after its answers", done.stderr)

    def test_where_nobody_answers_there_is_nothing_to_score(self):
        self.make_cases()
        out = self.folder / "out"
        self.fails("lab", "score", self.folder / "cases", "-q", "-o", out, "--method", "own=false", "--method", "other=true",
                   says="no method answered a case (own: all: ended with status 1)")
        self.assertFalse(out.exists() or out.with_name("out.part").exists())

    def test_a_case_that_is_named_twice_counts_once(self):
        self.make_case("calm", set())
        self.make_case("slow", {4})
        (self.folder / "cases/again").symlink_to(self.folder / "cases/slow")
        out = self.folder / "out"
        done = teller("lab", "score", self.folder / "cases", self.folder / "cases/slow", self.folder / "cases/again", "-o", out, "--resamples", 0)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads((out / "scores.json").read_text())["cases_read"], 2)

    def test_a_full_disk_leaves_nothing(self):
        self.make_cases()
        for size in ("4k", "40k", "120k"):
            with self.subTest(size):
                disk = self.small_disk(size)
                self.fails("lab", "score", self.folder / "cases", "-q", "-o", disk / "out", "--method", "teller", says="cannot be written")
                self.assertEqual(list(disk.iterdir()), [])
                subprocess.run(["umount", disk], check=True)
                disk.rmdir()

    def test_names_that_are_no_text_are_scored_or_refused(self):
        self.make_case("calm", set())
        os.rename(self.folder / "cases/calm", self.folder / "cases/b\udcff")
        done = teller("lab", "score", self.folder / "cases", "-q", "-o", self.folder / "out", "--method", "teller")
        self.assertEqual(done.returncode, 0, done.stderr)
        json.loads((self.folder / "out/scores.json").read_text())
        self.fails("lab", "score", self.folder / "cases", "-q", "-o", str(self.folder / "o\udcff"), "--method", "own=true", says="no UTF-8")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["cases", "out"])

    def sleeping(self):
        """A method that starts a child in its group and waits."""
        code = "import os, pathlib, subprocess, sys, time\nchild = subprocess.Popen(['sleep', '600'])\n"
        code += f"pathlib.Path({str(self.folder / 'pids')!r}).write_text(f'{{os.getpid()}} {{child.pid}}')\ntime.sleep(600)\n"
        return f"own={sys.executable} {self.write('sleep.py', code)}"

    def test_a_scorer_that_is_stopped_leaves_neither_processes_nor_files(self):
        self.make_case("calm", set())
        alive = lambda pid: pathlib.Path(f"/proc/{pid}/stat").exists() and " Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
            with self.subTest(number):
                (self.folder / "pids").unlink(missing_ok=True)
                run = subprocess.Popen([TELLER, "lab", "score", self.folder / "cases", "-q", "-o", self.folder / "out", "--method", self.sleeping()],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
                                       preexec_fn=lambda: [signal.signal(s, signal.SIG_DFL) for s in (signal.SIGINT, signal.SIGHUP)])  # a test in the background inherits them ignored
                self.addCleanup(run.stderr.close)
                until = time.monotonic() + 60
                while not ((self.folder / "pids").exists() and (pids := (self.folder / "pids").read_text().split())):
                    self.assertLess(time.monotonic(), until)
                    time.sleep(0.02)
                self.assertTrue((self.folder / "out.part").is_dir())
                run.send_signal(number)
                status = run.wait(timeout=60)
                if number == signal.SIGKILL:
                    self.assertEqual(status, -number)
                    while (self.folder / "out.part").exists() or any(map(alive, pids)):
                        self.assertLess(time.monotonic(), until)
                        time.sleep(0.02)
                else:
                    self.assertEqual((status, run.stderr.read()), (2, b"teller: interrupted; nothing was kept\n"))
                self.assertFalse((self.folder / "out.part").exists() or (self.folder / "out").exists())
                self.assertFalse(any(map(alive, pids)))

    def test_what_a_method_leaves_running_ends_with_it(self):
        self.make_case("calm", set())
        code = f"import pathlib, subprocess\npathlib.Path({str(self.folder / 'pids')!r}).write_text(str(subprocess.Popen(['sleep', '600']).pid))\n"
        done = teller("lab", "score", self.folder / "cases", "-o", self.folder / "out", "--method", "teller", "--method",
                      f"own={sys.executable} {self.write('leave.py', code)}")
        self.assertEqual(done.returncode, 3, done.stderr)
        pid = (self.folder / "pids").read_text()
        until = time.monotonic() + 20
        while pathlib.Path(f"/proc/{pid}").exists() and " Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.02)

    def test_what_a_method_leaves_in_a_session_of_its_own_ends_with_the_scorer(self):
        self.make_case("calm", set())
        code = f"import pathlib, subprocess\nchild = subprocess.Popen(['sleep', '600'], start_new_session=True)\npathlib.Path({str(self.folder / 'pids')!r}).write_text(str(child.pid))\n"
        done = teller("lab", "score", self.folder / "cases", "-o", self.folder / "out", "--method", "teller", "--method",
                      f"own={sys.executable} {self.write('leave.py', code)}")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertFalse(pathlib.Path(f"/proc/{(self.folder / 'pids').read_text()}").exists())

    def test_a_method_has_its_seconds_for_each_case(self):
        self.make_case("calm", set())
        self.make_case("slow", {4})
        name = self.method("""
            import subprocess, time
            def say(name, i):
                if i == 1:
                    subprocess.run(["sleep", "600"])
                return {"status": "normal", "confidence": 0.5}
            """)
        begin = time.monotonic()
        scores, _, done = self.score("--timeout", 2, "--method", name, status=(3,))
        self.assertGreaterEqual(time.monotonic() - begin, 4)
        self.assertEqual(scores["methods"][0]["unanswered"], 1)
        self.assertEqual(scores["methods"][0]["problems"], ["all: the time was over: ended after 4 s"])
        self.assertIn(b"the time was over: ended after 4 s\n", done.stdout)

    def test_a_method_without_an_answer_in_time_is_refused(self):
        self.make_case("calm", set())
        self.fails("lab", "score", self.folder / "cases", "-q", "-o", self.folder / "out", "--timeout", 1, "--method", "own=sleep 600;:",
                   says="no method answered a case (own: all: the time was over: ended after 1 s)")
        self.assertEqual([p.name for p in self.folder.iterdir()], ["cases"])

    def test_lessons_tell_truth_and_shuffled_ones_do_not(self):
        self.make_cases()
        body = """
            known = [t["abnormal_steps"] for t in task["train"]]
            def say(name, i):
                return {"status": "abnormal", "confidence": 0.5, "candidates": [{"class": t["class"], "op": json.dumps(known)} for t in task["train"]]}
            """
        seen = []
        for extra in ((), ("--shuffle-labels",)):
            _, folder, _ = self.score("--method", self.method(body), "--split", "folds:5", *extra)
            ops = {path.name: json.loads(path.read_text())["candidates"] for path in (folder / "answers/own").iterdir()}
            self.assertEqual(len(ops), 5)
            seen.append(ops)
        lessons = lambda ops: sorted({c["op"] for answer in ops.values() for c in answer})
        self.assertNotEqual(lessons(seen[0]), lessons(seen[1]))

    @unittest.skipUnless(LAB_PYTHON.exists(), f"SKIPPED: {LAB_PYTHON} is missing; ./dev lab setup baselines makes it")
    def test_what_was_read_is_taken_again_and_never_when_it_is_another(self):
        self.make_cases()
        reads = self.folder / "reads"
        ask = ("--method", "3sigma,chance", "--split", "folds:3")
        steps = lambda folder: [json.loads(path.read_text())["steps"] for path in sorted((folder / "answers/3sigma").iterdir())]
        plain, plain_folder, _ = self.score(*ask)
        first, first_folder, _ = self.score(*ask, "--reads", reads)
        features = sorted((reads / "features").iterdir())
        times = [path.stat().st_mtime_ns for path in features]
        second, second_folder, _ = self.score(*ask, "--reads", reads)
        self.assertEqual(times, [path.stat().st_mtime_ns for path in features])
        self.assertEqual(steps(plain_folder), steps(first_folder))
        self.assertEqual(steps(first_folder), steps(second_folder))
        self.assertEqual([path.name.split("-")[0] for path in (reads / "said").iterdir()], ["3sigma"])  # `chance` learns, so it is asked anew
        # Another seed deals other folds, and the names stay those of the reading.
        third, _, _ = self.score(*ask, "--reads", reads, "--seed", 5)
        self.assertEqual([c["name"] for c in first["cases"]], [c["name"] for c in third["cases"]])
        refused = lambda *args: teller("lab", "score", self.folder / "cases", "-o", self.folder / "no", "--reads", reads, *args)
        done = refused("--method", "teller,chance")
        self.assertEqual((done.returncode, b"baselines alone" in done.stderr), (2, True), done.stderr)
        self.make_case("calm1", {3})
        done = refused(*ask)
        self.assertEqual((done.returncode, b"has changed since" in done.stderr), (2, True), done.stderr)
        shutil.rmtree(self.folder / "cases/calm1")
        self.make_case("new", set())
        done = refused(*ask)
        self.assertEqual((done.returncode, b"was not among" in done.stderr), (2, True), done.stderr)
        (reads / "reads.json").write_text(json.dumps({"cases": [3, {"folder": 3, "name": [], "stamp": None}]}))
        done = refused(*ask)
        self.assertEqual((done.returncode, b"was not among" in done.stderr), (2, True), done.stderr)
        (reads / "reads.json").unlink()
        done = refused(*ask)
        self.assertEqual((done.returncode, b"came to its end" in done.stderr), (2, True), done.stderr)

    def test_same_seed_same_scores(self):
        self.make_cases()
        strip = lambda scores: [{"g": t["group"], "v": t["value"], "f": {k: v for k, v in t["figures"].items() if "wall" not in k and "peak" not in k}}
                                for t in scores["methods"][0]["tables"]]
        one, two = (self.score("--method", "teller", "--threads", n)[0] for n in (1, 3))
        self.assertEqual(strip(one), strip(two))
        self.assertEqual([c["name"] for c in one["cases"]], [c["name"] for c in two["cases"]])

    @unittest.skipUnless(LAB_PYTHON.exists(), "SKIPPED: no scikit-learn here; ./dev lab setup baselines installs it")
    def test_figures_are_those_of_scikit_learn(self):
        truth = self.make_cases()
        draw = random.Random(11)
        values = {name: [draw.choice((0.1, 0.4, 0.6, 0.9)) for _ in range(STEPS)] for name in truth}
        classes = {"calm1": "NOT_A_FAULT", "calm2": "PROC_DEATH", "slow1": "KERNEL_REGRESSION", "slow2": "NOT_A_FAULT", "slow3": "PROC_DEATH"}
        # The method finds out which case it has by the lengths of its steps, as a test may.
        method = self.method(f"""
            values, truth, classes = {values!r}, {truth!r}, {classes!r}
            def say(name, i):
                steps = [s for s in map(json.loads, open(pathlib.Path(task["features"], name + ".jsonl"))) if s["type"] == "step"]
                long = {{s["step"] for s in steps if s["end_ns"] - s["begin_ns"] > 30_000_000}}
                mine = [k for k in truth if truth[k] == long]
                key = mine[0] if len(mine) == 1 or not globals().setdefault("used", []) else mine[1]
                if len(mine) == 2: used.append(key)
                return {{"status": "normal" if classes[key] == "NOT_A_FAULT" else "abnormal", "confidence": 0.7, "threshold": 0.5,
                        "steps": [{{"step": i, "score": v}} for i, v in enumerate(values[key])], "candidates": [{{"class": classes[key]}}]}}
            """)
        scores, _, _ = self.score("--method", method)
        ours = self.figures(scores, "own")
        program = textwrap.dedent("""
            import json, sys
            from sklearn.metrics import average_precision_score, f1_score, precision_score
            truth, score, prior, true_class, said = json.loads(sys.stdin.read())
            n, p = len(truth), sum(truth)
            weight = [prior / p if t else (1 - prior) / (n - p) for t in truth]
            flag = [s >= 0.5 for s in score]
            print(json.dumps([average_precision_score(truth, score), average_precision_score(truth, score, sample_weight=weight), f1_score(truth, flag),
                              f1_score(truth, flag, sample_weight=weight), precision_score(truth, flag, sample_weight=weight),
                              f1_score(true_class, said, average="macro", labels=sorted(set(true_class)))]))
            """)
        flat_truth = [i in truth[name] for name in truth for i in COUNTED]
        flat_score = [values[name][i] for name in truth for i in COUNTED]
        data = [flat_truth, flat_score, 0.1, ["KERNEL_REGRESSION" if truth[n] else "NOT_A_FAULT" for n in truth], [classes[n] for n in truth]]
        done = subprocess.run([LAB_PYTHON, "-c", program], input=json.dumps(data), stdout=subprocess.PIPE, text=True, check=True)
        theirs = dict(zip(("step_pr_auc", "step_pr_auc_at_10", "step_f1", "step_f1_at_10", "step_precision_at_10", "class_macro_f1"), json.loads(done.stdout)))
        for name, value in theirs.items():
            self.assertAlmostEqual(ours[name], value, places=9, msg=name)
        # 59 healthy steps cannot show a rate of 1 %.
        self.assertIsNone(ours["step_f1_at_1"])

    @unittest.skipUnless(LAB_PYTHON.exists(), "SKIPPED: no scikit-learn here; ./dev lab setup baselines installs it")
    def test_every_baseline_answers(self):
        self.make_cases()
        names = [line.split()[0] for line in subprocess.run([LAB_PYTHON, "-m", "lab.baselines", "list"], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                                                            check=True).stdout.splitlines()]
        self.assertGreaterEqual(len(names), 18)
        scores, _, _ = self.score("--method", ",".join(["3sigma", "lof", "ecod", "random-forest", "hta-straggler", "template-sequence", "chance"]), "--split", "folds:2")
        for method in scores["methods"]:
            self.assertEqual(method["problems"], [], method["name"])
            self.assertEqual(self.figures(scores, method["name"])["answered"], 1, method["name"])
            self.assertTrue(all(fold["search"] for fold in method["remarks"].values()))

    def test_what_cannot_be_scored_is_refused(self):
        self.make_case("calm", set())
        out = self.folder / "out"
        done = teller("lab", "score", self.folder / "cases", "-q", "-o", out, "--method", "gremlin")
        self.assertEqual((done.returncode, done.stderr.count(b"\n")), (2, 1), done.stderr)
        self.assertRegex(done.stderr, b"no baseline is called|baselines are not set up")
        for args, words in ((("-o", out, "--method", "teller,teller"), "given twice"),
                            (("-o", out, "--method", "a b=true"), "a name has letters"),
                            (("-o", out, "--method", "own="), "no command"),
                            (("-o", out, "--split", "thirds"), "no split is called"),
                            (("-o", out, "--split", "seed:2"), "no share"),
                            (("-o", self.folder / "cases"), "is there already"),
                            (("-o", "/proc/out"), "cannot be written"),
                            (("-o", out, "--seed", "-1"), "whole number from 0"),
                            (("-o", out, "--seed", "9223372036854775808"), "whole number from 0"),
                            (("-o", out, "--seed", "010"), "whole number from 0"),
                            (("-o", out, "--resamples", "-1"), "whole number from 0"),
                            (("-o", out, "--timeout", "0"), "whole number from 1"),
                            (("-o", out, "--timeout", "nan"), "whole number from 1"),
                            (("-o", out, "--threads", "-2"), "whole number from 0"),
                            (("-o", out, "--split", "folds:-1"), "no number of folds"),
                            (("-o", out, "--split", "seed:nan"), "no share"),
                            ((), "name the folder")):
            with self.subTest(args=args):
                self.fails("lab", "score", self.folder / "cases", "-q", *args, says=words)
                self.assertFalse(out.exists() or out.with_name("out.part").exists())
        self.write("cases/broken/label.json", '{"is_fault": 1}')
        self.fails("lab", "score", self.folder / "cases", "-q", "-o", out, says="lab check")

    def test_features_are_lines_of_json(self):
        self.make_case("slow", {3})
        done = teller("export", "--to", "features", self.folder / "cases/slow/traces")
        records = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(records[0]["schema"], "teller.features/1")
        steps = [r for r in records if r["type"] == "step"]
        self.assertEqual([s["step"] for s in steps], list(range(STEPS)))
        mm = {r["step"]: r["total_ns"] for r in records if r["type"] == "op" and r["op"] == "aten::mm"}
        self.assertEqual(max(mm, key=mm.get), 3)
        self.assertEqual(len(mm), STEPS)


class RetimedSet(Case):
    @unittest.skipUnless(SHARED.is_dir(), "SKIPPED: no ../shared beside the repository")
    def test_same_seed_same_cases(self):
        run = SHARED / "data/lab/fsdp/healthy_fsdp2_w2"
        for name in ("a", "b"):
            done = subprocess.run([sys.executable, "-m", "lab", "retimed", run, "-o", self.folder / name, "--count", "5", "--seed", "3", "--teller", os.environ.get("TELLER", "build/release/teller")],
                                  cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        labels = [{p.parent.name: json.loads(p.read_text()) for p in (self.folder / n).glob("*/label.json")} for n in ("a", "b")]
        self.assertEqual(labels[0], labels[1])
        # What makes no step longer is not made, and that is said.
        self.assertEqual((len(labels[0]), done.stderr.count("not made")), (4, 1), done.stderr)
        self.assertIn("4 cases of 1 runs", done.stdout)
        self.assertEqual(teller("lab", "check", self.folder / "a").returncode, 0)


class SimulatedSet(Case):
    def test_engines_ranks_and_pipelines_are_in_it_and_it_is_whole_or_not_there(self):
        run = lambda *args: subprocess.run([sys.executable, "-m", "lab", "simulated", *args, "--teller", os.environ.get("TELLER", "build/release/teller")], cwd=ROOT,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        done = run("-o", self.folder / "set", "--mix", "1", "--healthy", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        labels = [json.loads(path.read_text()) for path in (self.folder / "set").glob("*/*/label.json")]
        self.assertEqual(len(labels), 22)
        self.assertEqual({label["stack"] for label in labels}, {"vllm", "sglang", "fsdp"})
        self.assertEqual({label["world_size"] for label in labels}, {1, 2, 3, 4, 8})
        self.assertEqual({path.name for path in (self.folder / "set").glob("*-stages-none")},
                         {"vllm-2-of-2-stages-none", "sglang-3-of-3-stages-none", "sglang-4-of-2-stages-none"})
        again = run("-o", self.folder / "set", "--mix", "1")
        self.assertEqual((again.returncode, again.stderr.count("\n")), (2, 1))
        self.assertEqual(run("-o", self.folder / "no", "--mix", "-1").returncode, 2)
        self.assertEqual(run("-o", self.folder / "no", "--most-stages", "0").returncode, 2)
        self.assertEqual(run("-o", self.folder / "no", "--mix", "1", "--healthy", "0", "--steps", "0").returncode, 2)
        self.assertFalse((self.folder / "no.part").exists())


if __name__ == "__main__":
    unittest.main()
