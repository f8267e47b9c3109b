"""Completions over HTTP of a broker and a worker and of llama.cpp's llama-server, with the same file and prompts.

The report is {"peer_serve": {"version", "rounds", "prompt_tokens", "generated_tokens", "1_streams": {"peer_command",
"worker_options", "ours", "peer", "ratio"}, ...}}. The figures are medians over the rounds: "tokens_per_s", all tokens
from the first request that was sent to the last token; "decode_tokens_per_s", the sum of the streams' own speeds from
their first token on; "first_token_ms" and "slowest_first_token_ms" from the sending of a request;
"cpu_ms_per_token", CPU time of a server per generated token, prompts included. "health_ms" and "resident_mib" are of the
server's one start: the time until /health answers 200, and the memory of its processes then, each page that processes
share divided among them.

For each number of streams both servers start with capacity for just that number, and each answers one request that
does not count. Both stay up while the other one serves. With --adapters each stream uses an adapter of its own, all
of which are loaded before the rounds, and the key is "8_adapters" instead of "8_streams".
"""

import argparse
import contextlib
import dataclasses
import http.client
import itertools
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import peer

SERVER = "llama-server"
TENANT = "peer-serve"
START_TIMEOUT_S = 120
POLL_S = 0.005
LONGEST_ROUND_S = 600
CONTEXT_STEP = 256  # llama.cpp rounds the context of a slot up to it
PROMPT_SEED = 30
FIRST_WORD, WORDS = 300, 100  # tokens that are words in the vocabulary of every bundled model


@dataclasses.dataclass
class Server:
    """A server with OpenAI's API on 127.0.0.1, and the processes whose CPU time is its own."""

    port: int
    key: str
    model: str
    pids: list
    changes: list = dataclasses.field(default_factory=lambda: [{}])  # of the body, by stream
    start: dict = dataclasses.field(default_factory=dict)  # the figures of its start

    def cpu_s(self):
        # The id of a process's CPU clock, as clock_getcpuclockid(3) makes it.
        return sum(time.clock_gettime((~pid << 3) | 2) for pid in self.pids)


@dataclasses.dataclass
class Stream:
    """Times of one stream: `first` and `last` are its first and last event with a token."""

    sent: float = 0.0
    first: float = 0.0
    last: float = 0.0
    tokens: int = 0  # that the server counted
    error: "peer.Failure | None" = None

    def run(self, server, prompt, tokens, changes):
        try:
            self.request(server, prompt, tokens, changes)
        except peer.Failure as failure:
            self.error = failure
        except ConnectionRefusedError as error:
            self.error = peer.Failure("ConnectionRefused", f"127.0.0.1:{server.port}: {error}")
        except TimeoutError:
            self.error = peer.Failure("TimedOut", "completions take more than ten minutes; use a smaller model")
        except (OSError, http.client.HTTPException) as error:
            self.error = peer.Failure("ConnectionLost", f"127.0.0.1:{server.port}: {error!r}")

    def request(self, server, prompt, tokens, changes):
        body = {"model": server.model, "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True,
                "stream": True, "stream_options": {"include_usage": True}} | changes
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LONGEST_ROUND_S)
        with contextlib.closing(connection):
            self.sent = time.monotonic()
            connection.request("POST", "/v1/completions", json.dumps(body), {"Authorization": f"Bearer {server.key}"})
            answer = connection.getresponse()
            if answer.status != 200:
                raise peer.Failure("BadRequest", f"HTTP {answer.status} {answer.reason}")
            is_whole = False
            for line in answer:
                is_whole = is_whole or line.startswith(b"data: [DONE]")
                if line.startswith(b"data: {"):
                    self.take(json.loads(line[len(b"data: "):]))
        if not is_whole:
            raise peer.Failure("ConnectionLost", f"127.0.0.1:{server.port}: the answer was cut off")
        if self.tokens != tokens:
            raise peer.Failure("MalformedMessage",
                               f"an answer has {self.tokens} tokens, not {tokens}; use a server that continues after "
                               "an end token and reports the usage")
        if self.last <= self.first:
            raise peer.Failure("MalformedMessage", "an answer came in one event; generate more tokens")

    def take(self, event):
        if "error" in event:
            raise peer.Failure("ConnectionLost", json.dumps(event["error"]))
        if event.get("choices") and event["choices"][0].get("finish_reason") is None:
            self.last = time.monotonic()
            self.first = self.first or self.last
        self.tokens = (event.get("usage") or {}).get("completion_tokens", self.tokens)


