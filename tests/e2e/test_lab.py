"""The fault laboratory's own verbs: planting faults into recorded runs, and checking labelled cases."""
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import jsonschema
from harness import DEMO, ROOT, SHARED, TELLER, Case, teller

LABEL_SCHEMA = json.loads((ROOT / "docs" / "reference" / "teller.label-1.schema.json").read_text())


def spans(folder):
    """Names with their durations in ns, of all traces of a run."""
    out = []
    for path in sorted(pathlib.Path(folder).glob("traces/*")):
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for event in json.loads(text)["traceEvents"]:
            if event.get("ph") == "X":
                out.append((event["name"], round(event["dur"] * 1000)))
    return out


class Retime(Case):
    def retime(self, run, *args, status=0):
        folder = self.folder / "case"
        done = teller("lab", "retime", run, "-o", folder, *args)
        self.assertEqual(done.returncode, status, done.stderr)
        if status == 0:
            label = json.loads((folder / "label.json").read_text())
            jsonschema.validate(label, LABEL_SCHEMA)
            checked = teller("lab", "check", folder)
            self.assertEqual(checked.returncode, 0, checked.stdout)
            return folder, label
        self.assertFalse(folder.exists())
        self.assertFalse(folder.with_name("case.part").exists())
        self.assertEqual(done.stderr.count(b"\n"), 1)
        return done.stderr.decode(), None

    @unittest.skipUnless(SHARED.is_dir(), "SKIPPED: no ../shared beside the repository")
    def test_slow_operator_in_a_healthy_run_is_found(self):
        run = SHARED / "data/lab/fsdp/healthy_fsdp2_w2"
        folder, label = self.retime(run, "--fault", "slow-operator", "--op", "aten::mm", "--rank", 1, "--scale", 8)
        self.assertEqual(label["culprit"]["rank"], 1)
        self.assertEqual(label["culprit"]["operator"], "aten::mm")
        (self.folder / "case" / "label.json").unlink()
        verdict, _ = self.diagnose(folder)
        self.assertEqual(verdict["findings"][0]["culprit"]["rank"], 1)
        self.assertEqual(verdict["findings"][0]["culprit"]["op"], "aten::mm")

    @unittest.skipUnless(SHARED.is_dir(), "SKIPPED: no ../shared beside the repository")
    def test_nothing_but_times_changes(self):
        run = SHARED / "data/lab/fsdp/healthy_fsdp2_w2"
        folder, _ = self.retime(run, "--fault", "straggler", "--scale", 2, "--seed", 5)
        before = json.loads(teller("inspect", run / "traces", "--json").stdout)
        after = json.loads(teller("inspect", folder / "traces", "--json").stdout)
        self.assertEqual(before["totals"]["spans"] if "totals" in before else len(before["files"]),
                         after["totals"]["spans"] if "totals" in after else len(after["files"]))
        self.assertEqual([s["name"] for s in before["step_list"]], [s["name"] for s in after["step_list"]])
        again = self.folder / "again"
        self.assertEqual(teller("lab", "retime", run, "-o", again, "--fault", "straggler", "--scale", 2, "--seed", 5).returncode, 0)
        for path in sorted(folder.rglob("*.json")):
            self.assertEqual(path.read_bytes().replace(b'"case": "case"', b""),
                             (again / path.relative_to(folder)).read_bytes().replace(b'"case": "again"', b""))

    def test_the_size_of_a_trace_does_not_tell_the_fault(self):
        sizes = set()
        for i, args in enumerate((("none",), ("straggler", "--scale", "3.7"), ("straggler", "--scale", "1.3"))):
            case = self.folder / f"sized{i}"
            self.assertEqual(teller("lab", "retime", DEMO, "-o", case, "--fault", *args).returncode, 0)
            sizes.add(tuple(path.stat().st_size for path in sorted((case / "traces").iterdir())))
        self.assertEqual(len(sizes), 1)

    def test_a_control_moves_little_and_is_no_fault(self):
        folder, label = self.retime(DEMO, "--fault", "none")
        self.assertEqual([label[key] for key in ("is_fault", "fault_class", "culprit", "t_start_ns", "abnormal_steps")], [False, "NOT_A_FAULT", None, None, None])
        before, after = spans(DEMO), spans(folder)
        self.assertEqual([name for name, _ in before], [name for name, _ in after])
        total = sum(duration for _, duration in before)
        self.assertLess(abs(sum(duration for _, duration in after) - total), 0.03 * total)

    def test_what_cannot_be_planted_is_refused(self):
        for args, words in ((("--fault", "gremlins"), "no fault is called"),
                            (("--fault", "slow-operator"), "needs --op"),
                            (("--fault", "slow-operator", "--op", "aten::nothing"), "nothing is named"),
                            (("--fault", "straggler", "--rank", 99), "rank 99"),
                            (("--fault", "straggler", "--first-step", 9999), "no step from 9999"),
                            (("--fault", "pause", "--length", "soon"), "no duration"),
                            (("--fault", "straggler", "--scale", "nan"), "scale"),
                            (("--fault", "straggler", "--scale", "0.5"), "scale"),
                            (("--fault", "straggler", "--scale", "1"), "changes nothing"),
                            (("--fault", "slow-operator", "--op", "aten::mm", "--scale", "1"), "changes nothing"),
                            (("--fault", "pause", "--length", "0ms"), "changes nothing"),
                            (("--fault", "straggler", "--scale", "1.0000001"), "no step longer"),
                            (("--fault", "pause", "--length", "10ns"), "no step longer"),
                            (("--fault", "pause", "--scale", "2"), "--fault pause has no --scale"),
                            (("--fault", "straggler", "--length", "1ms"), "--fault straggler has no --length"),
                            (("--fault", "straggler", "--op", "aten::mm"), "--fault straggler has no --op"),
                            (("--fault", "slow-operator", "--op", "aten::mm", "--peer", 1), "--fault slow-operator has no --peer"),
                            (("--fault", "none", "--scale", 2), "--fault none has no --scale"),
                            (("--fault", "none", "--rank", 1), "--fault none has no --rank"),
                            (("--fault", "straggler", "--seed", -1), "whole number from 0"),
                            (("--fault", "straggler", "--rank", -1), "whole number from 0"),
                            (("--fault", "straggler", "--first-step", "1e3"), "whole number from 0"),
                            (("--fault", "straggler", "--last-step", 2**32), "whole number from 0"),
                            (("--fault", "slow-link", "--rank", 0, "--peer", 0), "two ends")):
            with self.subTest(args=args):
                message, _ = self.retime(DEMO, *args, status=2)
                self.assertIn(words, message)

    def test_an_existing_folder_is_left_alone(self):
        (self.folder / "case").mkdir()
        done = teller("lab", "retime", DEMO, "-o", self.folder / "case", "--fault", "straggler")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"is there already", done.stderr)
        self.assertEqual(list((self.folder / "case").iterdir()), [])

    def test_a_place_that_cannot_be_written_leaves_nothing(self):
        done = teller("lab", "retime", DEMO, "-o", "/proc/case", "--fault", "straggler")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"cannot be written", done.stderr)


    def test_a_full_disk_leaves_nothing(self):
        disk = self.small_disk()
        self.fails("lab", "retime", DEMO, "-o", disk / "case", "--fault", "straggler", says="cannot be written")
        self.assertEqual(list(disk.iterdir()), [])

    def test_odd_runs_and_places_are_one_line(self):
        (self.folder / "empty").mkdir()
        (self.folder / "loop").symlink_to("loop")
        (self.folder / "nowhere").symlink_to("gone")
        (self.folder / "file").write_text("")
        out = self.folder / "out"
        for run, place, says in ((self.folder / "gone", out, "gone"), (self.folder / "empty", out, "empty"), (self.folder / "loop", out, "loop"),
                                 (DEMO, self.folder / "nowhere", "is there already"), (DEMO, self.folder / "loop", "is there already"),
                                 (DEMO, self.folder / "file/case", "cannot be written"), (DEMO, "-", "name the folder"), (DEMO, self.folder / ("x" * 300), "cannot be written")):
            with self.subTest(run=run, place=place):
                self.fails("lab", "retime", run, "-o", place, "--fault", "straggler", says=says)
        done = teller("lab", "retime", DEMO, "-q", "-o", str(self.folder) + "/a/b\udcff/", "--fault", "straggler")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(os.listdir(os.fsencode(self.folder / "a"))), [b"b\xff"])
        self.assertEqual(teller("lab", "check", self.folder / "a").returncode, 0)


