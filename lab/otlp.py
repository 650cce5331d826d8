"""Receives OTLP spans over HTTP and writes them as JSON lines, one export request a line. Run by the stack's own Python.

usage: otlp.py PORT FILE
The file is opened anew for each request, so that it can be cut between cases.
"""
import base64
import http.server
import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

IDS = ("traceId", "spanId", "parentSpanId")


def as_json(body):
    """OTLP's own JSON form: ids in hexadecimal, enums as numbers."""
    request = ExportTraceServiceRequest.FromString(body)
    message = json_format.MessageToDict(request, use_integers_for_enums=True)
    for resource in message.get("resourceSpans", []):
        for scope in resource.get("scopeSpans", []):
            for span in scope.get("spans", []):
                for holder in (span, *span.get("links", [])):
                    for key in IDS:
                        if key in holder:
                            holder[key] = base64.b64decode(holder[key]).hex()
    return message


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            line = json.dumps(as_json(body), separators=(",", ":"))
            with open(self.server.target, "a", encoding="utf-8") as file:
                file.write(line + "\n")
            self.send_response(200)
        except (ValueError, OSError) as error:
            self.send_response(500, str(error)[:200])
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.target = sys.argv[2]
    server.serve_forever()


if __name__ == "__main__":
    main()
