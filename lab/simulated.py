"""A set of simulated cases over engines, numbers of ranks and stages of pipelines: every kind of fault and look-alike in turn at drawn magnitudes, and healthy runs, so many that
rare false alarms can be seen.

usage: lab simulated -o CASES [--seed N] [--mix N] [--healthy N] [--steps N] [--most-ranks N] [--most-stages N] [--teller PATH]

Same numbers and seed: same cases.
"""
import os
import pathlib
import subprocess

from lab.casefile import whole_set
from lab.errors import LabError, Parser, whole

ROOT = pathlib.Path(__file__).resolve().parent.parent
# engine, ranks, stages that share the layers. A run's seed follows from its place here.
RUNS = (("vllm", 1, 1), ("vllm", 2, 1), ("vllm", 4, 1), ("sglang", 1, 1), ("sglang", 4, 1), ("fsdp", 2, 1), ("fsdp", 4, 1), ("fsdp", 8, 1),
        ("vllm", 2, 2), ("sglang", 3, 3), ("sglang", 4, 2))


def make(teller, folder, engine, ranks, stages, fault, count, seed, steps):
    length = [] if steps is None else ["--steps", str(steps)]
    pipeline = [] if stages == 1 else ["--pipeline", str(stages)]
    name = f"{engine}-{ranks}-{fault}" if stages == 1 else f"{engine}-{ranks}-of-{stages}-stages-{fault}"
    done = subprocess.run([teller, "lab", "simulate", "--engine", engine, "--ranks", str(ranks), *pipeline, "--fault", fault, "--count", str(count), "--seed", str(seed),
                           *length, "-q", "-o", folder / name], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise LabError(done.stderr.strip() or f"{teller} ended with status {done.returncode}")


def main(argv):
    parser = Parser(prog="lab simulated", description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path)
    parser.add_argument("--seed", type=whole(0, 2**63 - 1000), default=100)
    parser.add_argument("--mix", type=whole(0, 1_000_000), default=48, help="cases of each engine and number of ranks with a fault or look-alike each")
    parser.add_argument("--healthy", type=whole(0, 1_000_000), default=16, help="healthy ones of each")
    parser.add_argument("--steps", type=whole(8, 100_000), help="recorded steps of each; by default the program's own number")
    parser.add_argument("--most-ranks", type=whole(1), default=max(ranks for _, ranks, _ in RUNS), help="leave out runs of more ranks")
    parser.add_argument("--most-stages", type=whole(1), default=max(stages for _, _, stages in RUNS), help="leave out pipelines of more stages; 1: all of them")
    parser.add_argument("--teller", default=os.environ.get("TELLER", str(ROOT / "build/release/teller")))
    args = parser.parse_args(argv)
    if args.mix + args.healthy == 0:
        raise LabError("--mix and --healthy are numbers of cases, at least one of them from 1")
    runs = [(i, *run) for i, run in enumerate(RUNS) if run[1] <= args.most_ranks and run[2] <= args.most_stages]
    with whole_set(args.output) as part:
        for i, engine, ranks, stages in runs:
            for fault, count, offset in (("mix", args.mix, 1), ("none", args.healthy, 101)):
                if count:
                    make(args.teller, part, engine, ranks, stages, fault, count, args.seed + offset + i, args.steps)
    print(f"{len(runs) * (args.mix + args.healthy)} cases in {args.output}")
    return 0
