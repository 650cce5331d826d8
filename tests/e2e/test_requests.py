"""One tree per request: on real servers' runs beside the repository, against what their clients recorded."""
import datetime
import functools
import json
import random
import re
import statistics
import unittest

from harness import BASE_NS, Case, teller

MS = 1_000_000
SERVERS = ("vllm", "sglang")


def client_record(line):
    """(id, send, first token, end, prompt tokens, output tokens) of a request that went well; None otherwise."""
    r = json.loads(line)
    if "request_id" in r:  # vLLM's load client
        if r.get("http_status") != 200 or not r.get("usage") or r.get("error") or not r.get("t_first_token_ns"):
            return None
        return (r["request_id"], r["t_send_ns"], r["t_first_token_ns"], r["t_end_ns"], r["usage"]["prompt_tokens"],
                r["usage"]["completion_tokens"])
    if r.get("status") != 200 or r.get("error") or not r.get("token_ns"):
        return None
    return r["id"], r["send_ns"], r["first_token_ns"], r["end_ns"], r["meta"]["prompt_tokens"], r["meta"]["completion_tokens"]


def overlap(a, b, c, d):
    return max(0, min(b, d) - max(a, c))


class Sums(Case):
    """What must hold for every request, whatever the input."""

    def requests_of(self, *args):
        done = teller("requests", *args, "--json")
        self.assertIn(done.returncode, (0, 3), done.stderr.decode(errors="replace"))
        return json.loads(done.stdout)

    def check_sums(self, request):
        if request["phases"]:
            self.assertEqual(sum(p["duration_ns"] for p in request["phases"]), request["e2e_ns"], request["id"])
            self.assertTrue(all(p["duration_ns"] > 0 for p in request["phases"]), request["id"])
        model = sum(p["duration_ns"] for p in request["phases"] if p["kind"] in ("prefill", "decode"))
        if request["cover"] != "none":
            self.assertEqual(sum(request["parts"].values()), model, request["id"])
            self.assertTrue(all(v >= 0 for v in request["parts"].values()), request)


