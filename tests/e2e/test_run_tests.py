"""The test runner itself: what it was asked for and does not have is no success."""
import os
import subprocess
import sys
import unittest

from harness import ROOT, Case


class Only(Case):
    def run_tests(self, pattern):
        (self.folder / "teller_nothing_tests").write_text("#!/bin/sh\nexit 7\n")
        return subprocess.run([sys.executable, ROOT / "tools/run_tests.py", "--build", self.folder, "--only", pattern], capture_output=True, text=True,
                              env={**os.environ, "TELLER": "/nowhere"}, timeout=300)

    def test_a_pattern_that_matches_nothing_is_refused_with_one_line(self):
        done = self.run_tests("gremlins")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", 'run_tests: no test program and no test is named like "gremlins"\n'))

    def test_a_pattern_that_matches_runs_that_alone(self):
        done = self.run_tests("Lint.test_floors_sees")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "1 passed, 0 failed"), done.stdout)


if __name__ == "__main__":
    unittest.main()
