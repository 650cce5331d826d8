"""Kolmogorov-Smirnov distances of simulated quantities from real ones: 0 equal, 1 apart.

`KS` is of the numbers as they are, `form` of both scaled to their own medians (machines differ, the form need not).
"""
import collections
import re
import statistics

LAUNCH = re.compile(r"Launch")
# Families of GPU work by what kernels do, from the words of their names; the first that fits.
FAMILIES = (("collective", r"nccl|all_?reduce|all_?gather|reduce_?scatter"), ("attention", r"flash|fmha|attention|attn|PrefillWithKV|softmax"),
            ("matrix product", r"gemm|nvjet|cutlass|cublas|Cijk|_matmul|_mm_|bmm|xmma|fused_moe"), ("norm", r"norm"),
            ("reduction", r"reduce_kernel|ArgMax"), ("elementwise", r"elementwise|vectorized|silu|act_and_mul|triton_poi|rotary|copy|index|gather|Cat"))


def distance(a, b):
    """Largest difference of two empirical distribution functions."""
    a, b = sorted(a), sorted(b)
    i = j = 0
    most = 0.0
    while i < len(a) and j < len(b):
        x = min(a[i], b[j])
        while i < len(a) and a[i] <= x: i += 1
        while j < len(b) and b[j] <= x: j += 1
        most = max(most, abs(i / len(a) - j / len(b)))
    return most


def family(name):
    return next((f for f, words in FAMILIES if re.search(words, name, re.I)), "other")


def quantities(trace):
    """Lists by name: relations of durations of equal shape, host times and gaps in us."""
    out = collections.defaultdict(list)
    calls = {e["args"]["correlation"]: e for e in trace
             if e.get("cat") in ("cuda_runtime", "cuda_driver") and LAUNCH.search(e["name"]) and "correlation" in e["args"]}
    ordered = sorted(calls.values(), key=lambda e: (str(e["tid"]), e["ts"]))
    out["launch call"] = [e["dur"] for e in ordered]
    out["between launches"] = [b["ts"] - a["ts"] - a["dur"] for a, b in zip(ordered, ordered[1:]) if a["tid"] == b["tid"]]
    work = sorted((e for e in trace if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and "correlation" in e["args"]),
                  key=lambda e: (str(e["tid"]), e["ts"]))
    for before, event in zip(work, work[1:]):
        call = calls.get(event["args"]["correlation"])
        free = before["ts"] + before["dur"]
        if call is None or before["tid"] != event["tid"]: continue
        if free < call["ts"]: out["launch to start"].append(event["ts"] - call["ts"])
        elif free > call["ts"] + call["dur"] + 20: out["kernel to kernel"].append(max(0.0, event["ts"] - free))
    groups = collections.defaultdict(list)
    for e in work:
        if e["cat"] == "kernel": groups[e["name"], str(e["args"].get("grid")), str(e["args"].get("In msg nelems"))].append(e["dur"])
    for (name, *_), values in groups.items():
        if len(values) < 8: continue
        middle = statistics.median(values)
        if middle > 0: out[f"duration given shape: {family(name)}"] += [v / middle for v in values]
    return out


def steps(records):
    """Lists by name from exported features: kernels and operators a step, skew of collectives, log lines a second."""
    out = collections.defaultdict(list)
    kernels, operators = collections.Counter(), collections.Counter()
    for r in records:
        if r["type"] == "op" and r["kind"] == "kernel": kernels[r["step"]] += r["count"]
        if r["type"] == "op" and r["kind"] == "op": operators[r["step"]] += r["count"]
        if r["type"] == "collective" and len(r["members"]) > 1:
            arrivals = [m["arrival_ns"] for m in r["members"]]
            out["collective skew (us)"].append((max(arrivals) - min(arrivals)) / 1e3)
    out["kernels a step"], out["operators a step"] = list(kernels.values()), list(operators.values())
    begins = sorted(r["at_ns"] // 10**9 for r in records if r["type"] == "log" and r["at_ns"])
    if begins: out["log lines a second"] = list(collections.Counter(begins).values())
    return out


def table(real, made, least=12):
    """Rows of what both have: name, real, simulated, sizes, medians, distances. `least`: values on each side."""
    rows = []
    for source, values in real.items():
        for engine, other in made.items():
            for name in sorted(set(values) & set(other)):
                a, b = values[name], other[name]
                if len(a) < least or len(b) < least: continue
                am, bm = statistics.median(a), statistics.median(b)
                form = distance([x / am for x in a], [x / bm for x in b]) if am > 0 and bm > 0 else float("nan")
                rows.append((name, source, engine, len(a), len(b), am, bm, distance(a, b), form))
    return sorted(rows)
