"""NCCL_DEBUG logs: what `inspect` reads out of them, and that a weak link is named while healthy and uneven designs are not."""
import json
import unittest

from harness import Case, teller
from nccl_logs import BUS, VERSIONS, Job


class Topology(Case):
    def inspect(self, path):
        done = teller("inspect", path, "--json")
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return json.loads(done.stdout)["communicators"]

    def findings(self, job, **kwargs):
        verdict, _ = self.diagnose(self.write("job.log", job.log(**kwargs)))
        return verdict["findings"]

    def clean(self, job, **kwargs):
        self.assertEqual([(f["class"], f["explanation"]) for f in self.findings(job, **kwargs)], [])

    def one(self, job, fault, *words, **kwargs):
        found = self.findings(job, **kwargs)
        self.assertEqual([f["class"] for f in found], [fault], [f["explanation"] for f in found])
        for word in words:
            self.assertIn(word, found[0]["explanation"])
        self.assertTrue(found[0]["evidence"])
        return found[0]


class Reading(Topology):
    def test_the_real_log(self):
        log = self.needs("data/logs/nccl_a100_nvlink_pair/nccl_healthy.log")
        comm, = self.inspect(log)
        self.assertEqual((comm["channels"], comm["ring_gbs"], comm["nranks"]), (24, 240.0, 2))
        self.assertEqual([(r["rank"], r["host"], r["pid"], r["device"], r["bus_id"]) for r in comm["ranks"]],
                         [(0, "node0", 64904, 0, "17000"), (1, "node0", 64904, 1, "65000")])
        self.assertEqual([(p["from"], p["to"], p["via"], p["channels"]) for p in comm["peers"]],
                         [(0, 1, "P2P/direct pointer/read", 24), (1, 0, "P2P/direct pointer/read", 24)])
        self.assertIn({"host": "node0", "from": "GPU/17000", "to": "GPU/65000", "kind": "NVL", "gbs": 240.0}, comm["links"])
        self.assertEqual([n["count"] > 0 for n in comm["notices"]], [True] * 3)
        self.assertEqual([r["init_s"] for r in comm["ranks"]], [0.67, 0.67])
        verdict, status = self.diagnose(log)
        self.assertEqual((verdict["verdict"]["status"], verdict["findings"], status), ("normal", [], 0))
        # The table of nccl-tests is glued to NCCL's own lines there; none of those may be lost.
        records = json.loads(teller("logs", log, "--json", "--all").stdout)["records"]
        calls = [r for r in records if r["message"].startswith("AllReduce: opCount")]
        self.assertEqual(len(calls), log.read_bytes().count(b"AllReduce: opCount"))
        text = teller("inspect", log).stdout.decode()
        for words in ("24 channels", "ring 240.0 GB/s", "0 -> 1", "P2P/direct pointer/read", "NVL 240.0 GB/s"):
            self.assertIn(words, text)

    def test_every_version_tells_the_same(self):
        for version in VERSIONS:
            for gpus, hosts in ((4, 1), (8, 1), (4, 2)):
                for noise in (False, True):
                    with self.subTest(version=version, gpus=gpus, hosts=hosts, noise=noise):
                        job = Job(gpus=gpus, hosts=hosts, version=version)
                        comm, = self.inspect(self.write("job.log", job.log(seed=gpus, noise=noise)))
                        world = gpus * hosts
                        self.assertEqual([(r["rank"], r["host"], r["bus_id"], r["device"]) for r in comm["ranks"]],
                                         [(job.rank(h, g), job.host(h), BUS[g], g) for h in range(hosts) for g in range(gpus)])
                        self.assertEqual((comm["nranks"], comm["channels"], comm["ring_gbs"]), (world, 4, 240.0))
                        self.assertEqual((comm["p2p_channels"], comm["p2p_channels_per_peer"]), (4, 2))
                        self.assertEqual(comm["rings"], [" ".join(map(str, range(world)))])
                        self.assertEqual(comm["tree_edges"], [[r, r + 1] for r in range(world - 1)])
                        pairs = {(p["from"], p["to"], p["side"]) for p in comm["peers"]}
                        for rank in range(world):
                            side = "send" if rank % gpus == gpus - 1 and hosts > 1 else None
                            self.assertIn((rank, (rank + 1) % world, side), pairs)
                        self.assertEqual({p["channels"] for p in comm["peers"]}, {4})
                        switch = [l for l in comm["links"] if l["kind"] == "NVL"]
                        self.assertEqual(len(switch), world)
                        self.assertEqual({(l["to"], l["gbs"]) for l in switch}, {("NVS/0", 360.0)})
                        if version >= (2, 20):
                            self.assertEqual(comm["ranks"][1]["init_s"], 1.1)

    def test_a_file_for_each_rank_tells_the_same(self):
        job = Job(gpus=4, hosts=2)
        whole, = self.inspect(self.write("one/job.log", job.log()))
        for h in range(2):
            for g in range(4):
                self.write(f"many/rank{job.rank(h, g)}.log", "\n".join(job.process(h, g)) + "\n")
        many, = self.inspect(self.folder / "many")
        self.assertEqual(many, whole)

    def test_split_communicators_stay_apart(self):
        lines = []
        for g in range(4):
            front = f"n:{10 + g}:{20 + g} [{g}] NCCL INFO "
            lines += [front + f"ncclCommInitRank comm 0xa{g} rank {g} nranks 4 cudaDev {g} nvmlDev {g} busId {BUS[g]} commId 0x77 - Init {w}"
                      for w in ("START", "COMPLETE")]
            for split, color in ((1, g // 2), (2, g % 2)):
                rank = g % 2 if split == 1 else g // 2
                lines += [front + f"ncclCommSplit comm 0xb{split}{g} rank {rank} nranks 2 cudaDev {g} nvmlDev {g} busId {BUS[g]} parent 0xa{g} "
                          f"splitCount {split} color {color} key {g}- Init {w}" for w in ("START", "COMPLETE")]
        comms = self.inspect(self.write("split.log", "\n".join(lines) + "\n"))
        self.assertEqual(sorted([c["nranks"], [r["bus_id"] for r in c["ranks"]]] for c in comms),
                         sorted([[4, BUS[:4]], [2, BUS[0:2]], [2, BUS[2:4]], [2, [BUS[0], BUS[2]]], [2, [BUS[1], BUS[3]]]]))


class Judging(Topology):
    def test_healthy_twins_are_silent(self):
        for version in VERSIONS:
            for gpus in (4, 8):
                for fabric in ("switch", "mesh", "bridges", "pcie"):
                    with self.subTest(version=version, gpus=gpus, fabric=fabric):
                        self.clean(Job(gpus=gpus, version=version, fabric=fabric), noise=gpus == 4)
        self.clean(Job(hosts=3, gpus=4))

    def test_uneven_designs_are_no_faults(self):
        self.clean(Job(fabric="cube"))
        for nodes in ([0, 1, 2, 3], [1, 2, 3], [0, 3, 4, 7], [0, 1, 4, 5], [2, 3, 6, 7], [0, 1, 2, 4]):
            self.clean(Job(gpus=len(nodes), fabric="cube", nodes=nodes))
        self.clean(Job(fabric="pcie", numa_shm=True))
        self.clean(Job(fabric="bridges", numa_shm=True))
        self.clean(Job(gpus=4, fabric="pcie", numa_shm=True))
        self.clean(Job(gpus=4, fabric="pcie", pcie={(0, 2): 12.0, (0, 3): 12.0}))

    def test_what_is_slow_everywhere_is_a_note(self):
        for job, words in ((Job(fabric="pcie", all_shm=True), "host memory"),
                           (Job(gpus=2, hosts=3, socket={0, 1, 2}), "TCP sockets"),
                           (Job(gpus=2, hosts=2, no_gdr={(h, g) for h in range(2) for g in range(2)}), "GPU Direct")):
            verdict, _ = self.diagnose(self.write("slow.log", job.log()))
            self.assertEqual(verdict["findings"], [])
            self.assertTrue([n for n in verdict["notes"] if words in n["text"]], verdict["notes"])

    def test_one_weak_way_into_the_switch(self):
        for version in VERSIONS:
            for gpus, weak in ((4, 3), (8, 5)):
                for factor in (0.5, 17 / 18, 0):
                    with self.subTest(version=version, gpus=gpus, factor=factor):
                        job = Job(gpus=gpus, version=version, links={(0, weak, "NVS"): factor})
                        found = self.one(job, "INTRA_LINK_DEGRADED", f"GPU {BUS[weak]} (rank {weak})", "NVLink switch", noise=gpus == 8)
                        self.assertEqual(found["culprit"]["rank"], weak)
                        if factor:
                            self.assertIn(f"NVL[{360 * factor:.1f}]", found["evidence"][0]["text"])

    def test_one_weak_pair_of_a_mesh(self):
        for version in VERSIONS:
            for gpus, a, b in ((4, 0, 2), (8, 3, 6)):
                for factor in (0.5, 0.75, 0):
                    with self.subTest(version=version, gpus=gpus, factor=factor):
                        self.one(Job(gpus=gpus, version=version, fabric="mesh", links={(0, a, b): factor}), "INTRA_LINK_DEGRADED",
                                 f"GPU {BUS[a]} (rank {a})", f"GPU {BUS[b]} (rank {b})")

    def test_one_weak_bridge(self):
        self.one(Job(fabric="bridges", links={(0, 4, 5): 0.5}), "INTRA_LINK_DEGRADED", f"GPU {BUS[4]}", f"GPU {BUS[5]}")

    def test_one_pair_through_host_memory(self):
        for version in VERSIONS:
            for gpus in (4, 8):
                with self.subTest(version=version, gpus=gpus):
                    found = self.one(Job(gpus=gpus, version=version, shm={(0, 1, 2)}), "INTRA_LINK_DEGRADED", f"GPU {BUS[1]} (rank 1)",
                                     f"GPU {BUS[2]} (rank 2)", "SHM/direct/direct", noise=True)
                    self.assertIn("via SHM", found["evidence"][0]["text"])
                    self.assertIn("via P2P", found["evidence"][1]["text"])

    def test_one_narrow_slot(self):
        found = self.one(Job(fabric="pcie", pcie={(0, 6): 12.0}), "INTRA_LINK_DEGRADED", f"GPU {BUS[6]} (rank 6)", "12.0 GB/s")
        self.assertEqual(found["culprit"]["rank"], 6)

    def test_one_host_is_worse_than_its_twins(self):
        job = Job(gpus=2, hosts=4, fabric="bridges", links={(2, 0, 1): 0.5})
        self.one(job, "INTRA_LINK_DEGRADED", job.host(2), f"GPU {BUS[0]} (rank 4)")

    def test_network_paths(self):
        job = Job(gpus=2, hosts=3, socket={1})
        self.one(job, "NET_PATH_WRONG", job.host(1), "TCP sockets", "No device found")
        found = self.findings(Job(gpus=1, hosts=4, no_gdr={(2, 0)}))
        self.assertEqual({f["class"] for f in found}, {"NET_PATH_WRONG"})
        self.assertEqual(found[0]["culprit"]["rank"], 2)
        self.assertIn("GPU Direct", found[0]["explanation"])


class Hostile(Topology):
    def test_cut_and_absurd_lines(self):
        text = Job(gpus=4, version=(2, 27)).log(noise=True)
        for n in range(0, len(text), max(1, len(text) // 40)):
            done = teller("inspect", self.write("cut.log", text[:n] + "\n"), "--json")
            self.assertIn(done.returncode, (0, 2, 3), done.stderr)
        front = "h:1:2 [0] NCCL INFO "
        lines = ["comm 0x1 rank 5 nranks 2 cudaDev 0 busId 1000 commId 0x1 - Init START",
                 "comm 0x1 rank 99999999999999999999 nranks 99999999999999999999 cudaDev 0 busId 1000 - Init COMPLETE",
                 "comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x1 - Init START", "=== System : maxBw 1e400 totalBw nan ===",
                 "CPU/0", "+ NVL[1e999] - GPU/1", "+ NVL[-1] - GPU/1", " " * 60000 + "+ PCI[1.0] - GPU/1000 (0)", "Trees [0] 1/-1/-1->0->",
                 "Channel 00/99999 : 0 1", "Channel 00/0 : 0[0] -> 1[1] via " + "x" * 5000, "Channel 00/0 : 7[0] -> 9[1] via P2P/IPC",
                 "Ring 00 : 0[0] -> 0[0] via SHM/direct/direct", "9999999999 coll channels, 1 p2p channels, x p2p channels per peer"]
        comms = self.inspect(self.write("absurd.log", "".join(front + l + "\n" for l in lines)))
        self.assertEqual([c["nranks"] for c in comms], [2])
        self.assertLessEqual(max([len(p["via"]) for c in comms for p in c["peers"]], default=0), 64)


if __name__ == "__main__":
    unittest.main()
