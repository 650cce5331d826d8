"""The fault laboratory's own verbs: planting faults into recorded runs, and checking labelled cases."""
import gzip
import json
import pathlib
import unittest

import jsonschema
from harness import DEMO, ROOT, SHARED, Case, teller

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

    def test_factor_one_moves_little(self):
        folder, _ = self.retime(DEMO, "--fault", "straggler", "--rank", 0, "--scale", 1)
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
                            (("--fault", "straggler", "--scale", "0.5"), "scale")):
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


class Check(Case):
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


if __name__ == "__main__":
    unittest.main()
