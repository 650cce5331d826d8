"""Looks for leaks in a set of labelled cases: ways in which the answer reaches a method other than through what a fault does.

usage: lab leak CASES... [-o RESULTS] [--split SPLIT] [--shuffles N] [--seed N] [--reads FOLDER]

1. A method that sees only names, sizes, counts and order of files and records (`names-and-sizes`) is asked for class and culprit; then again after
   lessons whose labels were shuffled among runs of their kind (source, stack, ranks; re-timed cases: recording). If it is better with true labels, these
   things tell. Many faults change by what they do how much is recorded (a dead rank's files are short): that is no leak, so faults that only cost time are
   counted by themselves, and they decide.
2. Every baseline that learns from labels is asked after shuffled lessons. What is left above chance comes from elsewhere.

Chance: the best constant answer for each kind of run, looked up in the very cases that are asked, so a bound from above; for a rank at least one in the
number of ranks; for status 0 (share of faults found less share of false alarms); for steps the area of 0.5 at as many abnormal as healthy ones.
A figure is above chance when its interval of 99 % is.
"""
import collections
import json
import os
import pathlib
import random
import subprocess
import tempfile

from lab import parallel
from lab.casefile import write_whole
from lab.errors import SEED, LabError, Parser, whole

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLIND = "names-and-sizes"
LEARNED = ("random-forest", BLIND, "template-rarity", "template-sequence", "op-sequence")
DRAWS = 2000
TIMED = "of time alone"
# By what these do, files and records become more or fewer: they end or hang a run, add lines, calls or requests, or give steps other work.
RECORDED = {"COLL_FIRST_OP_HANG", "COLL_DIVERGENCE", "PROC_DEATH", "GPU_APP_FAULT", "GPU_HW_FAULT", "GPU_MEM_OOM", "CLIENT_ERROR", "FRONTEND_NET", "KV_PRESSURE",
            "KV_TRANSFER_STALL", "PREFIX_MISS", "PREFILL_BLOCKING", "SCHED_STALL", "DP_SKEW", "SPEC_COLLAPSE", "MOE_SKEW", "GRAPH_FALLBACK", "HIDDEN_SYNC",
            "COMPILE_ON_PATH"}
RECORDED_KINDS = {"slow-module"}  # it multiplies more often


def score(args, folder, methods, seed, shuffle):
    """scores.json of one run of the scorer. The first one reads the cases, the others take what it read."""
    reads = args.reads or folder.parent / "reads"
    command = [args.teller, "lab", "score", *args.cases, "--method", ",".join(methods), "--split", args.split, "--seed", str(seed), "--resamples", "0", "-q",
               "--reads", reads, "-o", folder]
    done = subprocess.run([str(word) for word in [*command, *(["--shuffle-labels"] if shuffle else [])]], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 3):
        raise LabError(done.stderr.strip() or "teller lab score failed")
    scores = json.loads((folder / "scores.json").read_text())
    for method in scores["methods"]:
        if method["problems"]:
            raise LabError(f"{method['name']}: {method['problems'][0]}")
    return scores


def kind(case):
    return case["source"], case["stack"], case["world_size"], case["recording"]


def hits(scores, method):
    """figure -> list of (case, right). Only cases whose label decides the figure."""
    out = collections.defaultdict(list)
    for case in scores["cases"]:
        if not case["counts"] or not case["is_fault"]:
            continue
        answer = case["answers"][method]
        out["class"].append((case, answer["class_right"]))
        for name in ("rank", "process", "op"):
            if answer[f"{name}_place"] is not None:
                out[name].append((case, answer[f"{name}_place"] == 1))
    return out


def chance(pairs, figure):
    """How often the best constant answer for each kind of run is right."""
    told = {"class": lambda case: case["class"], "rank": lambda case: case["rank"], "process": lambda case: case["process"],
            "op": lambda case: case["ops"][0] if case["ops"] else None}[figure]
    kinds = collections.defaultdict(list)
    for case, _ in pairs:
        kinds[kind(case)].append(case)
    right = 0.0
    for cases in kinds.values():
        usual = collections.Counter(told(case) for case in cases).most_common(1)[0][1]
        right += max(usual, len(cases) / cases[0]["world_size"] if figure == "rank" else 0)
    return right / len(pairs)


def interval(values, seed):
    """99 % of redrawn samples."""
    draw = random.Random(seed)
    means = sorted(sum(draw.choices(values, k=len(values))) / len(values) for _ in range(DRAWS))
    return means[int(0.005 * DRAWS)], means[int(0.995 * DRAWS) - 1]


def youden(scores, method):
    faults, controls = [], []
    for case in scores["cases"]:
        if case["counts"]:
            (faults if case["is_fault"] else controls).append(1.0 if case["answers"][method]["abnormal"] else 0.0)
    return faults, controls


def youden_interval(faults, controls, seed):
    draw = random.Random(seed)
    mean = lambda values: sum(values) / len(values)
    sums = sorted(mean(draw.choices(faults, k=len(faults))) - mean(draw.choices(controls, k=len(controls))) for _ in range(DRAWS))
    return mean(faults) - mean(controls), sums[int(0.005 * DRAWS)], sums[int(0.995 * DRAWS) - 1]


