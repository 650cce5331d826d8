"""One tree per request: on real servers' runs beside the repository, against what their clients recorded."""
import json
import statistics
import unittest

from harness import Case, teller

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

    def window(self, case):
        """Begin of the first and end of the last recorded step of the engine."""
        done = teller("inspect", case, "--json")
        steps = [s for s in json.loads(done.stdout)["step_list"] if s.get("prefill_requests") is not None]
        return (min(s["begin_ns"] for s in steps), max(s["end_ns"] for s in steps)) if steps else None

    @staticmethod
    def find(requests, client_id):
        found = [r for r in requests if r["id"] == client_id or r["id"] in (f"cmpl-{client_id}-0", f"cmpl-{client_id}")]
        return found[0] if found else None

    @staticmethod
    def is_known(case, client_id):
        """A span or a log line names the request (a whole word, so that 1 is not found in 10)."""
        for name in ("spans.jsonl", "server.log"):
            path = case / name
            if path.exists() and any(f"{q}{client_id}{e}" in path.read_text(errors="replace") for q, e in (("cmpl-", "-0\""), ("rid='", "'"))):
                return True
        return False

    def check_against(self, request, record):
        _, send, first, end, _, output = record
        error = request["at_error_ns"] + MS
        self.assertEqual(request["output_tokens"], output, request["id"])
        self.assertLessEqual(request["ttft_ns"], first - send + error, request["id"])
        self.assertLessEqual(request["e2e_ns"], end - send + error, request["id"])
        self.assertGreaterEqual(request["arrival_ns"], send - error, request["id"])


if __name__ == "__main__":
    unittest.main()
