"""The load client: sends planned requests and writes down, for each, when it was sent and when every token came.

Its record is the truth about what a user saw. It is no input of a diagnosis.
"""
import http.client
import json
import threading
import time


class LoadClient:
    """Open loop: a request goes out when its time has come, however slow the earlier ones are."""

    def __init__(self, port, stack, path="/v1/completions", timeout_s=60):
        """Of `stack`: how requests name the model, and where its engine takes their ids from."""
        self._port, self._stack, self._path, self._timeout = port, stack, path, timeout_s
        self._threads = []
        self._lock = threading.Lock()
        self._records = []
        self._stop = threading.Event()

    def start(self, planned, t0_ns):
        """`planned`: workload.Planned in order of time; their times are after t0_ns."""
        thread = threading.Thread(target=self._pace, args=(planned, t0_ns), daemon=True)
        thread.start()
        self._threads.append(thread)

    def _pace(self, planned, t0_ns):
        for request in planned:
            at = t0_ns + int(request.at_s * 1e9)
            while (left := (at - time.time_ns()) / 1e9) > 0:
                if self._stop.wait(left):
                    return
            thread = threading.Thread(target=self._one, args=(request, at), daemon=True)
            with self._lock:
                self._threads.append(thread)
            thread.start()

    def stop_sending(self):
        self._stop.set()

    def drain(self, seconds):
        """Waits for what is under way. Returns how many did not end."""
        until = time.monotonic() + seconds
        while True:
            with self._lock:
                alive = [t for t in self._threads if t.is_alive()]
            if not alive or time.monotonic() >= until:
                return len(alive)
            time.sleep(0.02)

    def records(self):
        with self._lock:
            return sorted((dict(r) for r in self._records), key=lambda r: r["t_planned_ns"])

    def _one(self, request, planned_ns):
        record = {"request_id": request.id, "kind": request.kind, "t_planned_ns": planned_ns,
                  "prompt_words": len(request.prompt.split()), "max_tokens": request.max_tokens}
        with self._lock:
            self._records.append(record)
        body = {"model": self._stack.model, "prompt": request.prompt, "max_tokens": request.max_tokens, "stream": True,
                "ignore_eos": True, "temperature": 0.0, "stream_options": {"include_usage": True}}
        if self._stack.id_field:
            body[self._stack.id_field] = request.id
        body.update(request.extra)
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=self._timeout)
        tokens = []
        try:
            record["t_send_ns"] = time.time_ns()
            connection.request("POST", self._path, json.dumps(body),
                               {"Content-Type": "application/json", "X-Request-Id": request.id})
            response = connection.getresponse()
            record["http_status"] = response.status
            if response.status == 200:
                self._stream(response, record, tokens)
            else:
                record["error"] = response.read(2000).decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            record["error"] = f"{type(error).__name__}: {error}"
        finally:
            connection.close()
        if tokens:
            record["t_first_token_ns"] = tokens[0]
            record["token_times_ns"] = tokens
        record["t_end_ns"] = time.time_ns()

    @staticmethod
    def _stream(response, record, tokens):
        for line in response:
            at = time.time_ns()
            if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                continue
            piece = json.loads(line[6:])
            if "error" in piece:
                record["error"] = str(piece["error"])
            if piece.get("usage"):
                record["usage"] = {k: piece["usage"][k] for k in ("prompt_tokens", "completion_tokens")}
            if piece.get("choices"):
                tokens.append(at)
