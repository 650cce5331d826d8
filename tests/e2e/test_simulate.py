"""Simulated cases: whole, readable without loss, equal for equal seeds, and with the physics that they claim."""
import hashlib
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import time
import unittest

import jsonschema
from harness import ROOT, TELLER, Case, teller

LABEL_SCHEMA = json.loads((ROOT / "docs" / "reference" / "teller.label-1.schema.json").read_text())
# Kinds whose mechanism always writes a line of its own, whatever the engine; others do on some engines or at some magnitudes.
ALWAYS_LOGGED = {"rank-death", "oom", "gpu-hardware", "gpu-fault", "coll-hang", "coll-divergence", "client-error", "compile", "net-path", "intra-link"}
SOMETIMES_LOGGED = {"kv-pressure", "kv-transfer", "front-net"}
INPUTS = ("traces", "server.log", "logs", "kernel.log", "spans.jsonl", "metrics.txt", "host.jsonl")


def digest(folder):
    """Name and content of every file."""
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.rglob("*")) if p.is_file()}


def events(case, rank):
    return json.loads((case / "traces" / f"rank{rank}.pt.trace.json").read_text())["traceEvents"]


def requests(case):
    return [json.loads(line) for line in (case / "requests.jsonl").read_text().splitlines()]


def served(case, window):
    """Requests sent in a window (of a label), without those that the profiler's start or stop held."""
    held = json.loads((case / "label.json").read_text())["observer_ns"]
    for r in requests(case):
        end = r["token_times_ns"][-1] if r["token_times_ns"] else r["t_send_ns"] + 10**9
        if window[0] <= r["t_send_ns"] <= window[1] and not any(a < end and r["t_send_ns"] < b for a, b in held): yield r


def first_token_ms(case, window):
    """Median time to the first token; a second where it never came."""
    return statistics.median(((r["t_first_token_ns"] or r["t_send_ns"] + 10**9) - r["t_send_ns"]) / 1e6 for r in served(case, window))


def token_ms(case, window):
    """Median over requests of the mean time between tokens."""
    times = [r["token_times_ns"] for r in served(case, window) if len(r["token_times_ns"]) > 8]
    return statistics.median((t[-1] - t[0]) / 1e6 / (len(t) - 1) for t in times)


def tokens_a_second(case, window):
    return sum(window[0] <= t <= window[1] for r in requests(case) for t in r["token_times_ns"]) * 1e9 / (window[1] - window[0])


def window(case, usual=False):
    """Of the fault; `usual`: of all that is served."""
    label = json.loads((case / "label.json").read_text())
    if usual: return requests(case)[0]["t_send_ns"], max(t for r in requests(case) for t in r["token_times_ns"])
    return label["t_start_ns"], label["t_end_ns"]


def steps(case, mark):
    """Begin and length in ms of rank 0's annotated steps."""
    return sorted((e["ts"] / 1e3, e["dur"] / 1e3) for e in events(case, 0) if e.get("cat") == "user_annotation" and e["name"].startswith(mark))


def idle_ms(spans):
    """Time between steps, the longest first."""
    return sorted((b[0] - a[0] - a[1] for a, b in zip(spans, spans[1:])), reverse=True)


