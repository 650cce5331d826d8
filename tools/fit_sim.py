#!/usr/bin/env python3
"""Fits the tables of the simulator to real traces and writes them as one small JSON file.

usage: fit_sim.py TRACES LAB OUT.json

TRACES holds Kineto traces of GPU runs, LAB labelled runs of real engines. What comes out are durations given shape
(a floor and a cost a token), spreads as quantiles relative to the median, and host times as quantiles: no event,
name or size of the sources is kept. Sources, with what each is used for, are listed in the file.
"""
import glob
import gzip
import json
import pathlib
import re
import statistics
import sys

# Probabilities of every list of quantiles.
GRID = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
LAUNCH = re.compile(r"Launch|Memcpy|Memset")


def events(path):
    """Complete events of a trace."""
    with gzip.open(path) as file:
        return [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]


def quantiles(values, digits=3):
    values = sorted(values)
    return [round(values[min(len(values) - 1, int(p * (len(values) - 1) + 0.5))], digits) for p in GRID]


def relative(values):
    middle = statistics.median(values)
    return [v / middle for v in values]


def kernels(path):
    return sorted((e for e in events(path) if e["cat"] == "kernel"), key=lambda e: e["ts"])


def roles(trace):
    """Durations by role of one forward pass of a dense model (four matrix products a layer, the last one the head)."""
    out = {}

    def add(role, event):
        out.setdefault(role, []).append(event["dur"])

    products = [e for e in trace if e["name"].startswith("Cijk_")]
    for index, event in enumerate(products[:-1]):
        add(("gemm_qkv", "gemm_o", "gemm_gate_up", "gemm_down")[index % 4], event)
    add("lm_head", products[-1])
    for event in trace:
        name = event["name"]
        if "rmsnorm" in name and "Li256E" in name: add("norm", event)
        elif "rmsnorm" in name: add("qk_norm", event)
        elif "rotary" in name: add("rope", event)
        elif "store_kvcache" in name: add("kv_store", event)
        elif "act_and_mul" in name: add("act", event)
        elif "paged_attention" in name and "reduce" in name: add("attn_reduce", event)
        elif "paged_attention" in name or "FmhaBatchPrefill" in name: add("attn", event)
        elif "direct_copy" in name: add("copy", event)
        elif "ArgMax" in name: add("sample", event)
        elif "gather" in name: add("embed", event)
    return out