class Check(Case):
    def case(self, name, **changes):
        """The bundled run with a label that is right except for the changes."""
        shutil.copytree(DEMO, self.folder / name)
        begin = json.loads(teller("diagnose", DEMO, "--format", "json").stdout)["input"]["begin_ns"]
        label = {"schema": "teller.label/1", "is_fault": True, "fault_class": "KERNEL_REGRESSION", "fault_kind": "slow", "world_size": 3, "stack": "torch",
                 "seed": 1, "culprit": {"rank": 2, "layer": "op", "operator": "aten::mm"}, "t_start_ns": begin + 10**6, "t_end_ns": begin + 2 * 10**6,
                 "visible_in": ["trace"], **changes}
        self.write(f"{name}/label.json", json.dumps(label))
        return label

    def test_each_wrong_label_gets_one_line_that_says_why(self):
        label = self.case("right")
        begin, end = label["t_start_ns"], label["t_end_ns"]
        control = {"is_fault": False, "fault_class": "NOT_A_FAULT", "t_start_ns": None, "t_end_ns": None, "visible_in": []}
        for name, changes, words in (
                ("early", {"t_start_ns": begin - 3600 * 10**9}, "the window lies outside the run"),
                ("late", {"t_end_ns": end + 3600 * 10**9}, "the window lies outside the run"),
                ("class", {"fault_class": "GREMLINS"}, 'unknown class "GREMLINS"'),
                ("accepted", {"accept_classes": ["GREMLINS"]}, 'unknown class "GREMLINS"'),
                ("spans", {"visible_in": ["trace", "spans"]}, 'visible in "spans", but the file for it is missing'),
                ("rank", {"culprit": {"rank": 3, "layer": "op"}}, "names rank 3, but the run has 3 ranks"),
                ("line", {"culprit": {"rank": 2, "layer": "op", "log_record": "nobody says this"}}, 'no log has the labelled line "nobody says this"'),
                ("empty", {"culprit": {"rank": 2, "layer": "op", "log_record": ""}}, '"log_record" holds an empty text'),
                ("nameless", {"fault_kind": ""}, '"fault_kind" holds an empty text'),
                ("nowhere", {"visible_in": []}, '"visible_in" of a fault has no place'),
                ("victim", {"victims": [7]}, "names rank 7, but the run has 3 ranks"),
                ("culprit", control, "a culprit on a case that is no fault")):
            with self.subTest(name):
                self.case(name, **changes)
                done = teller("lab", "check", self.folder / name)
                self.assertEqual(done.returncode, 2, done.stdout)
                lines = done.stdout.decode().splitlines()
                self.assertEqual(len(lines), 2, lines)
                self.assertIn(words, lines[0])
                self.assertTrue(lines[0].startswith(f"{self.folder / name / 'label.json'}: "), lines[0])
                self.assertEqual(lines[1], "1 case checked, 1 with problems")
        self.assertEqual(teller("lab", "check", self.folder / "right").returncode, 0)

    def test_problems_are_one_line_each(self):
        self.write("a/label.json", json.dumps({"schema": "teller.label/1", "is_fault": False, "fault_class": "NOT_A_FAULT",
                                               "fault_kind": "none", "world_size": 1, "culprit": {"layer": "op"}}))
        self.write("b/label.json", "{")
        done = teller("lab", "check", self.folder)
        self.assertEqual(done.returncode, 2)
        lines = done.stdout.decode().splitlines()
        self.assertEqual(lines[-1], "2 cases checked, 2 with problems")
        self.assertTrue(any("a culprit on a case that is no fault" in line for line in lines))
        self.assertTrue(any("no input beside the label" in line for line in lines))
        self.assertTrue(any("no JSON object" in line for line in lines))

    def test_every_line_names_a_file_before_a_colon(self):
        self.case("right")
        for name, content in (("large", b" " * (4 << 20) + b"{}"), ("text", b"\xff\xfe"), ("deep", b"[" * 100_000)):
            self.write(f"{name}/label.json", content)
        (self.folder / "gone").mkdir()
        (self.folder / "gone/label.json").symlink_to("label.json")
        shutil.copytree(self.folder / "right", self.folder / "bare", ignore=lambda *_: ["traces", "logs"])
        shutil.copytree(self.folder / "right", self.folder / "broken", ignore=lambda *_: ["traces", "logs"])
        self.write("broken/traces/rank0.json", "{")
        done = teller("lab", "check", self.folder)
        self.assertEqual((done.returncode, done.stderr), (2, b""))
        lines = done.stdout.decode().splitlines()
        self.assertEqual(lines[-1], "7 cases checked, 6 with problems")
        for line in lines[:-1]:
            file, colon, what = line.partition(": ")
            self.assertTrue(colon and os.path.lexists(file) and what.strip(), line)

    def test_drafts_are_no_cases_and_a_case_named_twice_is_one(self):
        self.case("cases/right")
        for draft in ("cases/.right.partial-7", "cases/set.part/case-00001"):
            self.write(f"{draft}/label.json", "{")
        (self.folder / "again").symlink_to(self.folder / "cases")
        done = teller("lab", "check", self.folder / "cases", self.folder / "again", self.folder / "cases/right")
        self.assertEqual((done.returncode, done.stdout), (0, b"1 case checked, 0 with problems\n"))

    def test_no_case_is_an_error(self):
        done = teller("lab", "check", self.folder)
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn(b"no case here", done.stderr)

    @unittest.skipUnless(SHARED.is_dir(), "SKIPPED: no ../shared beside the repository")
    def test_shared_cases_are_whole(self):
        done = teller("lab", "check", SHARED / "data" / "lab")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_faults_that_can_be_planted_are_listed(self):
        done = teller("lab", "list")
        self.assertEqual(done.returncode, 0)
        for fault in ("slow-operator", "straggler", "pause", "slow-link"):
            self.assertIn(fault, done.stdout.decode())