class Simulate(Case):
    def simulate(self, *args, name="cases"):
        folder = self.folder / name
        done = teller("lab", "simulate", "-o", folder, *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(folder.with_name(name + ".part").exists())
        return folder

    def refuse(self, *args):
        folder = self.folder / "refused"
        done = teller("lab", "simulate", "-o", folder, *args)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
        self.assertFalse(folder.exists())
        self.assertFalse(folder.with_name("refused.part").exists())
        return done.stderr.decode()

    def inputs(self, case):
        return [case / name for name in INPUTS if (case / name).exists()]

    def verdict(self, case):
        return self.diagnose(*self.inputs(case))

    def test_every_kind_is_whole_and_read_without_loss(self):
        for engine in ("vllm", "sglang", "fsdp"):
            cases = self.simulate("--engine", engine, "--ranks", 3, "--fault", "mix", "--count", 47, "--steps", 16, "--seed", 9, name=engine)
            checked = teller("lab", "check", cases, timeout=300)
            self.assertEqual(checked.returncode, 0, checked.stdout)
            kinds = set()
            for case in sorted(cases.iterdir()):
                label = json.loads((case / "label.json").read_text())
                jsonschema.validate(label, LABEL_SCHEMA)
                kinds.add(label["fault_kind"])
                line = (label["culprit"] or {}).get("log_record")
                if label["fault_kind"] in ALWAYS_LOGGED: self.assertTrue(line, label["fault_kind"])
                elif label["fault_kind"] not in SOMETIMES_LOGGED: self.assertIsNone(line, label["fault_kind"])
                verdict, status = self.verdict(case)
                self.assertEqual(status, 0, [d for d in verdict["diagnostics"] if d["severity"] in ("data-loss", "error")])
                # Neither names of files nor texts of inputs give the kind away.
                for path in self.inputs(case):
                    for file in [path] if path.is_file() else path.iterdir():
                        self.assertNotIn(label["fault_kind"] if "-" in label["fault_kind"] else "\0", file.read_text())
            self.assertGreaterEqual(len(kinds), 27)

    def test_equal_seeds_give_equal_bytes_whatever_the_threads(self):
        options = ("--engine", "vllm", "--ranks", 2, "--fault", "mix", "--count", 6, "--steps", 12, "--lost-events", 0.01, "--late-lines", 0.1)
        one = digest(self.simulate(*options, "--seed", 4, "--threads", 1, name="one"))
        self.assertEqual(one, digest(self.simulate(*options, "--seed", 4, "--threads", 3, name="three")))
        other = digest(self.simulate(*options, "--seed", 5, name="other"))
        self.assertFalse({v for k, v in one.items() if "traces" in k} & {v for k, v in other.items() if "traces" in k})

    def test_every_launched_kernel_runs_after_its_launch_and_streams_never_overlap(self):
        for engine in ("vllm", "fsdp"):
            case = self.simulate("--engine", engine, "--ranks", 2, "--fault", "straggler", "--steps", 12, name=engine) / "case-00001"
            for rank in range(2):
                trace = [e for e in events(case, rank) if e["ph"] == "X"]
                calls = {e["args"]["correlation"]: e for e in trace if e["cat"] == "cuda_runtime"}
                work = [e for e in trace if e["cat"] in ("kernel", "gpu_memcpy")]
                self.assertGreater(len(work), 1000)
                free = {}
                for event in sorted(work, key=lambda e: e["ts"]):
                    self.assertGreaterEqual(event["ts"], calls[event["args"]["correlation"]]["ts"])
                    self.assertGreaterEqual(event["ts"] + 0.0015, free.get(event["tid"], 0))
                    free[event["tid"]] = event["ts"] + event["dur"]

    def test_a_late_rank_makes_the_others_wait_and_has_the_shortest_collectives(self):
        case = self.simulate("--engine", "fsdp", "--ranks", 3, "--fault", "gpu-clock", "--magnitude", 1, "--seed", 2) / "case-00001"
        label = json.loads((case / "label.json").read_text())
        late = label["culprit"]["rank"]
        inside = [(s["ranks"][late][0] / 1e3, s["ranks"][late][1] / 1e3) for s in label["abnormal_steps"]]
        base = json.loads((case / "traces" / "rank0.pt.trace.json").read_text())["baseTimeNanoseconds"] / 1e3
        total = {}
        for rank in range(3):
            total[rank] = sum(e["dur"] for e in events(case, rank) if e.get("cat") == "kernel" and "AllGather" in e["name"]
                              and any(a <= e["ts"] + base <= b for a, b in inside))
        self.assertEqual(min(total, key=total.get), late)

    def pipelined(self, fault="none", *more):
        return self.simulate("--engine", "vllm", "--ranks", 4, "--pipeline", 2, "--fault", fault, "--seed", 5, *more, name=f"pp-{fault}") / "case-00001"

    def test_a_pipeline_computes_what_one_stage_would_and_hands_on_all_of_it(self):
        case = self.pipelined("none", "--steps", 20)
        whole = self.simulate("--engine", "vllm", "--ranks", 2, "--steps", 20, "--seed", 5, name="whole") / "case-00001"
        attention = lambda c, rank: sum(e.get("cat") == "kernel" and "FlashAttn" in e["name"] for e in events(c, rank))
        # The same seed draws the same number of layers.
        self.assertEqual(attention(case, 0) + attention(case, 2), attention(whole, 0))
        self.assertEqual(attention(case, 1) + attention(case, 3), attention(whole, 1))
        base = {r: json.loads((case / "traces" / f"rank{r}.pt.trace.json").read_text())["baseTimeNanoseconds"] / 1e3 for r in range(4)}
        passes = lambda rank: sorted((base[rank] + e["ts"], base[rank] + e["ts"] + e["dur"], e["args"]["Collective name"], e["args"]["In msg nelems"])
                                     for e in events(case, rank) if e.get("cat") == "kernel" and "SendRecv" in e["name"])
        for sender, receiver in ((0, 2), (1, 3)):
            sent, received = passes(sender), passes(receiver)
            self.assertEqual({p[2] for p in sent} | {p[2] for p in received}, {"send", "recv"})
            self.assertEqual([p[3] for p in sent], [p[3] for p in received])
            self.assertEqual(len(sent), 2 * len(steps(case, "execute_context")))
            for a, b in zip(sent, received):
                self.assertLess(a[0], b[1])  # nothing is there before it was sent

    def test_a_slow_stage_makes_the_next_one_wait_for_it(self):
        case = self.pipelined("gpu-clock", "--magnitude", 1)
        label = json.loads((case / "label.json").read_text())
        self.assertEqual(label["culprit"]["process"], f"Worker_PP{label['culprit']['rank'] // 2}_TP{label['culprit']['rank'] % 2}")
        self.assertEqual(sorted(label["victims"] + [label["culprit"]["rank"]]), [0, 1, 2, 3])
        self.assertIn("pipeline_parallel_size=2", (case / "server.log").read_text())
        self.assertLess(label["culprit"]["rank"], 2, "the seed no longer draws a rank of the first stage")
        inside = [(s["ranks"][2][0] / 1e3, s["ranks"][2][1] / 1e3) for s in label["abnormal_steps"]]
        base = json.loads((case / "traces" / "rank2.pt.trace.json").read_text())["baseTimeNanoseconds"] / 1e3
        waits = {True: [], False: []}
        for e in events(case, 2):
            if e.get("cat") == "kernel" and "SendRecv" in e["name"]:
                waits[any(a <= base + e["ts"] <= b for a, b in inside)].append(e["dur"])
        self.assertGreater(statistics.mean(waits[True]), 2 * statistics.mean(waits[False]))

    def test_a_slow_link_between_stages_is_found_however_slow_and_both_ends_are_named(self):
        for magnitude in (0.5, 0.97):
            case = self.pipelined("slow-link", "--magnitude", magnitude) if magnitude == 0.5 else \
                self.simulate("--engine", "vllm", "--ranks", 2, "--pipeline", 2, "--fault", "slow-link", "--magnitude", magnitude, "--seed", 5, name="two") / "case-00001"
            label = json.loads((case / "label.json").read_text())
            (case / "label.json").unlink()
            verdict, _ = self.diagnose(case)
            self.assertEqual(verdict["verdict"]["status"], "abnormal", magnitude)
            first = verdict["findings"][0]
            self.assertEqual(first["class"], "NET_LINK_FAULT", magnitude)
            self.assertIn(first["culprit"]["rank"], label["accept_ranks"])
            self.assertIn("sends to rank", first["explanation"])
            self.assertIsNone(first["without_it"])

    def test_a_stage_that_waits_for_a_long_prompt_of_the_one_before_is_no_pause(self):
        case = self.simulate("--engine", "vllm", "--ranks", 2, "--pipeline", 2, "--fault", "mix", "--count", 2, "--steps", 40, "--seed", 811, name="waits") / "case-00002"
        label = json.loads((case / "label.json").read_text())
        self.assertEqual(label["fault_kind"], "long-prefill", "the seed no longer draws a long prompt")
        (case / "label.json").unlink()
        self.assertEqual(self.diagnose(case)[0]["verdict"]["status"], "normal")

    def test_every_kind_that_a_pipeline_can_have_is_whole(self):
        options = ("--engine", "sglang", "--ranks", 4, "--pipeline", 4, "--fault", "mix", "--count", 36, "--steps", 12, "--seed", 9)
        cases = self.simulate(*options, "--threads", 1, name="one")
        checked = teller("lab", "check", cases, timeout=300)
        self.assertEqual(checked.returncode, 0, checked.stdout)
        self.assertEqual(digest(cases), digest(self.simulate(*options, "--threads", 3, name="three")))

    def twins(self, engine, fault, healthy, seed, *more):
        """A run at full magnitude and the healthy one with the same seed."""
        make = lambda kind, *full: self.simulate("--engine", engine, "--ranks", 2, "--fault", kind, *full, "--seed", seed, *more, name=f"{engine}-{kind}-{seed}")
        return make(fault, "--magnitude", 1) / "case-00001", make(healthy) / "case-00001"

    def test_a_run_and_its_healthy_twin_get_the_same_requests(self):
        for fault, healthy in (("sched-stall", "none"), ("kv-transfer", "disaggregation")):
            case, twin = self.twins("vllm", fault, healthy, 4)
            sent = [[(r["request_id"], r["t_send_ns"]) for r in requests(c)] for c in (case, twin)]
            count = min(map(len, sent))
            self.assertGreater(count, 12)
            # What was sent before the fault; afterwards the longer run only goes on.
            self.assertEqual(sent[0][:count], sent[1][:count])

    def test_speculation_that_fails_costs_tokens_not_steps(self):
        for engine in ("vllm", "sglang"):
            case, twin = self.twins(engine, "spec-collapse", "speculation", 5)
            self.assertGreater(token_ms(case, window(case)), 1.4 * token_ms(twin, window(case)))
            lengths = [[float(v) for v in re.findall(r"(?:accept len|acceptance length): ([\d.]+)", (c / "server.log").read_text())] for c in (case, twin)]
            self.assertLess(min(lengths[0]), 1.3)
            self.assertGreater(min(lengths[1]), 1.5)
            text = (twin / "metrics.txt").read_text()
            self.assertTrue("spec_decode_num_accepted_tokens_total" in text or "spec_accept_length" in text)

    def test_keys_that_do_not_come_leave_the_device_idle_and_requests_waiting(self):
        for fault, healthy in (("kv-transfer", "disaggregation"), ("slow-kv-tier", "kv-tier")):
            case, twin = self.twins("vllm", fault, healthy, 6)
            self.assertGreater(first_token_ms(case, window(case)), 3 * first_token_ms(twin, window(case)), fault)
            self.assertLess(tokens_a_second(case, window(case)), 0.7 * tokens_a_second(twin, window(twin, usual=True)), fault)
            for folder in (case, twin): self.assertTrue("KV Transfer metrics" in (folder / "server.log").read_text())

    def test_keys_of_a_tier_are_copied_to_the_device(self):
        for folder in self.twins("sglang", "slow-kv-tier", "kv-tier", 6):
            copied = [e["args"]["bytes"] for e in events(folder, 0) if e.get("cat") == "gpu_memcpy" and "HtoD" in e["name"]]
            self.assertGreater(max(copied), 100_000)

    def test_a_slow_checkpoint_holds_every_rank_between_steps(self):
        case, twin = self.twins("fsdp", "slow-checkpoint", "checkpoint", 7)
        longest = [idle_ms(steps(c, "ProfilerStep"))[0] for c in (case, twin)]
        self.assertGreater(longest[1], 20)
        self.assertGreater(longest[0], 10 * longest[1])
        for folder in (case, twin): self.assertIn("checkpoint of step", (folder / "logs" / "rank1.log").read_text())

    def test_slow_weights_show_in_the_log_of_the_start(self):
        seconds = []
        for folder in self.twins("vllm", "slow-weights", "none", 8):
            seconds.append(float(re.search(r"Loading weights took ([\d.]+) seconds", (folder / "server.log").read_text())[1]))
        self.assertLess(seconds[1], 10)
        self.assertGreater(seconds[0], 100)

    def test_a_lossy_network_touches_clients_and_not_the_device(self):
        case, twin = self.twins("vllm", "front-net", "none", 9)
        self.assertGreater(first_token_ms(case, window(case)), 3 * first_token_ms(twin, window(case)))
        self.assertTrue("aborted" in (case / "server.log").read_text())
        self.assertFalse("aborted" in (twin / "server.log").read_text())
        self.assertTrue(any("broke" in r.get("error", "") for r in requests(case)))
        self.assertEqual(json.loads((case / "label.json").read_text())["abnormal_steps"], [])

    def test_the_labelled_line_is_the_first_that_the_fault_left(self):
        for engine, fault, healthy, mark in (
                ("sglang", "client-error", "none", "is longer than the model's context length"), ("sglang", "kv-pressure", "burst", "Retract requests"),
                ("vllm", "kv-transfer", "disaggregation", "NIXL transfer failed"), ("vllm", "front-net", "none", "Aborted request(s)")):
            case, twin = self.twins(engine, fault, healthy, 11)
            label = json.loads((case / "label.json").read_text())
            lines = [line for line in (case / "server.log").read_text().splitlines() if mark in line]
            self.assertGreater(len(lines), 1, fault)
            self.assertTrue(lines[0].endswith(label["culprit"]["log_record"]), (lines[0], label["culprit"]["log_record"]))
            self.assertNotIn(mark, (twin / "server.log").read_text())

    def test_the_first_word_of_a_hang_is_labelled_and_of_a_divergence_the_culprits_own(self):
        for fault in ("coll-hang", "coll-divergence"):
            case = self.simulate("--engine", "fsdp", "--ranks", 3, "--fault", fault, "--seed", 5, name=fault) / "case-00001"
            label = json.loads((case / "label.json").read_text())
            said = sorted((line.split("]:[E")[1].split(" Process")[0], rank, line) for rank in range(3)
                          for line in (case / "logs" / f"rank{rank}.log").read_text().splitlines() if "Watchdog caught" in line)
            wanted = [line for _, rank, line in said if label["culprit"]["rank"] in (None, rank)][0]
            self.assertTrue(wanted.endswith(label["culprit"]["log_record"]), wanted)

    def test_a_planted_operator_is_named(self):
        case = self.simulate("--engine", "vllm", "--ranks", 2, "--fault", "slow-operator", "--magnitude", 1, "--seed", 3) / "case-00001"
        verdict, _ = self.verdict(case)
        self.assertEqual(verdict["findings"][0]["class"], "KERNEL_REGRESSION")

    def test_a_link_that_the_kernel_names_comes_before_the_transfers_that_it_slows(self):
        case = self.simulate("--engine", "vllm", "--ranks", 4, "--fault", "intra-link", "--magnitude", 0.6, "--steps", 24, "--seed", 3) / "case-00001"
        verdict, _ = self.verdict(case)
        self.assertEqual([f["class"] for f in verdict["findings"]], ["INTRA_LINK_DEGRADED", "NET_LINK_FAULT"])
        self.assertEqual(verdict["findings"][0]["culprit"]["rank"], json.loads((case / "label.json").read_text())["culprit"]["rank"])

    def test_healthy_runs_and_look_alikes_raise_few_alarms(self):
        alarms, runs = 0, 0
        for engine in ("vllm", "sglang", "fsdp"):
            for kind in ("none", "long-prefill", "shutdown"):
                cases = self.simulate("--engine", engine, "--ranks", 2, "--fault", kind, "--count", 3, "--seed", 21, name=f"{engine}-{kind}")
                for case in sorted(cases.iterdir()):
                    verdict, _ = self.verdict(case)
                    alarms += bool(verdict["findings"])
                    runs += 1
        self.assertLessEqual(alarms, runs // 9)

    def test_a_claim_may_touch_a_step_that_nobody_judges(self):
        # Re-timing such a claim read past the end of a list.
        cases = self.simulate("--engine", "vllm", "--ranks", 3, "--fault", "mix", "--count", 8, "--steps", 24, "--seed", 9)
        self.verdict(cases / "case-00008")

    def test_bad_requests_are_one_line_and_leave_nothing(self):
        self.assertIn("unknown fault", self.refuse("--engine", "vllm", "--fault", "gremlins"))
        self.assertIn("UNKNOWN is not built", self.refuse("--engine", "vllm", "--fault", "UNKNOWN"))
        self.assertIn("vllm cannot have", self.refuse("--engine", "vllm", "--fault", "slow-checkpoint"))
        self.assertIn("fsdp cannot have", self.refuse("--engine", "fsdp", "--fault", "kv-pressure"))
        self.assertIn("at least 2 ranks", self.refuse("--engine", "vllm", "--fault", "straggler"))
        self.assertIn("multiple of 8", self.refuse("--engine", "sglang", "--ranks", 12))
        self.assertIn("no pipeline", self.refuse("--engine", "fsdp", "--ranks", 4, "--pipeline", 2))
        self.assertIn("no 3 equal stages", self.refuse("--engine", "vllm", "--ranks", 4, "--pipeline", 3))
        self.assertIn("not modelled together with a pipeline", self.refuse("--engine", "vllm", "--ranks", 2, "--pipeline", 2, "--fault", "spec-collapse"))
        self.assertIn("12 ranks of a stage", self.refuse("--engine", "vllm", "--ranks", 24, "--pipeline", 2))
        self.assertIn("magnitude", self.refuse("--engine", "vllm", "--fault", "kv-pressure", "--magnitude", 2))
        for kind in ("none", "burst", "shutdown", "oom", "profiler"):
            self.assertIn(f"{kind} is the same at every magnitude", self.refuse("--engine", "vllm", "--fault", kind, "--magnitude", 0.5))
        for option, values in (("--seed", (-1, 2**63, "1.5", "nan", "")), ("--ranks", (0, -1, 4097)), ("--pipeline", (0, 7)), ("--count", (0, 10**7)), ("--steps", (7, "x")),
                               ("--threads", (-1, 1025)), ("--magnitude", (-1, "nan", 2, "0x1")), ("--lost-events", (-0.1, "nan")), ("--late-lines", (1.1, "inf"))):
            for value in values:
                self.assertIn(option, self.refuse("--engine", "vllm", f"{option}={value}"))
        self.assertIn("-o", teller("lab", "simulate", "--engine", "vllm").stderr.decode())

    def test_one_that_is_stopped_leaves_nothing(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            run = subprocess.Popen([TELLER, "lab", "simulate", "--engine", "vllm", "--ranks", "8", "--count", "2000", "-q", "-o", self.folder / "cases"],
                                   stderr=subprocess.PIPE)
            self.addCleanup(run.stderr.close)
            until = time.monotonic() + 60
            while not list(self.folder.glob("cases.part/*/traces/*")):
                self.assertLess(time.monotonic(), until)
                time.sleep(0.02)
            run.send_signal(number)
            status = run.wait()
            if number == signal.SIGTERM:
                self.assertEqual((status, run.stderr.read()), (2, b"teller: interrupted; nothing was kept\n"))
            while number == signal.SIGKILL and list(self.folder.iterdir()):
                self.assertLess(time.monotonic(), until)
                time.sleep(0.02)
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_folder_that_is_there_stays_as_it_is(self):
        folder = self.folder / "cases"
        folder.mkdir()
        done = teller("lab", "simulate", "--engine", "vllm", "-o", folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("is there already", done.stderr.decode())
        self.assertEqual(list(folder.iterdir()), [])

    @unittest.skipUnless(os.geteuid() == 0 and pathlib.Path("/dev/shm").is_dir(), "SKIPPED: needs root to mount a small disk")
    def test_a_full_disk_leaves_no_case_that_looks_whole(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True)
        if mounted.returncode != 0: self.skipTest("SKIPPED: no permission to mount")
        self.addCleanup(subprocess.run, ["umount", str(disk)], check=False)
        done = teller("lab", "simulate", "--engine", "vllm", "--ranks", 4, "-o", disk / "cases")
        self.assertEqual(done.returncode, 2)
        self.assertIn("disk full", done.stderr.decode())
        self.assertEqual(list(disk.iterdir()), [])

    def test_many_ranks_stream_in_bounded_memory(self):
        script = "import resource,subprocess,sys;subprocess.run(sys.argv[1:],check=True);print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        def peak(steps):
            command = ["python3", "-c", script, TELLER, "lab", "simulate", "--engine", "vllm", "--ranks", "64", "--steps", str(steps), "-q", "-o", str(self.folder / f"s{steps}")]
            return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        self.assertLess(peak(64), 1.5 * peak(8))


if __name__ == "__main__":
    unittest.main()
