#!/usr/bin/env python3
"""Says for each labelled run whether its traces alone, its logs alone, or only both show the fault.

usage: tools/modalities.py CASES [--teller build/release/teller]

CASES is a directory of labelled runs (label.json in each). Every run is diagnosed three times from a neutral copy: without
its logs, without its traces, and whole. A fault counts as shown when the first finding has the labelled class (or one that
the label accepts); for runs without a fault, "alarm" marks a false accusation.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

LABEL_ONLY = {"label.json", "evidence.json", "README.md", "requests.jsonl"}
LOGS = ("logs", "server.log", "log_arrival_ns.txt")
TRACES = ("traces",)


def diagnose(teller, case, leave_out):
    """The diagnosis of a copy of `case` without label, client record and the named parts; None when it has nothing to read."""
    with tempfile.TemporaryDirectory() as scratch:
        run = pathlib.Path(scratch) / "run"
        shutil.copytree(case, run, ignore=lambda _, names: [n for n in names if n in LABEL_ONLY or n in leave_out])
        done = subprocess.run([teller, "diagnose", str(run), "--format", "json"], capture_output=True, timeout=300, check=False)
        return json.loads(done.stdout) if done.stdout else None


def verdict(diagnosis, label):
    if diagnosis is None:
        return "-"
    findings = diagnosis["findings"]
    if not label["is_fault"]:
        return "alarm" if findings else "quiet"
    right = {label["fault_class"], *label.get("accept_classes", [])}
    if findings and findings[0]["class"] in right:
        return "shown"
    return "other" if findings else "no"


def summary(traces, logs, both):
    if "shown" in (traces, logs):
        return {("shown", "shown"): "either"}.get((traces, logs), "trace" if traces == "shown" else "log")
    return "only both" if both == "shown" else ("none" if both == "no" else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--teller", default="build/release/teller")
    args = parser.parse_args()
    labels = sorted(args.cases.rglob("label.json"))
    if not labels:
        sys.exit(f"{args.cases}: holds no label.json")
    print(f"{'run':<44}{'class':<20}{'traces':<8}{'logs':<8}{'both':<8}shown by")
    for path in labels:
        case = path.parent
        label = json.loads(path.read_text())
        traces = verdict(diagnose(args.teller, case, LOGS), label)
        logs = verdict(diagnose(args.teller, case, TRACES), label)
        both = verdict(diagnose(args.teller, case, ()), label)
        name = str(case.relative_to(args.cases))
        shown = summary(traces, logs, both) if label["is_fault"] else ""
        print(f"{name:<44}{label['fault_class']:<20}{traces:<8}{logs:<8}{both:<8}{shown}")


if __name__ == "__main__":
    main()
