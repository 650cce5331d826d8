#!/usr/bin/env python3
"""What do simulated faults do? Compares each faulty run with its healthy twin of the same seed: steps, gaps, first tokens, tokens.

usage: sim_effect.py TELLER [--engines vllm,sglang,fsdp] [--ranks 4] [--count 2] [--magnitudes 0.3,1] [--kinds a,b] [--seed N]

Numbers are quotients faulty / healthy of medians over the time of the fault (tail: of the 95th percentile); 1 = no effect. `gone`: share of requests whose
stream broke or that got no token. Nothing is diagnosed here.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

TWINS = {"spec-collapse": "speculation", "kv-transfer": "disaggregation", "slow-kv-tier": "kv-tier", "slow-checkpoint": "checkpoint"}
MARKS = ("execute_context", "step[", "ProfilerStep")
SKIP = ("rank-death", "oom", "gpu-hardware", "gpu-fault", "coll-hang", "coll-divergence", "client-error", "profiler", "shutdown")


def kinds(teller):
    text = subprocess.run([teller, "lab", "list"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in text.split("lab simulate", 1)[1].splitlines()[1:] if line.strip()]


def simulate(options, engine, kind, magnitude, folder):
    """Cases of a kind, none where the engine cannot have it. Kinds without a magnitude are made without."""
    for more in (["--magnitude", str(magnitude)], []):
        done = subprocess.run([options.teller, "lab", "simulate", "--engine", engine, "--ranks", str(options.ranks), "--fault", kind, *more,
                               "--count", str(options.count), "--seed", str(options.seed), "-q", "-o", str(folder)], capture_output=True, text=True)
        if "--magnitude" not in done.stderr: break
    return sorted(folder.iterdir()) if done.returncode == 0 else []


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def overlaps(spans, begin, end):
    return any(a < end and begin < b for a, b in spans)


def describe(case, window, held):
    """Lists in ms of one run, within a window."""
    trace = json.loads((case / "traces" / "rank0.pt.trace.json").read_text())
    base = trace["baseTimeNanoseconds"]
    steps = sorted((base + e["ts"] * 1e3, e["dur"] / 1e3) for e in trace["traceEvents"] if e.get("cat") == "user_annotation" and e["name"].startswith(MARKS))
    inside = [(a, d) for a, d in steps if window[0] <= a <= window[1]]
    gaps = [(b[0] - a[0]) / 1e6 - a[1] for a, b in zip(steps, steps[1:]) if window[0] <= b[0] <= window[1]]
    out = {"step": [d for _, d in inside], "gap": gaps, "first": [], "token": [], "gone": []}
    if (case / "requests.jsonl").exists():
        for line in (case / "requests.jsonl").read_text().splitlines():
            r = json.loads(line)
            times = r["token_times_ns"]
            last = times[-1] if times else r["t_send_ns"]
            if not window[0] <= r["t_send_ns"] <= window[1] or overlaps(held, r["t_send_ns"], last): continue
            out["gone"].append("error" in r or not times)
            if times: out["first"].append((times[0] - r["t_send_ns"]) / 1e6)
            out["token"] += [(b - a) / 1e6 for a, b in zip(times, times[1:])]
    return out


def compare(faulty, healthy):
    """Quotients of one pair."""
    label = json.loads((faulty / "label.json").read_text())
    held = label["observer_ns"]
    window = (label["t_start_ns"] or 0, label["t_end_ns"] or 1 << 62)
    a, b = describe(faulty, window, held), describe(healthy, window, json.loads((healthy / "label.json").read_text())["observer_ns"])
    row = {}
    for name in ("step", "gap", "first", "token"):
        for key, share in (("", 0.5), (" tail", 0.95)):
            x, y = quantile(a[name], share), quantile(b[name], share)
            row[name + key] = x / y if y else float("nan")
    row["gone"] = statistics.mean(a["gone"]) if a["gone"] else float("nan")
    row["params"] = label["params"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("teller")
    parser.add_argument("--engines", default="vllm,sglang,fsdp")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--count", type=int, default=2)
    parser.add_argument("--magnitudes", default="1")
    parser.add_argument("--kinds", default="")
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    names = ("step", "step tail", "gap", "gap tail", "first", "first tail", "token", "token tail", "gone")
    print(f"{'engine':7} {'kind':18} {'M':>4} " + " ".join(f"{n:>10}" for n in names))
    for engine in options.engines.split(","):
        for kind in options.kinds.split(",") if options.kinds else [k for k in kinds(options.teller) if k not in SKIP]:
            for magnitude in map(float, options.magnitudes.split(",")):
                with tempfile.TemporaryDirectory() as scratch:
                    cases = simulate(options, engine, kind, magnitude, pathlib.Path(scratch) / "faulty")
                    twins = simulate(options, engine, TWINS.get(kind, "none"), magnitude, pathlib.Path(scratch) / "healthy") if cases else []
                    rows = [compare(a, b) for a, b in zip(cases, twins)]
                if not rows: continue
                print(f"{engine:7} {kind:18} {magnitude:4.1f} " + " ".join(f"{statistics.mean(r[n] for r in rows):10.2f}" for n in names), flush=True)


if __name__ == "__main__":
    main()
