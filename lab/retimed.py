"""A set of labelled cases made from recorded healthy runs: every fault that `teller lab retime` can plant, on several ranks and operators, from barely
visible to gross, and controls that went through the same re-timing unchanged.

usage: lab retimed -o CASES [--seed N] [--count N] [--teller PATH] [RUN...]

Same runs, seed and count: same cases. The labels are those of the program.
"""
import json
import os
import pathlib
import random
import subprocess
import sys

from lab import parallel
from lab.casefile import whole_set
from lab.errors import SEED, LabError, Parser, whole

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNS = ("fsdp/healthy_fsdp2_w2", "fsdp/long_prefill_tp_w2", "fsdp/imbalance_fsdp_w2", "vllm/d01_healthy", "vllm/d07_long_prefill",
        "sglang/none_1", "llamacpp/none_1", "llamacpp/burst_1")
SCALES = (1.2, 1.5, 2, 3, 6, 15)
PAUSES = ("8ms", "25ms", "60ms", "150ms", "400ms")


def features(teller, run):
    """(ranks, operators by falling share of the time, indices of steps) of a run."""
    done = subprocess.run([teller, "export", "--to", "features", run / "traces" if (run / "traces").is_dir() else run], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 3):
        raise LabError(f"{run}: {done.stderr.strip()}")
    ranks, steps, indices, times, seen = [], 0, set(), {}, {}
    for line in done.stdout.splitlines():
        record = json.loads(line)
        if record["type"] == "run":
            ranks = record["ranks"]
        elif record["type"] == "step":
            steps += 1
            indices.add(record["index"])
        elif record["type"] == "op" and record["kind"] == "op":
            times[record["op"]] = times.get(record["op"], 0) + record["self_ns"]
            seen[record["op"]] = seen.get(record["op"], 0) + 1
    if steps == 0:
        raise LabError(f"{run}: no steps in it, so nothing can be planted")
    often = [name for name in times if seen[name] >= steps / 3]
    return ranks, sorted(often, key=lambda name: (-times[name], name))[:8], sorted(indices)


def stretch(draw, indices):
    """First and last step of a fault: anywhere, and a tenth to a half of all steps, so that its place tells nothing."""
    count = draw.randint(max(1, len(indices) // 10), max(1, len(indices) // 2))
    first = draw.randint(0, len(indices) - count)
    return ["--first-step", str(indices[first]), "--last-step", str(indices[first + count - 1])]


def plan(runs, teller, seed, count):
    """(name, run, arguments) of every case."""
    draw = random.Random(seed)
    known = [(run, *features(teller, run)) for run in runs]
    jobs = []
    while len(jobs) < count:
        run, ranks, ops, indices = known[len(jobs) % len(known)]
        kinds = ["straggler", "pause"] + (["slow-operator", "slow-operator"] if ops else []) + (["slow-link"] if len(ranks) > 1 else [])
        kind = "none" if draw.random() < 0.3 else draw.choice(kinds)
        args = ["--fault", kind, "--seed", str(draw.randrange(1 << 30))]
        if kind != "none":
            args += stretch(draw, indices)
        rank = str(draw.choice(ranks)) if ranks else None
        if rank and kind != "none":
            args += ["--rank", rank]
        if kind == "slow-operator":
            args += ["--op", draw.choice(ops)]
        if kind == "pause":
            args += ["--length", draw.choice(PAUSES)]
        elif kind != "none":
            args += ["--scale", str(draw.choice(SCALES))]
        jobs.append((f"{run.name}-{len(jobs):03d}", run, args))
    return jobs


def make(teller, folder, job):
    """None, or why this case cannot be made."""
    name, run, args = job
    case = folder / name
    source = run / "traces" if (run / "traces").is_dir() else run
    done = subprocess.run([teller, "lab", "retime", source, *args, "-q", "--threads", "1", "-o", case], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        return f"{name}: {done.stderr.strip()}"
    path = case / "label.json"
    label = json.loads(path.read_text())
    if not label.get("stack"):
        label["stack"] = run.parent.name
        path.write_text(json.dumps(label, indent=1) + "\n")
    return None


def main(argv):
    parser = Parser(prog="lab retimed", description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", type=pathlib.Path, help="healthy runs; by default those of ../shared/data/lab")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path)
    parser.add_argument("--seed", type=SEED, default=7)
    parser.add_argument("--count", type=whole(1, 100_000), default=72)
    parser.add_argument("--teller", default=os.environ.get("TELLER", str(ROOT / "build/release/teller")))
    args = parser.parse_args(argv)
    runs = args.runs or [ROOT.parent / "shared/data/lab" / name for name in RUNS]
    for run in runs:
        if not run.exists():
            raise LabError(f"{run}: there is no such run")
    jobs = plan(runs, args.teller, args.seed, args.count)
    with whole_set(args.output) as part:
        refused = [text for text in parallel.each(lambda job: make(args.teller, part, job), jobs) if text]
        for text in refused:
            print(f"lab: not made: {text}", file=sys.stderr)
        if len(refused) == len(jobs):
            raise LabError("no case could be made")
    controls = sum("none" in job[2] for job in jobs)
    print(f"{len(jobs) - len(refused)} cases of {len(runs)} runs in {args.output}, {controls} of them planned as controls")
    return 0
