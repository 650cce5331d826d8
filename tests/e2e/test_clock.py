"""Two hosts whose clocks differ: the offset is found, printed and taken out of every time across ranks."""
import json
import random
import unittest

from harness import Case, span, teller, trace

OFFSET_US = 4_000_000


class TwoHosts(Case):
    def run_folder(self, collectives=60):
        rng = random.Random(3)
        ranks = [[], []]
        at = 1000.0
        for _ in range(collectives):
            at += 4000 + rng.random() * 4000
            for rank, shift in ((0, 0), (1, OFFSET_US)):
                arrival = at - rng.random() * 500
                end = at + 800 + rng.random() * 5
                ranks[rank].append(span("gloo:all_reduce", arrival + shift, end - arrival, cat="user_annotation", pid=10 + rank))
        for rank in (0, 1):
            info = {"distributedInfo": {"rank": rank, "world_size": 2}, "host_name": f"host{rank}"}
            self.write(f"run/rank{rank}.json", trace(ranks[rank], **info))
        return self.folder / "run"

    def test_offset_is_found_and_printed(self):
        run = self.run_folder()
        verdict, _ = self.diagnose(run)
        clock = verdict["input"]["clock"]
        self.assertEqual(clock["method"], "collectives")
        moved = [r for r in clock["ranks"] if r["corrected"]]
        self.assertEqual(len(moved), 1)
        self.assertAlmostEqual(abs(moved[0]["offset_ns"]), OFFSET_US * 1000, delta=10_000)
        self.assertLess(clock["error_ns"], 20_000)
        text = teller("inspect", run).stdout.decode()
        self.assertRegex(text, r"clocks of the ranks: collectives, \+/- ")
        self.assertRegex(text, r"rank +1 +corrected by \+4")
        self.assertRegex(teller("tree", run, "--stats").stdout.decode(), r"clock +clocks of the ranks: collectives")
        inspected = json.loads(teller("inspect", run, "--json").stdout)
        for collective in inspected["collectives"]:
            ends = [m["end_ns"] for m in collective["members"]]
            self.assertLess(max(ends) - min(ends), 30_000)

    def test_nothing_to_calibrate_is_said(self):
        verdict, _ = self.diagnose(self.run_folder(collectives=2))
        self.assertEqual(verdict["input"]["clock"]["method"], "uncalibrated")
        self.assertIsNone(verdict["input"]["clock"]["error_ns"])
        codes = {d["code"] for d in verdict["diagnostics"]}
        self.assertIn("tree.clock_uncalibrated", codes)


if __name__ == "__main__":
    unittest.main()
