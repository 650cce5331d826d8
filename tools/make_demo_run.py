#!/usr/bin/env python3
"""Writes the run that `./dev demo` diagnoses: a simulated tensor-parallel decoder on three ranks.

usage: make_demo_run.py [OUT_DIR] [--fault slow_op|late_rank|host_gap|none] [--prefill] [--ranks N] [--shuffle SEED]
       (default: examples/demo_run --fault slow_op)

The files have the shape of torch.profiler's (Kineto) traces of a CPU run over gloo: python frames, operators with input
sizes, the collective's call and its transfer on a worker thread, distributedInfo and baseTimeNanoseconds. What goes wrong from
decode step 14 to 19:
  slow_op    the matrix product of layers.2.mlp.down_proj takes far too long on rank 2; the others wait in the all-reduce after it
  late_rank  rank 1 spends time in Python before it enters the first all-reduce of layer 1
  host_gap   rank 0 does something else between the steps; nothing of it is recorded
Steps with a larger batch are longer, too, and no fault; nor is the long prompt that --prefill puts in the middle. --shuffle writes
the events in another order. Same arguments, same bytes.
"""
import argparse
import gzip
import json
import pathlib
import random

RANKS = 3
LAYERS = 4
STEPS = 28
BAD_STEPS = range(14, 20)
SLOW_OP = {"rank": 2, "layer": 2, "extra_us": 21_000}
LATE_RANK = {"rank": 1, "layer": 1, "extra_us": 17_000}
HOST_GAP = {"rank": 0, "extra_us": 26_000}
PREFILL_STEP, PREFILL_ROWS = 21, 320
LARGE_BATCH = {4, 9, 16, 22, 25}
HIDDEN, INNER = 1536, 4096
BASE_NS = 1_768_469_400 * 1_000_000_000  # 2026-01-15 09:30:00 UTC
SEED = 20260115


class Rank:
    """Writes the events of one rank; `now` is its clock in microseconds after BASE_NS."""

    def __init__(self, rank):
        self.rank = rank
        self.pid = 4200 + rank
        self.worker = self.pid + 6
        self.now = 1_000.0 + 37.0 * rank
        self.random = random.Random(SEED + rank)
        self.events = []
        self.log = []
        self.frames = []
        self.python_id = 0
        self.external = 0
        for name, args in (("process_name", {"name": "python"}), ("process_labels", {"labels": "CPU"})):
            self.events.append({"ph": "M", "name": name, "ts": 0.0, "pid": self.pid, "tid": 0, "args": args})
        self.thread_name(self.pid, f"thread {self.pid} (python)")
        self.thread_name(self.worker, f"thread {self.worker} (pt_gloo_runloop)")

    def thread_name(self, tid, name):
        self.events.append({"ph": "M", "name": "thread_name", "ts": 0.0, "pid": self.pid, "tid": tid, "args": {"name": name}})

    def complete(self, cat, name, begin, end, args, tid=None):
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": self.pid, "tid": tid or self.pid,
                            "ts": round(begin, 3), "dur": round(round(end, 3) - round(begin, 3), 3), "args": args})

    def spend(self, us):
        self.now += us * self.random.lognormvariate(0.0, 0.05)

    def op(self, name, us, dims, inner=()):
        """One operator with the operators that it calls: [(name, us, dims)]."""
        self.external += 1
        args = {"External id": self.external, "Record function id": 0, "Input type": ["float"] * len(dims),
                "Input Dims": dims}
        begin = self.now
        self.spend(us * 0.1 if inner else us)
        for call in inner:
            self.op(*call)
            self.spend(2.0)
        self.complete("cpu_op", name, begin, self.now, args)

    def enter(self, name):
        self.python_id += 1
        parent = self.frames[-1][1] if self.frames else 0
        self.frames.append((name, self.python_id, self.now, parent))
        self.spend(6.0)

    def leave(self):
        name, python_id, begin, parent = self.frames.pop()
        self.spend(3.0)
        args = {"Python id": python_id}
        if parent:
            args["Python parent id"] = parent
        self.complete("python_function", name, begin, self.now, args)

    def say(self, level, text):
        ms = int(self.now / 1000)
        stamp = f"2026-01-15 09:{30 + ms // 60000:02d}:{ms // 1000 % 60:02d},{ms % 1000:03d}"
        self.log.append(f"{stamp} {level} [tp_worker.py:{len(text) + 40}] {text}")


