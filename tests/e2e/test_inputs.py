"""Folders as users have them: many ranks, ranks missing, files twice, every kind of input side by side."""
import json
import shutil
import sqlite3
import subprocess
import sys
import unittest

from harness import BASE_NS, ROOT, Case, teller

RANKS = 64
SLOW_RANK = 2
MS = 1_000_000


def otlp_span(name, begin, seconds, tokens):
    values = {"gen_ai.latency.time_in_queue": 0.001, "gen_ai.latency.time_in_model_prefill": 0.02, "gen_ai.latency.time_in_model_decode": seconds - 0.03,
              "gen_ai.latency.time_to_first_token": 0.025, "gen_ai.latency.e2e": seconds}
    attributes = [{"key": "gen_ai.request.id", "value": {"stringValue": name}}, {"key": "gen_ai.usage.completion_tokens", "value": {"intValue": str(tokens)}}]
    attributes += [{"key": k, "value": {"doubleValue": v}} for k, v in values.items()]
    return {"traceId": "0" * 31 + "1", "spanId": name[-16:].rjust(16, "0"), "name": "llm_request", "startTimeUnixNano": str(begin),
            "endTimeUnixNano": str(begin + int(seconds * 1e9)), "attributes": attributes}


class Folders(Case):
    def make(self, name, *args):
        out = self.folder / name
        subprocess.run([sys.executable, str(ROOT / "tools" / "make_demo_run.py"), str(out), *args], check=True)
        return out

    def check_slow_rank(self, verdict):
        first = verdict["findings"][0]
        self.assertEqual((first["culprit"]["rank"], first["class"]), (SLOW_RANK, "KERNEL_REGRESSION"))

    def test_sixty_four_ranks(self):
        run = self.make("run", "--fault", "slow_op", "--ranks", str(RANKS))
        verdict, status = self.diagnose(run)
        self.assertEqual(status, 0)
        self.assertEqual(verdict["input"]["ranks"], list(range(RANKS)))
        self.check_slow_rank(verdict)
        # Some ranks left no trace: the answer stands, and says what is missing.
        traces = sorted(p for p in run.rglob("*") if ".json" in p.name)
        for path in traces:
            if any(f"rank{r}." in path.name or f"rank{r:02d}." in path.name for r in (7, 8, 40)):
                path.unlink()
        verdict, _ = self.diagnose(run)
        self.check_slow_rank(verdict)
        self.assertTrue(any("3 of 64 ranks" in n["input"] for n in verdict["not_given"]), verdict["not_given"])

    def test_a_file_twice(self):
        run = self.make("run", "--fault", "slow_op")
        trace = next(p for p in sorted(run.rglob("*")) if "rank1" in p.name and ".json" in p.name)
        shutil.copy(trace, trace.with_name("copy_of_" + trace.name))
        verdict, _ = self.diagnose(run)
        self.check_slow_rank(verdict)
        self.assertTrue(any("rank" in d["text"] or "twice" in d["text"] for d in verdict["diagnostics"]), verdict["diagnostics"])

    def test_every_kind_side_by_side(self):
        run = self.make("run", "--fault", "slow_op")
        alone, _ = self.diagnose(run)
        (run / "spans.jsonl").write_text("".join(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [
            otlp_span(f"cmpl-{i:016x}-0", BASE_NS + i * 50 * MS, 0.2 + 0.01 * (i % 7), 12)]}]}]}) + "\n" for i in range(20)))
        (run / "metrics.txt").write_text("".join(f"# scrape {BASE_NS + i * 500 * MS}\n# TYPE vllm:num_requests_running gauge\n"
                                                 f'vllm:num_requests_running{{engine="0"}} {i % 3}\nvllm:num_preemptions_total{{engine="0"}} 0\n' for i in range(10)))
        (run / "host.jsonl").write_text("".join(json.dumps({"t_ns": BASE_NS + i * 500 * MS, "process": "worker", "run_ns": i * 400 * MS, "wait_ns": i * 5 * MS}) + "\n"
                                                for i in range(10)))
        (run / "dump0.json").write_text(json.dumps({"version": "2.9", "entries": [], "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}},
                                                    "pg_status": {"0": {"last_enqueued_collective": 3, "last_completed_collective": 3, "last_started_collective": 3}}}))
        with sqlite3.connect(run / "report.sqlite") as database:
            database.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
            database.execute("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)")
            database.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.20.0')")
            database.execute("CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER)")
            database.execute("INSERT INTO NVTX_EVENTS VALUES (1000, 2000, 59, 'range', 281474976710657)")
        database.close()
        (run / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
        verdict, status = self.diagnose(run)
        self.check_slow_rank(verdict)
        self.assertEqual([f["culprit"] for f in verdict["findings"]], [f["culprit"] for f in alone["findings"]])
        kinds = {f["kind"] for f in verdict["input"]["files"]}
        self.assertLessEqual({"kineto", "log", "otlp", "prometheus", "host-counters", "flight-recorder", "nsys", "other"}, kinds)
        self.assertEqual(verdict["input"]["requests"], 20)
        self.assertLess(len(verdict["not_given"]), len(alone["not_given"]))

    def test_every_kind_alone_gives_something(self):
        """Each input by itself is read, counted and answered; nothing crashes for the others' absence."""
        run = self.make("all", "--fault", "none")
        pieces = {"trace": [p for p in run.rglob("*") if ".json" in p.name], "log": [p for p in run.rglob("*") if p.suffix == ".log"]}
        pieces["spans"] = [self.write("spans.jsonl", json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [otlp_span("cmpl-1", BASE_NS, 0.3, 12)]}]}]}) + "\n")]
        pieces["counters"] = [self.write("metrics.txt", f"# scrape {BASE_NS}\n# TYPE a gauge\na 1\n# scrape {BASE_NS + MS}\n# TYPE a gauge\na 2\n")]
        pieces["host"] = [self.write("host.jsonl", "".join(json.dumps({"t_ns": BASE_NS + i * MS, "busy_s": i, "idle_s": 1}) + "\n" for i in range(3)))]
        for what, files in pieces.items():
            with self.subTest(what=what):
                self.assertTrue(files)
                verdict, _ = self.diagnose(*files)
                self.assertTrue(verdict["not_given"])
                for command in ("inspect", "tree", "logs", "requests"):
                    self.assertIn(teller(command, *files).returncode, (0, 3), command)


if __name__ == "__main__":
    unittest.main()
