"""The part of bench/run that measures Trace Pair Encoding."""

import operator
import os
import subprocess
import sys

MIN_TRAIN_RATIO = 10.0  # symbols per second against the other trainer
MIN_ENCODE_RATIO = 20.0
MIN_ENCODE = 50.0  # million nodes a second on one core, warm data
MAX_BYTES = 32.0  # peak resident memory for each node of the large training
VENV = ".venv-bench"
TOKENIZERS = "tokenizers==0.21.0"

# Windows of 2,000 symbols, one character each, no pre-tokenizer: a window is one word. Best of three encodings.
SCRIPT = """
import sys, time
from tokenizers import Tokenizer, models, trainers
path, merges = sys.argv[1], int(sys.argv[2])
lines, held = ([l for l in open(p, encoding="utf-8").read().split("\\n") if l] for p in (path, path + ".held"))
alphabet = len(set().union(*map(set, lines)))
tokenizer = Tokenizer(models.BPE())
trainer = trainers.BpeTrainer(vocab_size=alphabet + merges, min_frequency=2, show_progress=False)
start = time.process_time()
tokenizer.train_from_iterator(lines, trainer, length=len(lines))
train = time.process_time() - start
best = 1e9
for _ in range(3):
    start = time.process_time()
    tokens = sum(len(e.ids) for e in tokenizer.encode_batch(held))
    best = min(best, time.process_time() - start)
print(sum(map(len, lines)) / train, sum(map(len, held)) / best, tokens)
"""


def values(output):
    """Lines "name value" as a dictionary."""
    return {name: float(value) for name, value in (line.split() for line in output.splitlines())}


def other(path, merges):
    """Symbols per second of training and encoding with the other library, and its number of tokens."""
    python = f"{VENV}/bin/python"
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    if subprocess.run([python, "-c", "import tokenizers"], stderr=subprocess.DEVNULL).returncode != 0:
        subprocess.run([f"{VENV}/bin/pip", "-q", "install", TOKENIZERS], check=True)
    environment = dict(os.environ, RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    run = subprocess.run([python, "-c", SCRIPT, path, str(merges)], env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return map(float, run.stdout.split())


def measure(folder, options, targets, build, timed):
    """Prints the figures and adds the targets; `timed` as in run.py."""
    program, merges = f"{build}/bench/bench_tpe", 4096
    source = ["--file", options.tpe_file] if options.tpe_file else ["--nodes", str(options.tpe_nodes)]
    windows = f"{folder}/windows.txt"
    timed([program, *source, "--windows", windows, "--no-train"])
    best = {}
    for _ in range(options.repeats):
        ours = values(timed([program, *source, "--merges", str(merges)])[2])
        if not best or ours["train_cpu_seconds"] < best["train_cpu_seconds"]:
            best["train_cpu_seconds"] = ours["train_cpu_seconds"]
        best["encode_mnodes_per_s"] = max(best.get("encode_mnodes_per_s", 0), ours["encode_mnodes_per_s"])
    train_other, encode_other, tokens_other = other(windows, merges)
    train = ours["train_nodes"] / best["train_cpu_seconds"]
    encode = best["encode_mnodes_per_s"] * 1e6
    print(
        f"tpe, {ours['train_nodes'] / 1e6:.1f} M nodes, {ours['train_merges']:.0f} merges: train {train / 1e6:.1f} M nodes/s"
        f" = {train / train_other:.0f} x tokenizers ({train_other / 1e6:.2f} M/s); encode {encode / 1e6:.0f} M nodes/s"
        f" = {encode / encode_other:.0f} x tokenizers ({encode_other / 1e6:.2f} M/s);"
        f" {ours['encode_nodes']:.0f} nodes in {ours['encode_tokens']:.0f} tokens (tokenizers: {tokens_other:.0f})"
    )
    targets.check("tpe, training against tokenizers", train / train_other, MIN_TRAIN_RATIO, operator.ge)
    targets.check("tpe, encoding against tokenizers", encode / encode_other, MIN_ENCODE_RATIO, operator.ge)
    targets.check("tpe, encoding, million nodes/s on one core", encode / 1e6, MIN_ENCODE, operator.ge)
    if not options.keep:
        os.remove(windows)
        os.remove(windows + ".held")
    if options.tpe_large and not options.tpe_file:
        command = [program, "--nodes", str(options.tpe_large), "--merges", str(merges), "--threads", "0"]
        seconds, rss, output = timed(command)
        large = values(output)
        per_node = rss / large["train_nodes"]
        print(
            f"tpe, {large['train_nodes'] / 1e6:.0f} M nodes in {large['train_sequences']:.0f} steps, {large['train_merges']:.0f} merges:"
            f" train {large['train_seconds']:.1f} s (with generating {seconds:.1f} s), peak memory {rss / 1e9:.2f} GB"
            f" = {per_node:.1f} bytes a node, of containers {large['train_peak_bytes_per_node']:.1f};"
            f" {large['train_occurrences_per_node']:.2f} list entries and {large['train_list_steps_per_node']:.2f} steps a node"
        )
        targets.check("tpe, large training, bytes a node", per_node, MAX_BYTES, operator.le)
