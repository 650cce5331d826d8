#!/usr/bin/env python3
"""Simulates cases, diagnoses each without its truth, and prints what was found: kind x magnitude -> found, right class, right rank.

usage: sim_table.py TELLER OUT.json [--engines vllm,sglang,fsdp] [--ranks 4] [--count 3] [--magnitudes 0.2,0.6,1] [--kinds a,b]

Truth comes from the labels alone. A fault counts as found when anything is; class and rank are those of the first finding and count
when the label accepts them ("strict": the label's own class). Found in look-alikes and healthy runs are false alarms.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

from sim_effect import simulate

INPUTS = ("traces", "server.log", "logs", "kernel.log", "spans.jsonl", "metrics.txt", "host.jsonl")


def kinds(teller):
    text = subprocess.run([teller, "lab", "list"], capture_output=True, text=True, check=True).stdout
    part = text.split("lab simulate", 1)[1].splitlines()[1:]
    return [line.split()[0] for line in part if line.strip()]


def judge(teller, case):
    paths = [str(case / name) for name in INPUTS if (case / name).exists()]
    run = subprocess.run([teller, "diagnose", "--format", "json", "--threads", "1", *paths], capture_output=True, text=True)
    label = json.loads((case / "label.json").read_text())
    if run.returncode == 2: return {"error": run.stderr.strip(), "fault": label["is_fault"]}
    verdict = json.loads(run.stdout)
    findings = verdict.get("findings", [])
    lost = [d for d in verdict.get("diagnostics", []) if d.get("severity") in ("error", "data-loss")]
    out = {"fault": label["is_fault"], "found": bool(findings), "lost": len(lost), "classes": [f["class"] for f in findings], "rc": run.returncode}
    if not findings or not label["is_fault"]: return out
    first = findings[0]
    right = [label["fault_class"], *label["accept_classes"]]
    culprit = label["culprit"]
    ranks = label["accept_ranks"] or ([culprit["rank"]] if culprit["rank"] is not None else None)
    out["class"] = first["class"] in right
    out["strict"] = first["class"] == label["fault_class"]
    out["rank"] = None if ranks is None else first.get("culprit", {}).get("rank") in ranks
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("teller")
    parser.add_argument("out")
    parser.add_argument("--engines", default="vllm,sglang,fsdp")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--magnitudes", default="0.2,0.6,1")
    parser.add_argument("--kinds", default="")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rows = []
    print(f"{'engine':7} {'kind':18} {'M':>4} {'cases':>5} {'found':>5} {'class':>5} {'strict':>6} {'rank':>5}  classes named")
    for engine in options.engines.split(","):
        for kind in options.kinds.split(",") if options.kinds else kinds(options.teller):
            for magnitude in options.magnitudes.split(","):
                with tempfile.TemporaryDirectory() as scratch:
                    cases = pathlib.Path(scratch) / "cases"
                    made = simulate(options, engine, kind, magnitude, cases)
                    if not made: break  # this engine cannot have it
                    results = [judge(options.teller, case) for case in made]
                row = {"engine": engine, "kind": kind, "magnitude": float(magnitude), "results": results}
                rows.append(row)
                count = lambda key: sum(bool(r.get(key)) for r in results)
                ranked = [r for r in results if r.get("rank") is not None]
                named = sorted({c for r in results for c in r.get("classes", [])})
                remarks = [f"data lost in {count('lost')}"] if count("lost") else []
                if any("error" in r for r in results): remarks.append(f"UNREADABLE: {sum('error' in r for r in results)}")
                right = sum(r["rank"] for r in ranked) if ranked else "-"
                print(f"{engine:7} {kind:18} {float(magnitude):4.1f} {len(results):5} {count('found'):5} {count('class'):5} {count('strict'):6} {right:>5}  "
                      f"{' '.join(named + remarks)}", flush=True)
    pathlib.Path(options.out).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
