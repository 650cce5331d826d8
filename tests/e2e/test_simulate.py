"""Simulated cases: whole, readable without loss, equal for equal seeds, and with the physics that they claim."""
import hashlib
import json
import os
import pathlib
import subprocess
import unittest

import jsonschema
from harness import ROOT, TELLER, Case, teller

LABEL_SCHEMA = json.loads((ROOT / "docs" / "reference" / "teller.label-1.schema.json").read_text())
INPUTS = ("traces", "server.log", "logs", "kernel.log", "spans.jsonl", "metrics.txt", "host.jsonl")


def digest(folder):
    """Name and content of every file."""
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.rglob("*")) if p.is_file()}


def events(case, rank):
    return json.loads((case / "traces" / f"rank{rank}.pt.trace.json").read_text())["traceEvents"]


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
            cases = self.simulate("--engine", engine, "--ranks", 3, "--fault", "mix", "--count", 37, "--steps", 16, "--seed", 9, name=engine)
            checked = teller("lab", "check", cases, timeout=300)
            self.assertEqual(checked.returncode, 0, checked.stdout)
            kinds = set()
            for case in sorted(cases.iterdir()):
                label = json.loads((case / "label.json").read_text())
                jsonschema.validate(label, LABEL_SCHEMA)
                kinds.add(label["fault_kind"])
                verdict, status = self.verdict(case)
                self.assertEqual(status, 0, [d for d in verdict["diagnostics"] if d["severity"] in ("data-loss", "error")])
                # Neither names of files nor texts of inputs give the kind away.
                for path in self.inputs(case):
                    for file in [path] if path.is_file() else path.iterdir():
                        self.assertNotIn(label["fault_kind"] if "-" in label["fault_kind"] else "\0", file.read_text())
            self.assertGreaterEqual(len(kinds), 24)

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

    def test_a_planted_operator_is_named(self):
        case = self.simulate("--engine", "vllm", "--ranks", 2, "--fault", "slow-operator", "--magnitude", 1, "--seed", 3) / "case-00001"
        verdict, _ = self.verdict(case)
        self.assertEqual(verdict["findings"][0]["class"], "KERNEL_REGRESSION")

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
        for name in ("SPEC_COLLAPSE", "KV_TRANSFER_STALL", "STORAGE_SLOW", "FRONTEND_NET"):
            self.assertIn(f"{name} is not built", self.refuse("--engine", "vllm", "--fault", name))
        self.assertIn("fsdp cannot have", self.refuse("--engine", "fsdp", "--fault", "kv-pressure"))
        self.assertIn("at least 2 ranks", self.refuse("--engine", "vllm", "--fault", "straggler"))
        self.assertIn("multiple of 8", self.refuse("--engine", "sglang", "--ranks", 12))
        self.assertIn("magnitude", self.refuse("--engine", "vllm", "--magnitude", 2))
        self.assertIn("-o", teller("lab", "simulate", "--engine", "vllm").stderr.decode())

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
