"""Suspects: whom to look at first where nothing is proved. Named, shown as no verdict, and nothing else depends on them."""
import json
import re

from harness import Case, teller


class Suspects(Case):
    def healthy(self):
        done = teller("lab", "simulate", "--engine", "fsdp", "--ranks", 3, "--fault", "none", "--steps", 20, "--seed", 5, "-o", self.folder / "cases")
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.folder / "cases" / "case-00001"

    def test_a_healthy_run_has_suspects_and_stays_normal(self):
        case = self.healthy()
        done = teller("diagnose", case, "--format", "json", "--fail-on-finding")
        self.assertEqual(done.returncode, 0, done.stderr)
        verdict = json.loads(done.stdout)
        self.check(verdict)
        self.assertEqual(verdict["verdict"]["status"], "normal")
        self.assertEqual(verdict["findings"], [])
        self.assertTrue(1 <= len(verdict["suspects"]) <= 5)
        self.assertNotIn(verdict["suspects"][0]["text"], verdict["verdict"]["summary"])

    def test_the_text_says_that_they_are_no_verdict(self):
        case = self.healthy()
        first = json.loads(teller("diagnose", case, "--format", "json").stdout)["suspects"][0]["text"]
        words = lambda text: re.sub(r"\s+", " ", text)
        text = words(teller("diagnose", case).stdout.decode())
        self.assertTrue(text.startswith("NOTHING ABNORMAL"), text)
        self.assertIn("not proved if something was slow all the same, look first at: " + words(first), text)

    def test_neither_order_nor_threads_matter(self):
        case = self.healthy()
        paths = sorted(p for p in case.rglob("*.json*") if "trace" in p.name or "rank" in p.name)
        self.assertGreaterEqual(len(paths), 3)
        told = []
        for some, threads in ((paths, 1), (paths, 4), (paths[::-1], 2), (paths[1:] + paths[:1], 3)):
            verdict, _ = self.diagnose(*some, "--threads", threads)
            for suspect in verdict["suspects"]:
                self.assertTrue(suspect["text"])
            told.append(verdict["suspects"])
        for other in told[1:]:
            self.assertEqual(told[0], other)


if __name__ == "__main__":
    import unittest
    unittest.main()