class RealServers(Sums):
    def cases(self):
        lab = self.needs("data/lab")
        for server in SERVERS:
            for label in sorted((lab / server).rglob("label.json")):
                if (label.parent / "requests.jsonl").exists():
                    yield label.parent, json.loads(label.read_text())

    def test_against_the_clients(self):
        explained, model_explained, exact, inside = [], [], 0, 0
        for case, label in self.cases():
            with self.subTest(case=case.name):
                listed = self.requests_of(case)
                window = self.window(case)
                records = [client_record(line) for line in (case / "requests.jsonl").read_text().splitlines()]
                for record in filter(None, records):
                    request = self.find(listed["requests"], record[0])
                    if request is None:
                        self.assertFalse(self.is_known(case, record[0]), f"{record[0]} has no tree")
                        continue
                    self.check_sums(request)
                    self.check_against(request, record)
                    _, send, _, end, prompt, output = record
                    stalls = sum(overlap(send, end, a, b) for a, b in label.get("observer_ns") or [])
                    if stalls == 0:
                        phases = {}
                        for p in request["phases"]:
                            phases[p["kind"]] = phases.get(p["kind"], 0) + p["duration_ns"]
                        model = sum(phases.get(k, 0) for k in ("queue", "prefill", "decode"))
                        model_explained.append(model / (end - send))
                        explained.append((model + phases.get("front end", 0) + phases.get("output", 0)) / (end - send))
                    if window and window[0] < request["arrival_ns"] and request["finished_ns"] < window[1]:
                        inside += 1
                        if request["cover"] == "exact":
                            exact += 1
                            self.assertEqual(request["step_tokens_decode"], output - 1, request["id"])
                            self.assertEqual(request["step_tokens_prefill"], prompt - (request["cached_tokens"] or 0), request["id"])
                        else:
                            print(f"\n{case.name}: {request['id']} lies inside the traced window and is {request['cover']}")
        print(f"\nexplained (median of {len(explained)}): {statistics.median(explained):.4f}, by queue, prefill and decode alone: "
              f"{statistics.median(model_explained):.4f}; inside the traced window {inside}, exact {exact}")
        self.assertGreaterEqual(statistics.median(explained), 0.95)
        self.assertGreater(inside, 0)
        self.assertEqual(exact, inside)

    def test_every_logged_id_has_a_tree(self):
        """Requests that failed too: an engine that dies names in one line those that it was serving."""
        named = 0
        for case, _ in self.cases():
            with self.subTest(case=case.name):
                listed = self.requests_of(case)["requests"]
                for line in (case / "requests.jsonl").read_text().splitlines():
                    record = json.loads(line)
                    client_id = record.get("request_id") or record.get("id")
                    if not client_id or not self.is_known(case, client_id):
                        continue
                    named += 1
                    self.assertIsNotNone(self.find(listed, client_id), f"{client_id} has no tree")
        print(f"\nids that a span or a log names: {named}")
        self.assertGreater(named, 0)

    def test_a_dump_of_the_scheduler_names_each(self):
        case = self.needs("data/lab/vllm/d08_worker_exception")
        for client_id, prompt, computed in (("013", 74, 0), ("018", 87, 0), ("011", None, 29), ("012", None, 93)):
            done = teller("request", f"d08-worker-exception-{client_id}", case, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            request = json.loads(done.stdout)
            if prompt is not None:
                self.assertEqual(request["prompt_tokens"], prompt)
            self.assertTrue(request["listed"]["in_flight"])
            self.assertEqual((request["listed"]["computed_tokens"], request["listed"]["ref"]), (computed, "line:368"))
            self.assertNotIn(368, [line["line"] for line in request["logs"]])

    def window(self, case):
        """Begin of the first and end of the last recorded step of the engine."""
        done = teller("inspect", case, "--json")
        steps = [s for s in json.loads(done.stdout)["step_list"] if s.get("prefill_requests") is not None]
        return (min(s["begin_ns"] for s in steps), max(s["end_ns"] for s in steps)) if steps else None

    @staticmethod
    def find(requests, client_id):
        form = re.compile(rf"(cmpl-)?{re.escape(client_id)}(-0)?(-[0-9a-f]{{8}})?")
        found = [r for r in requests if r["id"] == client_id] or [r for r in requests if form.fullmatch(r["id"])]
        return found[0] if found else None

    @staticmethod
    def is_known(case, client_id):
        """A span or a log line names the request, as the client wrote it or as the engine did."""
        form = re.compile(rf"(?<![\w.-])(cmpl-{re.escape(client_id)}-0(-[0-9a-f]{{8}})?|(?<=rid='){re.escape(client_id)})(?![\w-])")
        return any(form.search(RealServers.text(case / name)) for name in ("spans.jsonl", "server.log"))

    @staticmethod
    @functools.lru_cache(maxsize=4)
    def text(path):
        return path.read_text(errors="replace") if path.exists() else ""

    def check_against(self, request, record):
        _, send, first, end, _, output = record
        error = request["at_error_ns"] + MS
        self.assertEqual(request["output_tokens"], output, request["id"])
        self.assertLessEqual(request["ttft_ns"], first - send + error, request["id"])
        self.assertLessEqual(request["e2e_ns"], end - send + error, request["id"])
        self.assertGreaterEqual(request["arrival_ns"], send - error, request["id"])


class Synthetic(Sums):
    """Two engines whose output is interleaved in one stream, 500 requests under way at once."""

    REQUESTS = 500

    def run_of(self, with_spans=True, with_lines=True):
        chance = random.Random(5)
        truth, lines, spans = {}, [], []
        begin = BASE_NS
        for i in range(self.REQUESTS):
            engine = i % 2
            core = f"{chance.getrandbits(64):016x}"
            name = f"cmpl-{core}-0"
            arrival = begin + int(chance.uniform(0, 400e6))
            queue, prefill, decode = chance.uniform(0, 20), chance.uniform(0.05, 0.4), chance.uniform(20, 40)
            ttft = queue + prefill + 0.01
            e2e = ttft + decode + 0.002
            pid = 4000 + engine
            head = f"engine-{engine}  | (APIServer pid={pid}) INFO "
            for offset, text in ((0, f"[request_logger.py:65] Received request {name}: params: SamplingParams(n=1, max_tokens=64), lora_request: None."),
                                 (0.004, f"[async_llm.py:578] Added request {name}-{chance.getrandbits(32):08x}."),
                                 (e2e, f"[async_llm.py:601] Request {name} finished.")):
                lines.append((arrival + int(offset * 1e9), head, text, name))
            truth[name] = engine
            attributes = {"gen_ai.request.id": {"stringValue": name}, "gen_ai.usage.prompt_tokens": {"intValue": "100"},
                          "gen_ai.usage.completion_tokens": {"intValue": "64"}}
            for key, value in (("time_in_queue", queue), ("time_in_model_prefill", prefill), ("time_in_model_decode", decode),
                               ("time_to_first_token", ttft), ("e2e", e2e)):
                attributes["gen_ai.latency." + key] = {"doubleValue": value}
            spans.append({"traceId": core * 2, "spanId": core, "name": "llm_request", "startTimeUnixNano": str(arrival),
                          "endTimeUnixNano": str(arrival + int(e2e * 1e9)), "attributes": [{"key": k, "value": v} for k, v in attributes.items()]})
        for second in range(60):
            lines.append((begin + second * 10**9, "engine-0  | (APIServer pid=4000) INFO ", "[loggers.py:199] Engine 000: Avg prompt throughput: 10.0 tokens/s, "
                          "Avg generation throughput: 640.0 tokens/s, Running: 250 reqs, Waiting: 3 reqs, GPU KV cache usage: 50.0%", None))
        lines.sort(key=lambda line: line[0])
        of_line = {}
        if with_lines:
            text = []
            for number, (at, head, body, name) in enumerate(lines, 1):
                stamp = datetime.datetime.fromtimestamp(at / 1e9, datetime.timezone.utc).strftime("%m-%d %H:%M:%S")
                text.append(f"{head}{stamp} {body}")
                if name:
                    of_line[number] = name
            self.write("both.log", "\n".join(text) + "\n")
        if with_spans:
            self.write("spans.jsonl", "\n".join(json.dumps({"resourceSpans": [{"resource": {"attributes": [
                {"key": "service.name", "value": {"stringValue": "vllm"}}]}, "scopeSpans": [{"spans": [span]}]}]}) for span in spans) + "\n")
        return truth, of_line

    def check_lines(self, of_line):
        done = teller("logs", self.folder, "--json")
        tied = {r["line"]: r["request"] for r in json.loads(done.stdout)["records"]}
        right = sum(tied.get(line) == name for line, name in of_line.items())
        print(f"\nlines on the right request: {right} of {len(of_line)}")
        self.assertGreaterEqual(right, 0.99 * len(of_line))

    def test_spans_and_lines_together(self):
        truth, of_line = self.run_of()
        listed = self.requests_of(self.folder)
        self.assertEqual({r["id"] for r in listed["requests"]}, set(truth))
        for request in listed["requests"]:
            self.check_sums(request)
            self.assertEqual(request["log_records"], 3, request["id"])
            self.assertEqual({p["kind"] for p in request["phases"]} - {"front end", "output", "unexplained"}, {"queue", "prefill", "decode"})
        self.check_lines(of_line)

    def test_spans_alone_give_phases(self):
        truth, _ = self.run_of(with_lines=False)
        listed = self.requests_of(self.folder)
        self.assertEqual(len(listed["requests"]), len(truth))
        for request in listed["requests"]:
            self.check_sums(request)
            self.assertGreater(sum(p["duration_ns"] for p in request["phases"] if p["kind"] in ("queue", "prefill", "decode")), 0.99 * request["e2e_ns"])

    def test_lines_alone_give_requests(self):
        truth, of_line = self.run_of(with_spans=False)
        listed = self.requests_of(self.folder)
        self.assertEqual({r["id"] for r in listed["requests"]}, set(truth))
        for request in listed["requests"]:
            self.check_sums(request)
            self.assertGreater(request["e2e_ns"], 0)
        self.check_lines(of_line)

    def test_one_request(self):
        truth, _ = self.run_of()
        name = sorted(truth)[3]
        done = teller("request", name, self.folder, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        request = json.loads(done.stdout)
        self.assertEqual((request["schema"], request["id"], len(request["logs"])), ("teller.request/1", name, 3))
        text = teller("request", name[5:20], self.folder).stdout.decode()
        self.assertIn("decode", text)
        for wrong in ("nobody", ""):
            done = teller("request", wrong, self.folder)
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertEqual(done.stderr.decode().strip().count("\n"), 0)


if __name__ == "__main__":
    unittest.main()
