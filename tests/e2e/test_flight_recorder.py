"""Flight Recorder dumps: the recorder's own pickle gives what its JSON form gives, and a hostile one does nothing."""
import json
import os
import pickle
import unittest

from harness import BASE_NS, Case, teller


def entry(rank, sequence, state="scheduled", op="nccl:all_reduce", group=("0", "default_pg"), at=0):
    return {"record_id": sequence, "pg_id": 0, "process_group": list(group), "thread_name": "python3", "thread_id": "1",
            "collective_seq_id": sequence, "p2p_seq_id": 0, "op_id": sequence, "profiling_name": op,
            "time_created_ns": BASE_NS + at + 1000 * sequence, "input_sizes": [[4, 8], []], "input_dtypes": ["BFloat16"],
            "output_sizes": [[4, 8]], "output_dtypes": ["BFloat16"], "state": state, "time_discovered_started_ns": None,
            "time_discovered_completed_ns": None, "retired": False, "timeout_ms": 600000, "is_p2p": False, "duration_ms": 0.25,
            "frames": [{"name": f"step_{rank}", "filename": "serve.py", "line": 40 + rank}] * 3}


def dump(rank, entries, world):
    issued = max(e["collective_seq_id"] for e in entries)
    return {"version": "2.10", "nccl_version": "2.27.5",
            "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(world)))}},
            "pg_status": {"0": {"last_enqueued_collective": issued, "last_started_collective": -1, "last_completed_collective": 6}},
            "entries": entries}


def hang(world=4, missing=2):
    """Everybody waits in number 7 for one rank."""
    return {rank: dump(rank, [entry(rank, 6, "completed"), entry(rank, 7)] if rank != missing else [entry(rank, 6, "completed")], world)
            for rank in range(world)}


def tuples(value):
    """As the recorder writes it: the group's name and description are a tuple."""
    for one in value["entries"]:
        one["process_group"] = tuple(one["process_group"])
    return value


class Payload:
    """Runs a command when an unsafe reader meets it."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


class Pickles(Case):
    def verdict(self, folder):
        verdict, status = self.diagnose(folder)
        for file in verdict["input"]["files"]:
            for key in ("path", "bytes"):
                file.pop(key, None)
        return verdict["verdict"]["status"], verdict["findings"], verdict["notes"], [f["kind"] for f in verdict["input"]["files"]], status

    def both_ways(self, dumps, name):
        for rank, content in dumps.items():
            self.write(f"{name}/json/nccl_trace_rank_{rank}.json", json.dumps(content))
        want = self.verdict(self.folder / name / "json")
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with self.subTest(protocol=protocol):
                folder = f"{name}/pickle{protocol}"
                for rank, content in dumps.items():
                    self.write(f"{folder}/nccl_trace_rank_{rank}", pickle.dumps(tuples(content), protocol))
                self.assertEqual(self.verdict(self.folder / folder), want)
        return want

    def test_every_protocol_gives_the_diagnosis_of_the_json(self):
        status, findings, *_ = self.both_ways(hang(), "hang")
        self.assertEqual(status, "abnormal")
        self.assertEqual(findings[0]["culprit"]["rank"], 2)

    def test_real_dumps_as_pickles(self):
        root = self.needs("data/logs/nccl_flight_recorder")
        for case in sorted(root.iterdir()):
            dumps = {int(path.stem[4:]): json.loads(path.read_text()) for path in sorted(case.glob("rank*.json"))}
            self.assertEqual(len(dumps), 16, case)
            status, findings, *_ = self.both_ways(dumps, case.name)
            self.assertEqual(status, "abnormal")
            self.assertTrue(findings)

    def test_a_compressed_pickle_is_read(self):
        for rank, content in hang(missing=1).items():
            self.write(f"rank{rank}.pkl.gz", pickle.dumps(content))
        verdict, status = self.diagnose(self.folder)
        self.assertEqual(verdict["findings"][0]["culprit"]["rank"], 1)
        self.assertEqual(status, 0)

    def test_hostile_pickles_are_refused_and_run_nothing(self):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with self.subTest(protocol=protocol):
                mark = self.folder / f"owned{protocol}"
                content = dump(0, [entry(0, 7)], 2)
                content["entries"].append(Payload(mark))
                path = self.write(f"rank{protocol}", pickle.dumps(content, protocol))
                done = teller("diagnose", path)
                self.assertIn(done.returncode, (2, 3))
                self.assertIn(b"GLOBAL", done.stdout + done.stderr)
                self.assertFalse(mark.exists())
        # The other ranks' dumps are used all the same.
        for rank, content in hang().items():
            self.write(f"mixed/rank{rank}", pickle.dumps(content))
        self.write("mixed/rank9", pickle.dumps({"pg_config": {}, "entries": [Payload(self.folder / "owned")]}))
        verdict, status = self.diagnose(self.folder / "mixed")
        self.assertEqual(status, 3)
        self.assertEqual(verdict["findings"][0]["culprit"]["rank"], 2)
        self.assertFalse((self.folder / "owned").exists())

    def test_cut_off_pickles_are_said(self):
        whole = pickle.dumps(hang()[0])
        for n in (len(whole) - 1, len(whole) // 2, 200):
            done = teller("diagnose", self.write("rank0", whole[:n]))
            self.assertIn(done.returncode, (2, 3))
            self.assertIn(b"pickle", done.stdout + done.stderr)
        self.fails("diagnose", self.write("x.pkl", pickle.dumps({"weights": [1, 2, 3]})), says="no Flight Recorder dump")


if __name__ == "__main__":
    unittest.main()