def linear(rank, layer, name, rows, k, n, us, extra=0.0):
    rank.enter(f"nn.Module: {name}_{layer}")
    rank.op("aten::linear", 20.0, [[rows, 1, k], [n, k]],
            [("aten::t", 4.0, [[n, k]]), ("aten::mm", us + extra, [[rows, k], [k, n]])])
    rank.leave()


def all_reduce(ranks, rows):
    """Every rank arrives on its own time; the transfer ends for all at once."""
    arrivals = []
    for rank in ranks:
        rank.enter("torch/distributed/distributed_c10d.py(3011): all_reduce")
        begin = rank.now
        rank.spend(55.0)
        rank.external += 1
        rank.complete("cpu_op", "c10d::allreduce_", begin, rank.now,
                      {"External id": rank.external, "Input type": ["TensorList"], "Input Dims": [[[rows, 1, HIDDEN]]]})
        rank.spend(18.0)
        arrivals.append(rank.now)
    end = max(arrivals) + 330.0 * ranks[0].random.lognormvariate(0.0, 0.06)
    for rank, arrival in zip(ranks, arrivals):
        done = end + rank.random.uniform(1.0, 9.0)
        rank.complete("user_annotation", "gloo:all_reduce", arrival, done,
                      {"External id": rank.external, "Input type": ["float"], "Input Dims": [[rows, 1, HIDDEN]]}, rank.worker)
        rank.now = done + rank.random.uniform(12.0, 25.0)
        rank.leave()


def norm(rank, layer, which, rows):
    rank.enter(f"nn.Module: RMSNorm_{2 * layer + which}")
    rank.op("aten::rms_norm", 35.0, [[rows, 1, HIDDEN], [HIDDEN]], [("aten::pow", 9.0, [[rows, 1, HIDDEN]]), ("aten::mul", 7.0, [[rows, 1, HIDDEN]])])
    rank.leave()


