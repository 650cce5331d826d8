"""Describes pieces of recordings by numbers: windows of kernels in a GPU trace, windows of steps in an engine's run.

Numbers about time are relations (spreads, quotients), since the machines differ; kernels' own lengths and host times are told in full as well, under
names that begin with `abs`, so that both questions can be asked.
"""
import collections
import math
import re
import statistics

KERNELS = 48   # a window of a trace
STEPS = 8      # a window of a run
LOAD = ("batch", "batch changes", "prompt steps", "prompt tokens", "names")  # what clients decide
LAUNCH = re.compile(r"Launch|Memcpy|Memset")
GRAPH = re.compile(r"GraphLaunch")


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def log(value):
    return math.log10(max(value, 1e-3))


def spread(values):
    """Quotients of quantiles, as logarithms."""
    return {"iqr": log(quantile(values, .75)) - log(quantile(values, .25)), "tail": log(quantile(values, .95)) - log(quantile(values, .5))}


def repeats(kernels):
    """How much equal kernels differ, in the middle."""
    groups = collections.defaultdict(list)
    for e in kernels: groups[e["name"], str(e["args"].get("grid"))].append(e["dur"])
    off = [abs(log(d) - log(statistics.median(g))) for g in groups.values() if len(g) > 2 for d in g]
    return statistics.median(off) if off else 0.0


class Trace:
    """A trace sorted for windows."""

    def __init__(self, events):
        self.calls = {e["args"]["correlation"]: e for e in events
                      if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e["args"]}
        work = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and "correlation" in e["args"]]
        streams = collections.Counter(e["tid"] for e in work)
        main = streams.most_common(1)[0][0] if streams else None
        self.work = sorted((e for e in work if e["tid"] == main), key=lambda e: e["ts"])
        self.host = sorted((e for e in events if e.get("cat") in ("cpu_op", "cuda_runtime", "cuda_driver")), key=lambda e: (e["ts"], -e["dur"]))

    def windows(self):
        at = 0
        for first in range(0, len(self.work) - KERNELS + 1, KERNELS):
            piece = self.work[first:first + KERNELS]
            calls = [self.calls[c] for c in dict.fromkeys(e["args"]["correlation"] for e in piece) if c in self.calls]
            if not calls: continue
            yield self.describe(piece, sorted(calls, key=lambda e: e["ts"]))

    def describe(self, piece, calls):
        kernels = [e for e in piece if e["cat"] == "kernel"] or piece
        gaps = [max(0.0, b["ts"] - a["ts"] - a["dur"]) for a, b in zip(piece, piece[1:])]
        length = piece[-1]["ts"] + piece[-1]["dur"] - piece[0]["ts"]
        durations = [e["dur"] for e in kernels]
        launches = [e for e in calls if LAUNCH.search(e["name"])]
        begin, end = calls[0]["ts"], calls[-1]["ts"] + calls[-1]["dur"]
        around = [e for e in self.host if begin - 1 <= e["ts"] <= end and e["tid"] == calls[0]["tid"]]
        ops = [e for e in around if e["cat"] == "cpu_op"]
        between = [max(0.0, b["ts"] - a["ts"] - a["dur"]) for a, b in zip(launches, launches[1:])]
        out = {"abs kernel": log(statistics.median(durations)), "abs gap": log(statistics.median(gaps)), "busy": sum(durations) / max(length, 1e-3),
               "gap tight": sum(g < 1.5 for g in gaps) / len(gaps), "gap wide": sum(g > 20 for g in gaps) / len(gaps), "repeats": repeats(kernels)}
        out |= {f"kernel {k}": v for k, v in spread(durations).items()} | {f"gap {k}": v for k, v in spread(gaps).items()}
        out["names"] = len({e["name"] for e in kernels}) / len(kernels)
        out["copies"] = sum(e["cat"] != "kernel" for e in piece) / len(piece)
        out["kernels a launch"] = log(len(piece) / max(1, len(launches)))
        out["graphs"] = sum(bool(GRAPH.search(e["name"])) for e in calls) / len(calls)
        eager = len(launches) >= 8
        out["abs launch"] = log(statistics.median(e["dur"] for e in launches)) if eager else -4
        out["abs between"] = log(statistics.median(between)) if eager else -4
        for name, values in (("launch", [e["dur"] for e in launches]), ("between", between)):
            out |= {f"{name} {k}": v if eager else -4 for k, v in (spread(values) if eager else {"iqr": 0, "tail": 0}).items()}
        out["ops a launch"] = len(ops) / len(launches) if eager else -4
        out["other calls a launch"] = sum(e["cat"] != "cpu_op" and not LAUNCH.search(e["name"]) for e in around) / len(launches) if eager else -4
        out["depth"] = depth(ops) if eager else -4
        out["driver share"] = sum(e["cat"] == "cuda_driver" for e in launches) / len(launches) if eager else -4
        return out


def depth(ops):
    """Mean depth of operators in one another."""
    ends, sum_ = [], 0
    for e in ops:
        while ends and ends[-1] <= e["ts"]: ends.pop()
        ends.append(e["ts"] + e["dur"])
        sum_ += len(ends)
    return sum_ / max(1, len(ops))


def run_windows(records):
    """Windows of steps of one rank, from exported features."""
    steps = collections.defaultdict(list)
    logs = collections.Counter()
    for r in records:
        if r["type"] == "step" and not r["observer"]: steps[r["process"]].append(r)
        if r["type"] == "log" and r["step"] is not None and r["step"] >= 0: logs[r["step"]] += 1
    for rows in steps.values():
        rows.sort(key=lambda r: r["begin_ns"])
        for first in range(0, len(rows) - STEPS + 1, STEPS):
            piece = rows[first:first + STEPS]
            times = [max(1, r["end_ns"] - r["begin_ns"]) / 1e3 for r in piece]
            gaps = [max(0, r["gap_ns"]) / 1e3 for r in piece]
            middle = statistics.median(times)
            batches = [max(0, r["batch"]) for r in piece]
            tokens = [max(0, r["new_tokens"]) for r in piece]
            same = collections.defaultdict(list)
            for r, t in zip(piece, times): same[r["name"]].append(t)
            off = [abs(log(t) - log(statistics.median(g))) for g in same.values() if len(g) > 1 for t in g]
            yield {"step iqr": spread(times)["iqr"], "step tail": spread(times)["tail"], "gap share": statistics.median(gaps) / (middle + statistics.median(gaps)),
                   "gap iqr": spread(gaps)["iqr"], "gap tail": spread(gaps)["tail"], "equal steps differ": statistics.median(off) if off else 0,
                   "names": len(same) / len(piece), "batch": statistics.mean(batches), "batch changes": sum(a != b for a, b in zip(batches, batches[1:])) / STEPS,
                   "prompt steps": sum(t > b for t, b in zip(tokens, batches)) / STEPS, "log lines a step": sum(logs[r["step"]] for r in piece) / STEPS,
                   "prompt tokens": log(statistics.mean(t for t in tokens) + 1)}
