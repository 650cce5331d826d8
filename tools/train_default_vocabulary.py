#!/usr/bin/env python3
"""Trains the vocabulary that is built into the program, data/tpe/default.tpe, on the runs of a data folder.

usage: train_default_vocabulary.py DATA [--teller PROGRAM] [-o FILE]

Runs are DATA/lab/ENGINE/RUN, and all traces below DATA/traces: a folder of them that holds ranks of one job is one run.
"""
import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MERGES = 4096


def runs_below(data):
    """The runs, in a fixed order."""
    runs = sorted(path for path in (data / "lab").glob("*/*") if path.is_dir())
    for path in sorted((data / "traces").rglob("*")):
        if path.is_file() and path.name.endswith((".json.gz", ".json", ".sqlite")):
            runs.append(path.parent if path.name.startswith(("rank", "profile_trace_rank", "graph_capture", "decode_step")) else path)
    return list(dict.fromkeys(runs))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--teller", default=str(ROOT / "build" / "release" / "teller"))
    parser.add_argument("-o", "--output", default=str(ROOT / "data" / "tpe" / "default.tpe"))
    args = parser.parse_args()
    runs = runs_below(args.data)
    if not runs:
        sys.exit(f"no runs below {args.data}")
    done = subprocess.run([args.teller, "tpe", "train", *map(str, runs), "--vocab", str(MERGES), "-o", args.output], check=False)
    # 3: some of the runs are damaged on purpose.
    return 0 if done.returncode in (0, 3) else done.returncode


if __name__ == "__main__":
    sys.exit(main())
