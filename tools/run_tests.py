#!/usr/bin/env python3
"""Runs every test and ends with the line "N passed, N failed" (", N skipped" when some were).

usage: run_tests.py [--build DIR] [--only PATTERN]

Unit tests: all DIR/**/teller_*_tests (GoogleTest). End-to-end tests: tests/**/test_*.py (unittest), which find the program
in the environment variable TELLER. A skipped test never counts as passed; a program that dies counts as one failure, and so does a
build without any test program.
Sanitizer builds run the same tests, without the browser.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Totals:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.bad = []

    def fail(self, name):
        self.failed += 1
        self.bad.append(name)

    def line(self):
        text = f"{self.passed} passed, {self.failed} failed"
        return text + (f", {self.skipped} skipped" if self.skipped else "")


SKIP = re.compile(r"^(.+):(\d+): Skipped\n(.*)$", re.M)


def skip_reason(test, text):
    """What a skipped test of a program said: the first reason at or below its own line. The report names none."""
    said = [(int(line), reason) for file, line, reason in SKIP.findall(text) if file == test.get("file") and int(line) >= test.get("line", 0)]
    return min(said, default=(0, ""))[1] or "no reason given"


def count_gtest(report, program, totals, text):
    for suite in report.get("testsuites", []):
        for test in suite.get("testsuite", []):
            name = f"{program}: {suite['name']}.{test['name']}"
            if test.get("failures"):
                totals.fail(name)
            elif test.get("result") == "SKIPPED":
                totals.skipped += 1
                print(f"SKIPPED {name} ({skip_reason(test, text)})")
            elif test.get("status") == "RUN":
                totals.passed += 1


def run_gtest(program, totals):
    """One test program. Its output is shown when something failed."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        done = subprocess.run([program, f"--gtest_output=json:{report}", "--gtest_brief=1"], cwd=ROOT,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = done.stdout.decode(errors="replace")
        before = totals.failed
        try:
            count_gtest(json.loads(report.read_text()), program.name, totals, text)
        except (OSError, ValueError):
            totals.fail(f"{program.name}: died with status {done.returncode}")
        if done.returncode != 0 and totals.failed == before:
            totals.fail(f"{program.name}: exit status {done.returncode}")
        if totals.failed > before:
            print(text)
    print(f"{program.name}: {time.monotonic() - start:.1f} s", flush=True)


def find_python(pattern):
    """The end-to-end tests whose names hold the pattern."""
    suite = unittest.TestSuite()
    loader = unittest.TestLoader()
    sys.path.insert(0, str(ROOT / "tests"))
    sys.path.insert(0, str(ROOT / "tools"))
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        sys.path.insert(0, str(path.parent))
        for group in loader.loadTestsFromName(path.stem):
            for test in group:
                if not pattern or pattern in test.id():
                    suite.addTest(test)
        sys.path.pop(0)
    return suite


def run_python(suite, totals):
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    broken = {test.id() for test, _ in result.failures + result.errors}
    for name in sorted(broken):
        totals.fail(name)
    for test, reason in result.skipped:
        print(f"SKIPPED {test.id()}: {reason}")
    totals.skipped += len(result.skipped)
    totals.passed += max(0, result.testsRun - len(broken) - len(result.skipped))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    build = (ROOT / args.build).resolve()
    os.environ["TELLER"] = str(build / "teller")
    os.environ["TELLER_BUILD"] = str(build)
    totals = Totals()
    programs = sorted(p for p in build.rglob("teller_*_tests") if p.is_file())
    if not programs:
        totals.fail(f"{args.build}: no teller_*_tests programs; build first")
    chosen = [program for program in programs if args.only in program.name]
    suite = find_python(args.only)
    if args.only and not chosen and not suite.countTestCases():
        print(f"run_tests: no test program and no test is named like \"{args.only}\"", file=sys.stderr)
        return 2
    for program in chosen:
        run_gtest(program, totals)
    run_python(suite, totals)
    for name in totals.bad:
        print(f"FAILED {name}")
    print(totals.line())
    return 1 if totals.failed or not totals.passed else 0


if __name__ == "__main__":
    sys.exit(main())
