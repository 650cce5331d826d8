"""Pages get their figures from the scorer's files: every part anew, nothing else touched, and no part without its file."""
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import fill_results  # noqa: E402

PAGE = "# Page\n\n<!-- scores real -->\nold\n<!-- end -->\n\nText that stays.\n\n<!-- measured real -->\n<!-- end -->\n"


def method(name, f1, alarms, step=(0.5, 0.4, 0.3, None)):
    figures = {"case_f1": f1, "false_alarms": alarms, "right": 0.6, "op_ac1": None, "rank_ac1": 1 / 3, "class_ac1": 0.25}
    figures |= {f"step_f1_at_{p}": v for p, v in zip(("50", "10", "1", "0_1"), step)}
    table = {"cases": 9, "faults": 4, "steps": 100, "abnormal_steps": 7, "figures": {k: {"value": v, "interval": [None, None]} for k, v in figures.items()}}
    return {"name": name, "tables": [{"group": "stack", "value": "vllm", **table}, {"group": "all", "value": "", **table}]}


class Fill(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = pathlib.Path(folder.name)

    def scores(self, name, *methods):
        (self.results / name).mkdir()
        (self.results / name / "scores.json").write_text(json.dumps({"methods": methods}))

    def test_every_part_is_written_anew_and_nothing_else(self):
        self.scores("real", method("teller", 0.1, 1.0), method("gmm", 0.5, 0.25), method("lof", 0.75, 0.5, (0.9, 0.1, 0.1, 0.1)))
        self.scores("real-teller", method("teller", 0.9, 0.0))
        page = fill_results.fill(PAGE, self.results)
        self.assertIn("9 cases asked (9 of vllm), 4 of them faults; 100 steps count, 7 of them abnormal.", page)
        self.assertIn("| teller | 0.90 | 0.00 | 0.60 | 0.50 / 0.40 / 0.30 / - | - | 0.33 | - | 0.25 |", page)
        self.assertEqual(page.count("| teller |"), 1)
        self.assertIn("| best baseline, each figure | 0.75 | 0.25 | 0.60 | 0.90 / 0.40 / 0.30 / 0.10 |", page)
        self.assertIn("Text that stays.", page)
        self.assertNotIn("old", page)
        self.assertEqual(fill_results.fill(page, self.results), page)

    def test_a_part_without_its_file_is_refused_and_nothing_is_written(self):
        page = self.results / "page.md"
        page.write_text(PAGE)
        self.scores("other", method("gmm", 0.5, 0.25))
        with self.assertRaises(SystemExit):
            fill_results.main([str(self.results), str(page)])
        self.assertEqual(page.read_text(), PAGE)

    def test_a_part_without_its_file_stays_when_only_what_is_present_is_asked_for(self):
        self.scores("real", method("teller", 0.5, 0.25))
        page = self.results / "page.md"
        page.write_text(PAGE + "<!-- scores later -->\nkept\n<!-- end -->\n<!-- leak -->\nkept too\n<!-- end -->\n")
        fill_results.main(["--present", str(self.results), str(page)])
        text = page.read_text()
        self.assertNotIn("old", text)
        self.assertIn("<!-- scores later -->\nkept\n<!-- end -->", text)
        self.assertIn("<!-- leak -->\nkept too\n<!-- end -->", text)

    def test_leaks_above_chance_are_named(self):
        row = {"part": "names-and-sizes: x", "method": "names-and-sizes", "source": "real", "faults": "of time alone", "figure": "class", "cases": 12, "value": 0.5,
               "interval": [0.25, 0.75], "chance": 0.0, "above_chance": True}
        other = {**row, "part": "After lessons", "method": "random-forest", "faults": "all"}
        (self.results / "leak.json").write_text(json.dumps({"cases": 12, "split": "folds:5", "shuffles": 3, "rows": [row, other]}))
        page = fill_results.fill("<!-- leak -->\n<!-- end -->\n", self.results)
        self.assertIn("2 figures, 2 above chance.", page)
        self.assertIn("- above chance: random-forest, real, class: 0.50", page)
        self.assertIn("| real, faults of time alone | 0.50 (0.25 to 0.75, 12) above |", page)


if __name__ == "__main__":
    unittest.main()