def host_times(path):
    """Quantiles of launch calls, of host time between them, of launch to start on an idle stream, of kernel to kernel."""
    trace = events(path)
    launches = {e["args"]["correlation"]: e for e in trace
                if e["cat"] in ("cuda_runtime", "cuda_driver") and LAUNCH.search(e["name"])}
    ordered = sorted(launches.values(), key=lambda e: (str(e["tid"]), e["ts"]))
    between = [b["ts"] - a["ts"] - a["dur"] for a, b in zip(ordered, ordered[1:]) if a["tid"] == b["tid"]]
    work = sorted((e for e in trace if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")),
                  key=lambda e: (str(e["tid"]), e["ts"]))
    latency, back_to_back = [], []
    for before, event in zip(work, work[1:]):
        launch = launches.get(event["args"].get("correlation"))
        if launch is None or before["tid"] != event["tid"]: continue
        free = before["ts"] + before["dur"]
        if free < launch["ts"]: latency.append(event["ts"] - launch["ts"])
        elif free > launch["ts"] + launch["dur"] + 20: back_to_back.append(event["ts"] - free)
    return ordered, between, latency, back_to_back


def step_gaps(pattern, lab, name):
    """Host time between successive steps of a real engine, in us; pauses of an idle engine are left out."""
    gaps = []
    for path in glob.glob(str(lab / pattern)):
        steps = sorted((e for e in events(path) if e["cat"] == "user_annotation" and name.match(e["name"])),
                       key=lambda e: e["ts"])
        gaps += [b["ts"] - a["ts"] - a["dur"] for a, b in zip(steps, steps[1:])]
    return [g for g in gaps if 0 < g < 20000]


def end_spread(paths):
    """How far apart ranks leave one collective, against the middle one, on one clock."""
    ranks = []
    for path in paths:
        ranks.append(sorted(e["ts"] + e["dur"] for e in events(path) if e["cat"] == "kernel" and "nccl" in e["name"].lower()))
    count = min(len(r) for r in ranks)
    spread = []
    for k in range(count):
        ends = [r[k] for r in ranks]
        spread += [abs(e - statistics.median(ends)) for e in ends]
    return spread


def main():
    traces, lab, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    decode_file = traces / "tracelens/sglang_qwen3_8b_decode/decode_step.json.gz"
    extend_file = traces / "tracelens/sglang_qwen3_8b_extend_step.json.gz"
    moe_file = traces / "tracelens/vllm_mixed_piecewise_step.json.gz"
    few_file = traces / "tracelens/vllm_b200_eager_tp8_rank.json.gz"
    host_file = traces / "tracelens/qwen15_0.5b_h100.json.gz"
    ring_file = traces / "hta/ddp2_nccl_meta_rank0.json.gz"
    decode, extend = roles(kernels(decode_file)), roles(kernels(extend_file))
    many = 15360  # tokens of the prompt step
    context, pairs = 32785, 15728640  # keys read by the decoding step; query-key pairs of the prompt step
    gpu = {}
    for role in sorted(set(decode) | set(extend)):
        floor = statistics.median(decode.get(role, extend.get(role)))
        token = statistics.median(extend[role]) / many if role in extend else 0
        if role in ("lm_head", "sample"): token = 0  # a row a sequence: bound by reading the weights in both steps
        gpu[role] = {"floor_us": round(floor, 3), "per_token_us": round(token, 6)}
    gpu["attn"] = {"floor_us": 6.0, "per_context_us": round(statistics.median(decode["attn"]) / context, 8),
                   "per_pair_us": round(statistics.median(extend["attn"]) / pairs, 10)}
    moe, small = kernels(moe_file), kernels(few_file)
    moe_tokens = 8192

    def middle(trace, part):
        return statistics.median(e["dur"] for e in trace if part in e["name"])

    gpu["moe_up"] = {"floor_us": round(middle(small, "bmm_MxE4m3"), 3),
                     "per_token_us": round(middle(moe, "x1_swiglu") / moe_tokens, 6)}
    gpu["moe_down"] = {"floor_us": round(middle(small, "bmm_Bfloat16"), 3),
                       "per_token_us": round(statistics.median(
                           e["dur"] for e in moe if e["name"].startswith("_matmul_ogs") and "swiglu" not in e["name"])
                           / moe_tokens, 6)}
    gpu["route"] = {"floor_us": round(middle(moe, "_topk_forward"), 3), "per_token_us": 0}
    # Equal calls of one pass, relative to their median: short kernels scatter more.
    short, long = [], []
    for passed in (decode, extend):
        for values in passed.values():
            if len(values) >= 36 and max(values) < 4 * min(values):
                (short if statistics.median(values) < 20 else long).extend(relative(values))
    ordered, between, latency, back_to_back = host_times(host_file)
    sums = [e for e in events(ring_file) if e["cat"] == "kernel" and "AllReduce" in e["name"]]
    slopes = [e["dur"] / (e["args"]["In msg nelems"] * 4) for e in sums if e["args"].get("In msg nelems", 0) > 1e6]
    nvlink = sorted(e["dur"] for e in small if "multimem_all_reduce" in e["name"])[:-3]  # the longest ones wait
    ring = [e for e in small if "nccl" in e["name"].lower()]
    graph = [e["dur"] for e in events(moe_file) if e["name"] == "hipGraphLaunch"]
    tables = {
        "schema": "teller.sim-tables/1",
        "grid": GRID,
        "gpu": gpu,
        "spread": {"short": quantiles(short), "long": quantiles(long), "collective": quantiles(relative(nvlink))},
        "host_us": {
            "launch": quantiles([e["dur"] for e in ordered if "Launch" in e["name"]]),
            "launch_ex": quantiles([e["dur"] for e in ordered if e["name"] == "cudaLaunchKernelExC"]),
            "memcpy": quantiles([e["dur"] for e in events(few_file) if e["name"] == "cudaMemcpyAsync"]),
            "graph_launch": quantiles(graph),
            "between_launches": quantiles(between),
            "launch_to_start": quantiles(latency),
            "kernel_to_kernel": quantiles(back_to_back),
            "between_steps_vllm": quantiles(step_gaps("vllm/d01_healthy/traces/rank0*.gz", lab, re.compile("execute_context_[^0]|execute_context_0.0._generation_[^0]"))),
            "between_steps_sglang": quantiles(step_gaps("sglang/none_1/traces/*.gz", lab, re.compile(r"step\["))),
        },
        "collective": {
            "latency_us": round(ring[0]["dur"], 3),
            "node_us_per_byte": round(min(nvlink) / (888 * 2880 * 2), 9),
            "network_us_per_byte": round(min(slopes), 9),
            "end_spread_us": quantiles(end_spread(sorted(glob.glob(str(traces / "param_dlrm8/*.gz"))))),
        },
        "sources": {
            "sglang decode step, 8B dense model, batch 32, MI300X": "floors, spread, attention over context",
            "sglang prompt step of the same model, 15,360 tokens": "cost a token, attention over pairs",
            "vllm mixed step of a mixture of experts, 8,192 tokens, MI300X": "expert products a token, graph launches",
            "vllm eager prompt step of a mixture of experts, B200, tensor parallel 8": "expert floors, copies, in-node collectives",
            "transformer step on H100 without a server": "launch calls, host time between them, launch to start, kernel to kernel",
            "data parallel training of two ranks, A100": "network cost a byte",
            "recommendation model of eight ranks": "how far apart ranks leave a collective",
            "vllm and sglang servers on CPU, healthy runs": "host time between steps",
        },
    }
    out.write_text(json.dumps(tables, indent=1) + "\n")


if __name__ == "__main__":
    main()
