"""NCCL Inspector output: every format version gives the same records, and only what is clearly proven becomes a finding."""
import json
import random
import unittest

from harness import BASE_NS, Case, teller

VERSIONS = ("v4.0", "v4.2", "v4.3", "flat")


def record(version, comm, rank, nranks, sn, us, bytes=1 << 26, op="AllReduce", host="n0", pid=100, nodes=1, at=0, peer=None,
           timing="kernel_gpu", busbw=None):
    front = "coll" if peer is None else "p2p"
    gbs = bytes / max(us, 1) / 1000
    perf = {front: op, f"{front}_sn": sn, f"{front}_msg_size_bytes": bytes, f"{front}_exec_time_us": us,
            f"{front}_timing_source": timing, f"{front}_algobw_gbs": gbs, f"{front}_busbw_gbs": gbs if busbw is None else busbw}
    if version == "v4.2" and peer is None:
        perf |= {"coll_algo": "RING", "coll_proto": "SIMPLE"}
    if peer is not None:
        perf["p2p_peer"] = peer
    if version == "v4.0":
        del perf[f"{front}_timing_source"]
    header = {"id": comm, "rank": rank, "n_ranks": nranks, "nnodes": nodes}
    metadata = {"inspector_output_format_version": version, "git_rev": "", "rec_mechanism": "nccl_profiler_interface",
                "dump_timestamp_us": BASE_NS // 1000 + at, "hostname": host, "pid": pid}
    return header, metadata, f"{front}_perf", perf


def lines(version, records):
    """The text of one process's file."""
    out, context = [], None
    for header, metadata, kind, perf in records:
        if version == "flat":
            out.append({**header, "hostname": metadata["hostname"], "pid": metadata["pid"],
                        "dump_timestamp_us": metadata["dump_timestamp_us"], kind: perf})
        elif version == "v4.3":
            if context != (header, metadata):
                context = (header, metadata)
                out.append({"header": header, "metadata": metadata, "dump_stats": {"coll_records": 1, "coll_dropped_since_last_dump": 0, "p2p_records": 0}})
            out.append({kind: perf})
        else:
            out.append({"header": header, "metadata": metadata, kind: perf})
    return "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in out)


class Inspector(Case):
    def run_of(self, version, ranks, calls, us, **kwargs):
        """One file a rank; us(rank, call, rng) is the time of a call on a rank."""
        rng = random.Random(7)
        times = [[us(r, c, rng) for c in range(calls)] for r in range(ranks)]
        for r in range(ranks):
            records = [record(version, "0xabc", r, ranks, c, times[r][c], pid=100 + r, at=1500 * c, **kwargs) for c in range(calls)]
            self.write(f"n0-pid{100 + r}.log", lines(version, records))

    def measured(self):
        done = teller("inspect", self.folder, "--json")
        self.assertIn(done.returncode, (0, 3), done.stderr)
        got = json.loads(done.stdout)
        for file in got["files"]:
            self.assertEqual(file["records_read"], file["spans"] + file["metadata"] + file["dropped"])
        return got["measured_collectives"]

    def test_every_version_gives_the_same(self):
        seen = []
        for version in VERSIONS:
            self.run_of(version, 4, 12, lambda r, c, rng: 400 + r)
            comm, = self.measured()
            self.assertEqual((comm["id"], comm["nranks"], comm["nodes"], comm["sends_and_receives"]), ("0xabc", 4, 1, 0))
            self.assertEqual([(r["rank"], r["host"], r["pid"]) for r in comm["ranks"]], [(r, "n0", 100 + r) for r in range(4)])
            op, = comm["ops"]
            self.assertEqual([(p["calls"], p["median_ns"]) for p in op["ranks"]], [(12, (400 + r) * 1000) for r in range(4)])
            self.assertEqual([p["came_last"] for p in op["ranks"]], [12, 0, 0, 0])
            verdict, status = self.diagnose(self.folder)
            self.assertEqual((verdict["findings"], status), ([], 0))
            self.assertEqual({f["kind"] for f in verdict["input"]["files"]}, {"nccl-inspector"})
            seen.append(comm)
        self.assertEqual([s == seen[0] for s in seen], [True] * len(seen))
        self.assertIn("rank 0 came last in 12", teller("inspect", self.folder).stdout.decode())

    def test_a_rank_that_comes_last_again_and_again(self):
        for version in VERSIONS:
            for late in (0, 3):
                with self.subTest(version=version, late=late):
                    self.run_of(version, 4, 40, lambda r, c, rng: rng.randint(95, 105) if r == late else rng.randint(600, 900))
                    verdict, _ = self.diagnose(self.folder)
                    finding, = verdict["findings"]
                    self.assertEqual((finding["class"], finding["culprit"]["rank"]), ("STRAGGLER_RANK", late))
                    self.assertEqual(sorted(v["rank"] for v in finding["victims"]), [r for r in range(4) if r != late])

    def test_waiting_that_nobody_alone_causes_is_silent(self):
        quiet = {
            "all alike": lambda r, c, rng: rng.randint(300, 360),
            "in turn": lambda r, c, rng: 100 if r == c % 4 else 900,
            "seldom": lambda r, c, rng: 100 if r == 2 and c % 10 == 0 else 420 if c % 10 else 900,
            "by a little": lambda r, c, rng: 40 if r == 2 else 90,
            "all slow": lambda r, c, rng: 90000,
        }
        for name, us in quiet.items():
            with self.subTest(name):
                self.run_of("v4.2", 4, 40, us)
                self.assertEqual(self.diagnose(self.folder)[0]["findings"], [])
        # Times of launches, measured by the CPU, tell nothing about waiting; neither does half of the ranks.
        self.run_of("v4.2", 4, 40, lambda r, c, rng: 100 if r == 1 else 900, timing="collective_cpu")
        self.assertEqual(self.diagnose(self.folder)[0]["findings"], [])
        self.run_of("v4.2", 4, 40, lambda r, c, rng: 100 if r == 1 else 900)
        (self.folder / "n0-pid103.log").unlink()
        self.assertEqual(self.diagnose(self.folder)[0]["findings"], [])

    def test_one_slow_communicator_among_its_like(self):
        for nodes, fault in ((1, "INTRA_LINK_DEGRADED"), (2, "NET_LINK_FAULT")):
            for slow in (None, 2):
                rng = random.Random(3)
                for comm in range(5):
                    for r in range(2):
                        us = [(1200 if comm == slow else 400) + rng.randint(0, 30) for _ in range(30)]
                        self.write(f"c{comm}r{r}.jsonl", lines("v4.2", [
                            record("v4.2", f"0xc{comm}", r, 2, c, us[c], host=f"n{comm}", pid=10 * comm + r, nodes=nodes) for c in range(30)]))
                findings = self.diagnose(self.folder)[0]["findings"]
                self.assertEqual([f["class"] for f in findings], [] if slow is None else [fault])
                if findings:
                    self.assertIn("0xc2", findings[0]["explanation"])
                    self.assertEqual(findings[0]["culprit"]["process"], "n2")

    def test_one_slow_pair(self):
        for slow in (None, (1, 2)):
            for r in range(4):
                records = []
                for peer in {(r + 1) % 4, (r - 1) % 4}:
                    pair = tuple(sorted((r, peer)))
                    records += [record("v4.2", "0xabc", r, 4, c, 1000, op="Send" if peer == (r + 1) % 4 else "Recv", peer=peer, pid=r,
                                       busbw=(40 if pair == slow else 180) - c % 3) for c in range(20)]
                self.write(f"pid{r}.log", lines("v4.2", records))
            findings = self.diagnose(self.folder)[0]["findings"]
            self.assertEqual([f["class"] for f in findings], [] if slow is None else ["INTRA_LINK_DEGRADED"])
            if findings:
                self.assertEqual(findings[0]["culprit"]["op"], "link rank 1 - rank 2")

    def test_the_rank_in_the_largest_communicator_counts(self):
        for r in range(4):  # two tensor-parallel pairs of a job of four
            records = [record("v4.2", "0xworld", r, 4, c, 300, pid=100 + r, at=100 * c, op="AllGather", bytes=1024) for c in range(5)]
            records += [record("v4.2", f"0xtp{r // 2}", r % 2, 2, c, 100 if r == 3 else 900, pid=100 + r, at=1500 * c) for c in range(40)]
            self.write(f"pid{r}.log", lines("v4.2", records))
        finding, = self.diagnose(self.folder)[0]["findings"]
        self.assertEqual((finding["class"], finding["culprit"]["rank"]), ("STRAGGLER_RANK", 3))

    def test_bad_lines_are_counted(self):
        good = lines("v4.2", [record("v4.2", "0xabc", 0, 2, c, 100) for c in range(3)])
        bad = ["{", "[]", '{"header":{"rank":0},"coll_perf":{}}', '{"header":{"rank":0,"n_ranks":2},"coll_perf":{"coll":"x","coll_sn":-1,"coll_exec_time_us":1}}',
               '{"header":{"rank":0,"n_ranks":2},"coll_perf":{"coll":"x","coll_sn":1,"coll_exec_time_us":1e300}}',
               '{"header":{"rank":99999999999,"n_ranks":2},"coll_perf":{"coll":"x","coll_sn":1,"coll_exec_time_us":1}}',
               '{"coll_perf":{"coll":"x","coll_sn":1,"coll_exec_time_us":1}}', '{"header":{"rank":0},"proxy_trace":{}}', "\x00\x01", "x" * 2_000_000]
        hexes = good.replace('"id":"0xabc"', '"id":0xabc')
        self.write("a.log", good + hexes + "\n".join(bad) + "\n" + good[:50])
        done = teller("inspect", self.folder, "--json")
        got = json.loads(done.stdout)
        file, = got["files"]
        self.assertEqual((file["spans"], file["dropped"], file["records_read"]), (6, len(bad) + 1, 6 + len(bad) + 1))
        counts = {d["code"]: d["count"] for d in got["diagnostics"]}
        self.assertEqual(counts["nccl-inspector.unquoted-hex"], 3)
        self.assertEqual(counts["nccl-inspector.no-context"], 1)
        self.assertEqual(counts["nccl-inspector.other-record"], 1)
        self.assertEqual([c["id"] for c in got["measured_collectives"]], ["0xabc"])
        self.assertEqual(done.returncode, 3)


if __name__ == "__main__":
    unittest.main()
