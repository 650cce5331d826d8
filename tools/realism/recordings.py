"""Real recordings and simulated ones, as groups: a group never stands on both sides of a split."""
import gzip
import json
import pathlib
import subprocess

# The tables of the simulator were fitted on these (data/sim/tables.json).
FITTED = ("sglang_qwen3_8b_decode/decode_step", "sglang_qwen3_8b_extend_step", "vllm_mixed_piecewise_step", "vllm_b200_eager_tp8_rank",
          "qwen15_0.5b_h100", "ddp2_nccl_meta_rank0", "param_dlrm8", "lab/vllm/d01_healthy", "lab/sglang/none_1")
MOST_BYTES = 5_000_000  # of a compressed trace; larger ones take minutes to read
ENGINES = ("vllm", "sglang", "fsdp")


def load(path):
    """Events of a Chrome trace; none when it is no such file."""
    opened = gzip.open(path) if path.suffix == ".gz" else open(path, "rb")
    with opened as file:
        document = json.load(file)
    events = document.get("traceEvents", []) if isinstance(document, dict) else document
    return [e for e in events if isinstance(e, dict) and e.get("ph") == "X" and isinstance(e.get("args", {}), dict)]


def fitted(path):
    return any(part in str(path) for part in FITTED)


def real_gpu(traces):
    """(group, events) of every trace that has launched kernels. Ranks of one run are one group."""
    for path in sorted(pathlib.Path(traces).rglob("*.json*")):
        if path.stat().st_size > MOST_BYTES: continue
        try:
            events = load(path)
        except (ValueError, OSError, KeyError):
            continue
        if sum(e.get("cat") == "kernel" for e in events) < 32: continue
        group = path.parent if path.name.startswith("rank") else path
        yield str(group.relative_to(traces)), path, events


def simulate(teller, folder, engine, ranks, fault, seed, count=1, steps=None):
    """Folders of simulated cases."""
    out = folder / f"{engine}-{ranks}-{fault}-{seed}"
    length = [] if steps is None else ["--steps", str(steps)]
    subprocess.run([teller, "lab", "simulate", "--engine", engine, "--ranks", str(ranks), "--fault", fault, "--count", str(count),
                    "--seed", str(seed), *length, "-q", "-o", str(out)], check=True)
    return sorted(out.iterdir())


def healthy(folders, engine):
    """Labelled real runs of an engine without a fault that were not fitted. Simulated runs without a fault stand beside them, so a fault would tell them apart."""
    for folder in folders:
        for label in sorted((pathlib.Path(folder) / engine).glob("*/label.json")):
            if not fitted(label.parent) and not json.loads(label.read_text())["is_fault"]: yield label.parent


def features(teller, case):
    """Records of `teller export --to features` for a case, without its truth."""
    names = ("traces", "server.log", "logs", "spans.jsonl", "metrics.txt")
    return exported(teller, *(case / n for n in names if (case / n).exists()))


def exported(teller, *paths):
    """Records of `teller export --to features` for these inputs."""
    done = subprocess.run([teller, "export", "--to", "features", "-o", "-", *map(str, paths)], capture_output=True, text=True)
    if done.returncode not in (0, 3): raise SystemExit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]