class Python(Case):
    """Verbs that are handed to the laboratory's part in Python."""

    def run_copy(self, *args, **env):
        """The program where it has been installed, away from its sources."""
        program = self.folder / "usr/bin/teller"
        if not program.exists():
            program.parent.mkdir(parents=True)
            shutil.copy(TELLER, program)
        clean = {key: value for key, value in os.environ.items() if key not in ("TELLER_LAB_PATH", "PYTHONPATH")}
        return subprocess.run([program, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, cwd=self.folder, env={**clean, **env})

    def expect_one_line(self, done, words):
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(words, done.stderr)

    def test_without_the_laboratory_an_error_says_what_to_do(self):
        self.expect_one_line(self.run_copy("lab", "run", "vllm", "--fault", "healthy", "-o", "case"), "TELLER_LAB_PATH")
        self.expect_one_line(self.run_copy("lab", "run", TELLER_LAB_PATH=str(self.folder)), "no lab/__main__.py in it")
        listed = self.run_copy("lab", "list")
        self.assertEqual(listed.returncode, 0)
        self.assertIn("slow-operator", listed.stdout)
        self.assertIn("not known", listed.stdout)

    def test_it_is_found_beside_the_program_or_where_it_is_said_to_be(self):
        alone = subprocess.run([sys.executable, "-m", "lab", "list"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertIn(alone, teller("lab", "list").stdout.decode())
        self.assertIn(alone, self.run_copy("lab", "list", TELLER_LAB_PATH=str(ROOT)).stdout)
        subprocess.run(["cmake", "--install", pathlib.Path(TELLER).parent, "--prefix", self.folder / "usr"], stdout=subprocess.DEVNULL, check=True)
        self.assertIn(alone, self.run_copy("lab", "list").stdout)

    def test_words_that_it_does_not_know_are_one_line(self):
        self.write("lab/__main__.py", "raise SystemExit(7)")  # not ours: it only lies where the user is
        for args in (("gremlins",), ("setup", "gremlins"), ("run", "vllm"), ("retimed",), ("leak",), ("baselines", "gremlins")):
            with self.subTest(args):
                self.expect_one_line(self.run_copy("lab", *args, TELLER_LAB_PATH=str(ROOT)), "lab: ")


if __name__ == "__main__":
    unittest.main()
