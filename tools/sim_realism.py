#!/usr/bin/env python3
"""Compares simulated runs with real traces that the simulator's tables were not fitted on.

usage: sim_realism.py TELLER TRACES

For each quantity: medians of both, and the Kolmogorov-Smirnov distance (0 equal, 1 apart), raw and with both scaled to their
own medians (the form alone; machines differ). Real: data parallel training on A100 and a tensor-parallel vLLM step on B200.
"""
import collections
import gzip
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

LAUNCH = re.compile(r"LaunchKernel")


def load(path):
    opened = gzip.open(path) if path.suffix == ".gz" else open(path, "rb")
    with opened as file:
        return [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]


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


def quantities(trace):
    """Lists of microseconds by name."""
    out = collections.defaultdict(list)
    calls = {e["args"]["correlation"]: e for e in trace if e["cat"] in ("cuda_runtime", "cuda_driver") and LAUNCH.search(e["name"])}
    ordered = sorted(calls.values(), key=lambda e: (str(e["tid"]), e["ts"]))
    out["launch call"] = [e["dur"] for e in ordered]
    out["host time between launches"] = [b["ts"] - a["ts"] - a["dur"] for a, b in zip(ordered, ordered[1:]) if a["tid"] == b["tid"]]
    work = sorted((e for e in trace if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")), key=lambda e: (str(e["tid"]), e["ts"]))
    for before, event in zip(work, work[1:]):
        call = calls.get(event["args"].get("correlation"))
        free = before["ts"] + before["dur"]
        if call is None or before["tid"] != event["tid"]: continue
        if free < call["ts"]: out["launch to start"].append(event["ts"] - call["ts"])
        elif free > call["ts"] + call["dur"] + 20: out["kernel to kernel"].append(event["ts"] - free)
    groups = collections.defaultdict(list)
    for e in trace:
        if e["cat"] == "kernel" and "nccl" not in e["name"] and "all_reduce" not in e["name"]:
            groups[e["name"], str(e["args"].get("grid"))].append(e["dur"])
    for values in groups.values():
        if len(values) < 12: continue
        middle = statistics.median(values)
        out["spread of short kernels" if middle < 20 else "spread of long kernels"] += [v / middle for v in values]
    return out


def simulated(teller, engine, ranks):
    with tempfile.TemporaryDirectory() as scratch:
        cases = pathlib.Path(scratch) / "cases"
        subprocess.run([teller, "lab", "simulate", "--engine", engine, "--ranks", str(ranks), "--seed", "77", "-q", "-o", str(cases)], check=True)
        return load(cases / "case-00001" / "traces" / "rank0.pt.trace.json")


def main():
    teller, traces = sys.argv[1], pathlib.Path(sys.argv[2])
    real = {"A100 training": quantities(load(traces / "hta/ddp2_nccl_meta_rank0.json.gz")),
            "B200 vLLM": quantities(load(traces / "tracelens/vllm_b200_eager_tp8_rank.json.gz"))}
    made = {"fsdp": quantities(simulated(teller, "fsdp", 2)), "vllm": quantities(simulated(teller, "vllm", 8))}
    print(f"{'quantity':28} {'real':14} {'simulated':10} {'n real':>7} {'n sim':>7} {'median':>8} {'median':>8} {'KS':>5} {'KS form':>7}")
    for source, values in real.items():
        for engine, other in made.items():
            for name in sorted(set(values) & set(other)):
                a, b = values[name], other[name]
                if len(a) < 20 or len(b) < 20: continue
                am, bm = statistics.median(a), statistics.median(b)
                form = distance([x / am for x in a], [x / bm for x in b]) if am > 0 and bm > 0 else float("nan")
                print(f"{name:28} {source:14} {engine:10} {len(a):7} {len(b):7} {am:8.2f} {bm:8.2f} {distance(a, b):5.2f} {form:7.2f}")


if __name__ == "__main__":
    main()
