"""Simulated three-rank runs with one planted cause each: the right answer, whatever the order of records, files or threads."""
import random
import subprocess
import sys
import unittest

from harness import ROOT, Case, span, trace

# fault -> (rank, classes that are right, layers that are right). A gap without any span may be named after the scheduler or the host.
EXPECTED = {
    "slow_op": (2, {"KERNEL_REGRESSION"}, {"op"}),
    "late_rank": (1, {"HOST_CPU_BOUND"}, {"python"}),
    "host_gap": (0, {"HOST_CPU_BOUND"}, {"scheduler", "host"}),
}


class Planted(Case):
    def make(self, name, *args):
        out = self.folder / name
        subprocess.run([sys.executable, str(ROOT / "tools" / "make_demo_run.py"), str(out), *args], check=True)
        return out

    def answer(self, *args):
        verdict, status = self.diagnose(*args)
        self.assertEqual(status, 0)
        return verdict

    def check_fault(self, fault):
        rank, classes, layers = EXPECTED[fault]
        run = self.make("run", "--fault", fault)
        verdict = self.answer(run)
        self.assertEqual(verdict["verdict"]["status"], "abnormal")
        first = verdict["findings"][0]
        self.assertEqual(first["culprit"]["rank"], rank)
        self.assertIn(first["class"], classes)
        self.assertIn(first["culprit"]["layer"], layers)
        self.assertTrue({s["index"] for s in first["steps"]} <= set(range(13, 21)))
        # The other two wait for it; whoever is accused is no victim.
        self.assertEqual({v["rank"] for v in first["victims"]}, {0, 1, 2} - {rank})
        files = sorted(p for p in run.rglob("*") if p.is_file())
        others = {
            "one thread": self.answer(run, "--threads", 1),
            "four threads": self.answer(run, "--threads", 4),
            "files in another order": self.answer(*files[::-1]),
            "records in another order": self.answer(self.make("shuffled", "--fault", fault, "--shuffle", "7")),
        }
        for what, other in others.items():
            with self.subTest(what=what):
                keys = ("class", "culprit", "onset_ns", "end_ns")
                self.assertEqual([[f[k] for k in keys] for f in other["findings"]], [[f[k] for k in keys] for f in verdict["findings"]])

    def test_slow_operator_on_one_rank(self):
        self.check_fault("slow_op")

    def test_late_rank(self):
        self.check_fault("late_rank")

    def test_host_gap(self):
        self.check_fault("host_gap")

    def test_without_the_culprits_trace_nothing_is_called_normal(self):
        run = self.make("run", "--fault", "slow_op")
        next(run.rglob("rank2.json*")).unlink()
        verdict = self.answer(run)["verdict"]
        self.assertEqual(verdict["status"], "cannot_tell")
        self.assertIn("traces of 2 of 3 ranks", verdict["missing"][-1])

    def test_slow_transfers_on_gpu_streams_are_a_links(self):
        for slow_us, status in ((0, "normal"), (3000, "abnormal")):
            with self.subTest(slow_us=slow_us):
                verdict = self.answer(self.gpu_run(f"gpu{slow_us}", slow_us))
                self.assertEqual(verdict["verdict"]["status"], status)
                if slow_us:
                    self.assertEqual(verdict["findings"][0]["class"], "NET_LINK_FAULT")
                    self.assertTrue({s["index"] for s in verdict["findings"][0]["steps"]} <= set(range(20, 26)))

    def gpu_run(self, name, slow_us, ranks=3, steps=40, layers=4):
        """Kernels and all-reduces on streams, the host waiting at each step's end; in steps 20 to 25 all transfers are slow."""
        noise = random.Random(3)
        events = [[] for _ in range(ranks)]
        at = [1000.0] * ranks
        correlation = 0
        for step in range(steps):
            begin = max(at) + 50
            device = [begin + 10 + noise.uniform(0, 3) for _ in range(ranks)]
            host = begin
            for layer in range(layers):
                arrivals = []
                for rank in range(ranks):
                    correlation += 1
                    length = 80 + noise.gauss(0, 1)
                    events[rank].append(span("cudaLaunchKernel", host, 4, cat="cuda_runtime", correlation=correlation))
                    events[rank].append(span("gemm_bf16", device[rank], length, cat="kernel", pid=0, tid=7, correlation=correlation, device=rank, stream=7))
                    device[rank] += length + 1
                    arrivals.append(device[rank])
                end = max(arrivals) + 25 + (slow_us if 20 <= step < 26 else 0)
                for rank in range(ranks):
                    correlation += 1
                    leave = end + noise.gauss(0, 0.3)
                    events[rank].append(span("cudaLaunchKernel", host + 5, 4, cat="cuda_runtime", correlation=correlation))
                    events[rank].append(span("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", device[rank], leave - device[rank], cat="kernel", pid=0, tid=7,
                                             correlation=correlation, device=rank, stream=7))
                    device[rank] = leave + 1
                host += 10
            for rank in range(ranks):
                events[rank].append(span("step[DECODE bs=8]", begin - 2, device[rank] + 3 - begin, cat="user_annotation"))
                events[rank].append(span("cudaStreamSynchronize", host + 1, device[rank] - host - 1, cat="cuda_runtime"))
                at[rank] = device[rank] + 2
        for rank in range(ranks):
            self.write(f"{name}/rank{rank}.json", trace(events[rank], distributedInfo={"rank": rank, "world_size": ranks, "backend": "nccl"}))
        return self.folder / name

    def test_nothing_planted_nothing_found(self):
        self.assertEqual(self.answer(self.make("run", "--fault", "none"))["verdict"]["status"], "normal")

    def test_long_prefill_is_no_fault(self):
        self.assertEqual(self.answer(self.make("run", "--fault", "none", "--prefill"))["verdict"]["status"], "normal")

    def test_long_prefill_does_not_hide_a_fault(self):
        first = self.answer(self.make("run", "--fault", "slow_op", "--prefill"))["findings"][0]
        self.assertEqual(first["culprit"]["rank"], 2)
        self.assertEqual(first["class"], "KERNEL_REGRESSION")


if __name__ == "__main__":
    unittest.main()
