#!/usr/bin/env python3
"""How realistic is the simulator? Prints distances of distributions and a classifier's AUC, against recordings that were not used for fitting.

usage: sim_realism.py TELLER TRACES LAB... [--seeds N] [--steps N]

TRACES holds real Chrome traces of GPU runs, LAB labelled runs of real engines by stack, of which those without a fault are taken. The classifier needs scikit-learn: when this interpreter lacks it, that of
the baselines is taken (`./dev lab setup baselines`).
"""
import argparse
import collections
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from realism import distances, recordings, windows  # noqa: E402

HEALTHY = ("none", "long-prefill", "burst")


def with_learning():
    """Goes on in an interpreter that has scikit-learn."""
    try:
        import sklearn  # noqa: F401
        return
    except ImportError:
        pass
    from lab.baselines import setup
    if os.environ.get("TELLER_REALISM") or not setup.python().exists():
        raise SystemExit("sim_realism.py: the classifier needs scikit-learn; run ./dev lab setup baselines")
    os.execve(str(setup.python()), [str(setup.python()), *sys.argv], os.environ | {"TELLER_REALISM": "1"})


def simulated(teller, folder, seeds, steps):
    """(engine, case) of healthy simulated runs of several sizes."""
    for engine in recordings.ENGINES:
        for seed in range(1, seeds + 1):
            ranks = (1, 2, 4)[seed % 3]
            kinds = [k for k in HEALTHY if engine != "fsdp" or k != "burst"]
            for case in recordings.simulate(teller, folder, engine, ranks, kinds[seed % len(kinds)], 1000 + seed, steps=steps): yield engine, case


def print_table(rows):
    print(f"{'quantity':36} {'real':46} {'simulated':9} {'n real':>7} {'n sim':>7} {'median':>9} {'median':>9} {'KS':>5} {'form':>5}")
    for name, source, engine, n, m, a, b, raw, form in rows:
        print(f"{name:36} {source[-46:]:46} {engine:9} {n:7} {m:7} {a:9.2f} {b:9.2f} {raw:5.2f} {form:5.2f}")


def gpu_steps(teller, traces, cases):
    """Kernels a step. Recordings of GPUs have one to three steps, of models that are not simulated: the numbers say more than the distances."""
    real, made = collections.defaultdict(dict), collections.defaultdict(lambda: collections.defaultdict(list))
    name = "kernels a step"
    for group, path, _ in recordings.real_gpu(traces):
        if recordings.fitted(path): continue
        real[group].setdefault(name, []).extend(distances.steps(recordings.exported(teller, path))[name])
    for engine, case in cases: made[engine][name] += distances.steps(recordings.features(teller, case))[name]
    print_table(distances.table(real, made, least=1))


def gpu_part(teller, traces, cases):
    from realism import classifier
    real, made, rows = {}, collections.defaultdict(lambda: collections.defaultdict(list)), []
    for group, path, events in recordings.real_gpu(traces):
        pieces = list(windows.Trace(events).windows())
        rows += [(group, True, p, recordings.fitted(path)) for p in pieces]
        if not recordings.fitted(path): real[group] = distances.quantities(events)
    for engine, case in cases:
        events = recordings.load(case / "traces" / "rank0.pt.trace.json")
        rows += [(str(case), False, p, False) for p in windows.Trace(events).windows()]
        for name, values in distances.quantities(events).items(): made[engine][name] += values
    print("GPU traces that were not fitted")
    print_table(distances.table(real, made))
    gpu_steps(teller, traces, cases)
    print()
    classifier.ask("windows of kernels, traces that were not fitted", [r[:3] for r in rows if not r[3]])
    form = lambda p: {k: v for k, v in p.items() if not k.startswith("abs")}
    classifier.ask("the same without lengths of kernels and host times", [(g, t, form(p)) for g, t, p, f in rows if not f])
    classifier.ask("windows of kernels, all traces", [r[:3] for r in rows])


def engine_part(teller, lab, cases):
    from realism import classifier
    real, made, rows = {}, collections.defaultdict(lambda: collections.defaultdict(list)), collections.defaultdict(list)
    for engine in recordings.ENGINES:
        for case in recordings.healthy(lab, engine):
            records = recordings.features(teller, case)
            rows[engine] += [(str(case), True, w) for w in windows.run_windows(records)]
            real[f"{engine}/{case.name}"] = {k: v for k, v in distances.steps(records).items() if k != "kernels a step"}
    for engine, case in cases:
        records = recordings.features(teller, case)
        rows[engine] += [(str(case), False, w) for w in windows.run_windows(records)]
        for name, values in distances.steps(records).items(): made[engine][name] += values
    print("\nengines' own runs that were not fitted (on CPU: what does not depend on the device)")
    print_table([r for r in distances.table(real, made) if r[1].startswith(r[2])])
    print()
    for engine, pieces in rows.items():
        if len({g for g, t, _ in pieces if t}) < 2: continue
        classifier.ask(f"windows of {windows.STEPS} steps, {engine}", pieces)
        classifier.ask("the same without the load", [(g, t, {k: v for k, v in p.items() if k not in windows.LOAD}) for g, t, p in pieces])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("teller")
    parser.add_argument("traces")
    parser.add_argument("lab", nargs="+")
    parser.add_argument("--seeds", type=int, default=6, help="simulated runs of each engine (default 6)")
    parser.add_argument("--steps", type=int, help="recorded steps of each; by default the program's own number")
    options = parser.parse_args()
    with_learning()
    with tempfile.TemporaryDirectory() as scratch:
        cases = list(simulated(options.teller, pathlib.Path(scratch), options.seeds, options.steps))
        gpu_part(options.teller, options.traces, cases)
        engine_part(options.teller, options.lab, cases)


if __name__ == "__main__":
    main()