def make_prompts(streams, tokens, first):
    """Prompts of words. Among WORDS successive prompts no two begin with the same word, so a cache of prompts has
    nothing to reuse. `first` is the number of prompts made before."""
    prompts = []
    for i in range(first, first + streams):
        words = random.Random(PROMPT_SEED + i)
        prompts.append([FIRST_WORD + i % WORDS] + [FIRST_WORD + words.randrange(WORDS) for _ in range(tokens - 1)])
    return prompts


def run_round(server, prompts, tokens):
    """Sends one request per prompt, each on a connection of its own, and returns the streams."""
    streams = [Stream() for _ in prompts]
    threads = [threading.Thread(target=stream.run, args=(server, prompt, tokens, changes))
               for stream, prompt, changes in zip(streams, prompts, itertools.cycle(server.changes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for stream in streams:
        if stream.error:
            raise stream.error
    return streams


def figures_of(streams):
    first_token_ms = [1e3 * (stream.first - stream.sent) for stream in streams]
    seconds = max(stream.last for stream in streams) - min(stream.sent for stream in streams)
    return {"tokens_per_s": sum(stream.tokens for stream in streams) / seconds,
            "decode_tokens_per_s": sum((stream.tokens - 1) / (stream.last - stream.first) for stream in streams),
            "first_token_ms": statistics.median_low(first_token_ms), "slowest_first_token_ms": max(first_token_ms)}


def measure_round(server, prompts, tokens):
    before_s = server.cpu_s()
    figures = figures_of(run_round(server, prompts, tokens))
    figures["cpu_ms_per_token"] = 1e3 * (server.cpu_s() - before_s) / (len(prompts) * tokens)
    return figures


def await_ready(process, is_ready, ended, what):
    """Polls until the server is ready. `ended(status)` is the failure of a process that ends before."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        ready = is_ready()  # perhaps another program that took the port
        if process.poll() is not None:
            raise ended(process.returncode)
        if ready:
            return
        time.sleep(POLL_S)
    raise peer.Failure("TimedOut", f"{what} is not ready after two minutes")


def resident_mib(pid):
    """Source: Linux, Documentation/ABI/testing/procfs-smaps_rollup."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
        return next(int(line.split()[1]) for line in rollup if line.startswith("Pss:")) / 1024


def await_health(process, port, ended, what, pids):
    """Waits for a server that was started just now. Returns the figures of its start; `pids` are its processes."""
    begun = time.monotonic()
    await_ready(process, lambda: is_healthy(port), ended, what)
    return {"health_ms": 1e3 * (time.monotonic() - begun), "resident_mib": sum(resident_mib(pid) for pid in pids)}


@contextlib.contextmanager
def stopped(process):
    """Ends the process at the end of the block."""
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


class Ours:
    """Our broker and worker, with an API key."""

    def __init__(self, options, streams, stack):
        self.options = options
        self.folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="peer-serve-"))
        self.broker_path = self.path("broker.sock")
        broker = self.start(stack, "leasehold-broker", "--socket", self.broker_path, "--capacity", "512MiB",
                            "--fence-timeout-ms", "30000")
        await_ready(broker, lambda: self.control("status") is not None, self.ended("leasehold-broker"), "the broker")
        self.worker_options = ["--http", f"127.0.0.1:{free_port()}"]
        if options.threads:
            self.worker_options += ["--threads", str(options.threads)]
        if options.simd:
            self.worker_options += ["--simd", options.simd]
        if options.adapters:
            self.worker_options += ["--adapters", options.adapters]
        port = int(self.worker_options[1].rsplit(":", 1)[1])
        cache(options.model)
        worker = self.start(stack, "leasehold-worker", "--broker", self.broker_path, "--name", "bench", "--listen",
                            self.path("bench.sock"), "--model", options.model, *self.worker_options)
        pids = [broker.pid, worker.pid]
        start = await_health(worker, port, self.ended("leasehold-worker"), "the worker", pids)
        await_ready(worker, self.is_ready, self.ended("leasehold-worker"), "the worker")
        self.control("tenants", "admit", TENANT, "--max-concurrent", str(streams), "--max-blocks", str(1 << 20),
                     "--ttl-ms", "3600000", "--max-adapters", "64", "--max-adapter-bytes", "64GiB")
        names = [os.path.splitext(file)[0] for file in adapter_files(options)[:streams]]
        for name in names:
            self.control("adapters", "add", name, "--file", name + ".gguf", "--tenant", TENANT)
        key = (self.control("keys", "create", "--tenant", TENANT) or {}).get("api_key")
        if not key:
            raise peer.Failure("SystemError", f"brokerctl creates no API key for tenant {TENANT}")
        self.server = Server(port, key, self.model_at(port, key), pids, [{"model": name} for name in names] or [{}],
                             start)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, stack, program, *arguments):
        with open(self.path(program + ".log"), "ab") as log:
            return stack.enter_context(stopped(subprocess.Popen(
                [os.path.join(self.options.bin_dir, program), *arguments], stdout=log, stderr=log)))

    def ended(self, program):
        def failure(status):
            with open(self.path(program + ".log"), encoding="utf-8", errors="replace") as log:
                return peer.Failure(status if status > 0 else "ConnectionLost",
                                    f"{program} ended with {status}; its log ends: {log.read()[-600:]}")
        return failure

    def control(self, *arguments):
        """The answer of brokerctl, or None."""
        done = subprocess.run([os.path.join(self.options.bin_dir, "brokerctl"), "--socket", self.broker_path, "-o",
                               "json", *arguments], capture_output=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def is_ready(self):
        workers = self.control("workers") or {}
        return any(worker["state"] == "ready" for worker in workers.get("items", []))

    @staticmethod
    def model_at(port, key):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        with contextlib.closing(connection):
            connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {key}"})
            return json.load(connection.getresponse())["data"][0]["id"]


def adapter_files(options):
    """The names of the files in the folder of adapters, in order; empty without adapters."""
    return sorted(os.listdir(options.adapters)) if options.adapters else []


def cache(path):
    """Makes the file present in memory, so that both servers start alike: ours drops it once it is loaded."""
    with contextlib.suppress(OSError), open(path, "rb") as file:  # the server says what is wrong
        while file.read(1 << 20):
            pass


def free_port():
    """A port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def is_healthy(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False


def start_peer(programs, options, streams, model, stack):
    """llama-server and its command line."""
    port = free_port()
    context = -(-(options.prompt_tokens + options.generated_tokens) // CONTEXT_STEP) * CONTEXT_STEP
    arguments = ["-m", options.model, "-np", str(streams), "-c", str(context * streams), "--host", "127.0.0.1",
                 "--port", str(port)]
    if options.threads:
        arguments += ["-t", str(options.threads)]
    files = adapter_files(options)[:streams]
    for file in files:
        arguments += ["--lora", os.path.join(options.adapters, file)]
    if files:
        arguments += ["--lora-init-without-apply"]
    changes = [{"lora": [{"id": i, "scale": 1}], "cache_prompt": False} for i in range(len(files))]
    cache(options.model)
    process = stack.enter_context(stopped(programs.start(SERVER, *arguments)))
    start = await_health(process, port, lambda status: programs.ended(SERVER, status), SERVER, [process.pid])
    return Server(port, "none", model, [process.pid], changes or [{}], start), " ".join([SERVER, *arguments])


def measure_streams(programs, options, streams, before_round):
    made = 0

    def next_prompts(count):
        nonlocal made
        made += count
        return make_prompts(count, options.prompt_tokens, made - count)

    with contextlib.ExitStack() as stack:
        ours = Ours(options, streams, stack)
        other, command = start_peer(programs, options, streams, ours.server.model, stack)
        for server in (ours.server, other):
            run_round(server, next_prompts(streams if options.adapters else 1), options.generated_tokens)
        figures = ([], [])
        for _ in range(options.rounds):
            before_round()
            prompts = next_prompts(streams)
            for server, rounds in zip((ours.server, other), figures):
                rounds.append(measure_round(server, prompts, options.generated_tokens) | server.start)
        return peer.compared(*figures) | {"peer_command": command, "worker_options": " ".join(ours.worker_options)}


def measure(options, before_round):
    report = {"rounds": options.rounds, "prompt_tokens": options.prompt_tokens,
              "generated_tokens": options.generated_tokens}
    with peer.Programs(options.peer, [SERVER]) as programs:
        report["version"] = programs.version_of(SERVER)
        what, default = ("adapters", [8]) if options.adapters else ("streams", [1, 8, 32])
        for streams in options.streams or default:
            report[f"{streams}_{what}"] = measure_streams(programs, options, streams, before_round)
    return {"peer_serve": report}


def text_of(report):
    """The report as a table."""
    everything = report["peer_serve"]
    runs = [(name, run) for name, run in sorted(everything.items()) if isinstance(run, dict)]
    rows = [[name, figure, f"{run['ours'][figure]:.2f}", f"{run['peer'][figure]:.2f}", f"{ratio:.2f}"]
            for name, run in runs for figure, ratio in sorted(run["ratio"].items())]
    commands = [f"{name}: leasehold-worker {run['worker_options']}; {run['peer_command']}\n" for name, run in runs]
    return peer.table(["STREAMS", "FIGURE", "OURS", "PEER", "RATIO"], "llrrr", rows) + (
        f"Medians of {everything['rounds']} rounds; prompts of {everything['prompt_tokens']} tokens, "
        f"{everything['generated_tokens']} generated per stream; the peer is llama.cpp {everything['version']}.\n"
    ) + "".join(commands)


def parse_options(arguments):
    parser = argparse.ArgumentParser(prog="peer_serve.py", description=__doc__.split("\n", 1)[0])
    peer.add_report_options(parser)
    parser.add_argument("--peer", required=True, metavar="DIR", help="Folder with llama.cpp's llama-server")
    parser.add_argument("--model", required=True, help="GGUF model")
    parser.add_argument("--streams", action="append", type=peer.in_range(1, 63),
                        help="Streams at the same time; repeatable; default: 1, 8 and 32, with --adapters 8")
    parser.add_argument("--adapters", metavar="DIR",
                        help="Folder of GGUF adapters of the model, one for each stream")
    parser.add_argument("--prompt-tokens", type=peer.in_range(1, 1 << 20), default=64, help="Tokens of each prompt")
    parser.add_argument("--generated-tokens", type=peer.in_range(2, 1 << 20), default=64,
                        help="Tokens that each stream generates")
    parser.add_argument("--rounds", type=peer.in_range(1, 1000), default=3,
                        help="Rounds, in which both servers take turns")
    parser.add_argument("--threads", type=peer.in_range(1, 63),
                        help="Compute threads of both servers; default: what each chooses")
    parser.add_argument("--simd", metavar="PATH", help="SIMD path of our worker; default: the fastest of this CPU")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    settings = parse_options(sys.argv[1:])
    sys.exit(peer.run("peer-serve", settings, measure, text_of))
