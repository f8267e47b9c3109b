#!/usr/bin/env python3
"""Acts as llama.cpp's llama-server: loads for two health checks, then answers completions."""

import http.server
import json
import sys

if "--version" in sys.argv:
    print("version: fake 7", file=sys.stderr)
    sys.exit(0)
with open(sys.argv[0] + ".arguments", "a", encoding="utf-8") as arguments:
    arguments.write(" ".join(sys.argv[1:]) + "\n")
if "-t" in sys.argv:
    print("no threads here", file=sys.stderr)
    sys.exit(3)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    loading_checks = 2

    def do_GET(self):
        status = 503 if Handler.loading_checks > 0 else 200
        Handler.loading_checks -= 1
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open(sys.argv[0] + ".bodies", "a", encoding="utf-8") as bodies:
            bodies.write(json.dumps(body) + "\n")
        self.send_response(200 if Handler.loading_checks < 0 else 503)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for _ in range(body["max_tokens"]):
            self.send_event({"choices": [{"text": " a", "finish_reason": None}]})
        usage = {"completion_tokens": body["max_tokens"]}
        self.send_event({"choices": [{"text": "", "finish_reason": "length"}], "usage": usage})
        self.send_chunk("data: [DONE]\n\n")
        self.send_chunk("")

    def send_event(self, event):
        self.send_chunk("data: " + json.dumps(event, separators=(",", ":")) + "\n\n")

    def send_chunk(self, text):
        self.wfile.write(f"{len(text):x}\r\n{text}\r\n".encode())

    def log_message(self, format, *args):
        pass


port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