class Report:
    def __init__(self):
        self.rows = []

    def add(self, part, method, source, faults, figure, cases, value, low, high, bound):
        above = low > bound + 1e-9
        self.rows.append({"part": part, "method": method, "source": source, "faults": faults, "figure": figure, "cases": cases, "value": value,
                          "interval": [low, high], "chance": bound, "above_chance": above})

    def leaks(self):
        return [row for row in self.rows if row["above_chance"] and row["method"] == BLIND and row["faults"] == TIMED]

    def text(self):
        head = ("method", "source", "faults", "figure", "cases", "value", "99 % interval", "chance", "")
        lines = []
        for part in dict.fromkeys(row["part"] for row in self.rows):
            rows = [head] + [(r["method"], r["source"], r["faults"], r["figure"], str(r["cases"]), f"{r['value']:.2f}", f"{r['interval'][0]:.2f} to {r['interval'][1]:.2f}",
                              f"{r['chance']:.2f}", "ABOVE CHANCE" if r["above_chance"] else "") for r in self.rows if r["part"] == part]
            widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
            lines += [part, *("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows), ""]
        above = sum(r["above_chance"] for r in self.rows)
        return "\n".join(lines + [f"{len(self.rows)} figures, {above} above chance; {len(self.leaks())} of them tell of faults {TIMED}", ""])


def sources(scores):
    return ["all", *sorted({case["source"] for case in scores["cases"]})]


def of_time_alone(case):
    return case["class"] not in RECORDED and case["kind"] not in RECORDED_KINDS


def of(pairs, source, faults="all"):
    return [(case, right) for case, right in pairs if source in ("all", case["source"]) and (faults == "all" or of_time_alone(case))]


def blind(report, true, shuffled, seed):
    """True labels against shuffled ones, case by case."""
    part = f"{BLIND}: share right with true lessons, less the share after shuffled ones (mean of {len(shuffled)})"
    groups = [(source, faults) for source in sources(true) for faults in ("all", TIMED)]
    for group in groups:
        before = {name: of(pairs, *group) for name, pairs in hits(true, BLIND).items()}
        after = [{name: of(pairs, *group) for name, pairs in hits(scores, BLIND).items()} for scores in shuffled]
        for figure, pairs in before.items():
            if pairs:
                gains = [float(right) - sum(float(other[figure][i][1]) for other in after) / len(after) for i, (_, right) in enumerate(pairs)]
                report.add(part, BLIND, *group, figure, len(gains), sum(gains) / len(gains), *interval(gains, seed), 0.0)


def after_shuffle(report, shuffled, seed):
    part = f"After lessons with shuffled labels ({len(shuffled)} times)"
    for method in LEARNED:
        for source in sources(shuffled[0]):
            pooled = collections.defaultdict(list)
            for scores in shuffled:
                for figure, pairs in hits(scores, method).items():
                    pooled[figure].append(of(pairs, source))
            for figure, runs in pooled.items():
                if runs[0]:
                    # Cases are drawn, not answers: the shuffles of one case are no cases of their own.
                    means = [sum(float(run[i][1]) for run in runs) / len(runs) for i in range(len(runs[0]))]
                    report.add(part, method, source, "all", figure, len(means), sum(means) / len(means), *interval(means, seed), chance(runs[0], figure))
        runs = [youden(scores, method) for scores in shuffled]
        mean = lambda lists: [sum(values) / len(values) for values in zip(*lists)]
        faults, controls = mean([run[0] for run in runs]), mean([run[1] for run in runs])
        if faults and controls:
            report.add(part, method, "all", "all", "status", len(faults) + len(controls), *youden_interval(faults, controls, seed), 0.0)


def main(argv):
    parser = Parser(prog="lab leak", description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="+", type=pathlib.Path, help="folders with labelled cases")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="write the figures here as JSON")
    parser.add_argument("--split", default="folds:5")
    parser.add_argument("--shuffles", type=whole(1, 1000), default=3)
    parser.add_argument("--seed", type=SEED, default=1)
    parser.add_argument("--reads", type=pathlib.Path, help="keep what is read of the cases here, as lab score does")
    parser.add_argument("--teller", default=os.environ.get("TELLER", str(ROOT / "build/release/teller")))
    args = parser.parse_args(argv)
    if args.output and args.output.exists():
        raise LabError(f"{args.output}: is there already; name a new file")
    report = Report()
    with tempfile.TemporaryDirectory(prefix="teller-leak-") as folder:
        folder = pathlib.Path(folder)
        true = score(args, folder / "true", [BLIND], args.seed, False)
        shuffled = parallel.each(lambda i: score(args, folder / f"shuffled{i}", LEARNED, args.seed + i, True), range(args.shuffles))
        # Folds are drawn by the seed; cases are compared by their folder.
        for scores in (true, *shuffled):
            scores["cases"].sort(key=lambda case: case["folder"])
    blind(report, true, shuffled, args.seed)
    after_shuffle(report, shuffled, args.seed)
    print(report.text(), end="")
    if args.output:
        write_whole(args.output, json.dumps({"cases": len(true["cases"]), "split": args.split, "shuffles": args.shuffles, "rows": report.rows}, indent=1) + "\n")
    return 1 if report.leaks() else 0