def layer_forward(ranks, fault, step, layer, rows):
    part = HIDDEN // RANKS
    cost = 0.6 + 0.05 * rows
    for rank in ranks:
        rank.enter(f"nn.Module: DecoderLayer_{layer}")
        norm(rank, layer, 0, rows)
        rank.enter(f"nn.Module: Attention_{layer}")
        linear(rank, layer, "QkvProj", rows, HIDDEN, 3 * part, 420.0 * cost)
        rank.op("aten::scaled_dot_product_attention", 30.0, [[rows, 8, 1, 64], [rows, 8, 96 + step, 64]],
                [("aten::_scaled_dot_product_flash_attention_for_cpu", 260.0 * cost, [[rows, 8, 1, 64], [rows, 8, 96 + step, 64]])])
        linear(rank, layer, "OutProj", rows, part, HIDDEN, 180.0 * cost)
        if fault == "late_rank" and step in BAD_STEPS and (rank.rank, layer) == (LATE_RANK["rank"], LATE_RANK["layer"]):
            rank.enter("tp_worker.py(96): collect_metrics")
            rank.spend(LATE_RANK["extra_us"])
            rank.leave()
    all_reduce(ranks, rows)
    for rank in ranks:
        rank.leave()
        norm(rank, layer, 1, rows)
        rank.enter(f"nn.Module: Mlp_{layer}")
        linear(rank, layer, "UpProj", rows, HIDDEN, INNER // RANKS, 560.0 * cost)
        rank.op("aten::silu", 22.0, [[rows, 1, INNER // RANKS]])
        slow = fault == "slow_op" and step in BAD_STEPS and (rank.rank, layer) == (SLOW_OP["rank"], SLOW_OP["layer"])
        linear(rank, layer, "DownProj", rows, INNER // RANKS, HIDDEN, 520.0 * cost, SLOW_OP["extra_us"] if slow else 0.0)
    all_reduce(ranks, rows)
    for rank in ranks:
        rank.leave()
        rank.leave()


def run_step(ranks, fault, step, prefill):
    """One step of all ranks: a decode, or a prefill of PREFILL_ROWS tokens."""
    rows = PREFILL_ROWS if prefill else 24 if step in LARGE_BATCH else 8
    what = "prefill" if prefill else f"decode step {step}"
    begins = []
    for rank in ranks:
        begins.append(rank.now)
        rank.enter("tp_worker.py(118): run_step")
        rank.enter("nn.Module: Decoder_0")
        rank.op("aten::embedding", 40.0, [[32000, HIDDEN], [rows, 1]])
    for layer in range(LAYERS):
        layer_forward(ranks, fault, step, layer, rows)
    for rank, begin in zip(ranks, begins):
        linear(rank, 99, "LmHead", rows, HIDDEN, 32000 // RANKS, 900.0)
        rank.leave()
        rank.op("aten::argmax", 60.0, [[rows, 32000]])
        rank.leave()
        rank.external += 1
        rank.complete("user_annotation", what, begin, rank.now, {"External id": rank.external})
        if step % 4 == 3:
            rank.say("INFO", f"{what}: batch={rows} took {(rank.now - begin) / 1000:.1f} ms")
    # The scheduler releases all ranks together.
    start = max(rank.now for rank in ranks)
    for rank in ranks:
        rank.now = start + 300.0 * rank.random.lognormvariate(0.0, 0.1)
        if fault == "host_gap" and step + 1 in BAD_STEPS and rank.rank == HOST_GAP["rank"]:
            rank.now += HOST_GAP["extra_us"]


def write(rank, out, shuffle):
    if shuffle is not None:
        random.Random(shuffle).shuffle(rank.events)
    end = rank.now + 500.0
    rank.events.append({"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler",
                        "ts": 900.0, "dur": round(end - 900.0, 3), "args": {"Op count": 0}})
    document = {
        "schemaVersion": 1, "with_stack": 1, "record_shapes": 1,
        "distributedInfo": {"backend": "gloo", "rank": rank.rank, "world_size": RANKS, "pg_count": 1,
                            "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": RANKS, "ranks": list(range(RANKS))}]},
        "host_name": "demo-host", "displayTimeUnit": "ms", "baseTimeNanoseconds": BASE_NS, "traceEvents": rank.events,
        "traceName": f"rank{rank.rank}.json"}
    text = json.dumps(document, separators=(",", ":")).encode()
    traces, logs = out / "traces", out / "logs"
    traces.mkdir(parents=True, exist_ok=True)
    logs.mkdir(parents=True, exist_ok=True)
    (traces / f"rank{rank.rank}.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))
    (logs / f"rank{rank.rank}.log").write_text("\n".join(rank.log) + "\n")


def main():
    global RANKS
    default = pathlib.Path(__file__).resolve().parent.parent / "examples" / "demo_run"
    parser = argparse.ArgumentParser()
    parser.add_argument("out", nargs="?", type=pathlib.Path, default=default)
    parser.add_argument("--fault", choices=["slow_op", "late_rank", "host_gap", "none"], default="slow_op")
    parser.add_argument("--prefill", action="store_true")
    parser.add_argument("--ranks", type=int, default=RANKS)
    parser.add_argument("--shuffle", type=int)
    args = parser.parse_args()
    RANKS = args.ranks
    ranks = [Rank(r) for r in range(RANKS)]
    for rank in ranks:
        rank.say("INFO", f"tensor-parallel worker {rank.rank} of {RANKS} ready: {LAYERS} layers")
        rank.enter("tp_worker.py(12): <module>")
    for step in range(STEPS):
        if args.prefill and step == PREFILL_STEP:
            run_step(ranks, args.fault, step, prefill=True)
        run_step(ranks, args.fault, step, prefill=False)
    for rank in ranks:
        rank.leave()
        rank.say("INFO", "request batch finished")
        write(rank, args.out, args.shuffle)


if __name__ == "__main__":
    main()
