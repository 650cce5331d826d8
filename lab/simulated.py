"""A set of simulated cases over engines and numbers of ranks: every kind of fault and look-alike in turn at drawn magnitudes, and healthy runs, so many that
rare false alarms can be seen.

usage: lab simulated -o CASES [--seed N] [--mix N] [--healthy N] [--steps N] [--most-ranks N] [--teller PATH]

Same numbers and seed: same cases.
"""
import os
import pathlib
import subprocess

from lab.casefile import whole_set
from lab.errors import LabError, Parser, whole

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNS = (("vllm", 1), ("vllm", 2), ("vllm", 4), ("sglang", 1), ("sglang", 4), ("fsdp", 2), ("fsdp", 4), ("fsdp", 8))


def make(teller, folder, engine, ranks, fault, count, seed, steps):
    length = [] if steps is None else ["--steps", str(steps)]
    done = subprocess.run([teller, "lab", "simulate", "--engine", engine, "--ranks", str(ranks), "--fault", fault, "--count", str(count), "--seed", str(seed), *length,
                           "-q", "-o", folder / f"{engine}-{ranks}-{fault}"], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise LabError(done.stderr.strip() or f"{teller} ended with status {done.returncode}")


def main(argv):
    parser = Parser(prog="lab simulated", description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path)
    parser.add_argument("--seed", type=whole(0, 2**63 - 1000), default=100)
    parser.add_argument("--mix", type=whole(0, 1_000_000), default=48, help="cases of each engine and number of ranks with a fault or look-alike each")
    parser.add_argument("--healthy", type=whole(0, 1_000_000), default=16, help="healthy ones of each")
    parser.add_argument("--steps", type=whole(8, 100_000), help="recorded steps of each; by default the program's own number")
    parser.add_argument("--most-ranks", type=whole(1), default=max(ranks for _, ranks in RUNS), help="leave out runs of more ranks")
    parser.add_argument("--teller", default=os.environ.get("TELLER", str(ROOT / "build/release/teller")))
    args = parser.parse_args(argv)
    if args.mix + args.healthy == 0:
        raise LabError("--mix and --healthy are numbers of cases, at least one of them from 1")
    runs = [(i, *run) for i, run in enumerate(RUNS) if run[1] <= args.most_ranks]
    with whole_set(args.output) as part:
        for i, engine, ranks in runs:
            for fault, count, offset in (("mix", args.mix, 1), ("none", args.healthy, 101)):
                if count:
                    make(args.teller, part, engine, ranks, fault, count, args.seed + offset + i, args.steps)
    print(f"{len(runs) * (args.mix + args.healthy)} cases in {args.output}")
    return 0
