"""Three hosts and a gateway: `curl` streams one text while two of the hosts are killed. Ends with a line per check.

    python3 tests/checks/hosts/hosts_demo.py BIN_DIR

`tools/demo --hosts` builds the programs first. Exits with 1 when a check fails. Needs `curl`.
"""

import json
import os
import shutil
import subprocess
import sys
import time

import cell

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/models/leasehold-stories-q8_0.gguf")
TOKENS = 150
KILL_AFTER = (30, 75)  # tokens
SHOWN_CHARACTERS = 60


def body_of(model, is_stream):
    return json.dumps({"model": model, "messages": [{"role": "user", "content": "Tell me a story."}],
                       "max_tokens": TOKENS, "temperature": 0.8, "seed": 7, "ignore_eos": True, "stream": is_stream})


def curl(gateway, body):
    # The key is in a file: other users of the machine can read the words of a command.
    return subprocess.Popen(["curl", "--silent", "--no-buffer", "--max-time", "120", "--header",
                             "@" + gateway.cell.path("headers"), "--dump-header", gateway.cell.path("answer-headers"),
                             f"http://{gateway.address}/v1/chat/completions",
                             "--data", body], stdout=subprocess.PIPE)


class Stream:
    """What `curl` has printed of a stream."""

    def __init__(self, process):
        self.process = process
        self.events, self.pieces, self.times = [], [], []

    def read(self, tokens):
        """Reads until the text has so many tokens, or ends. False at its end."""
        while len(self.pieces) < tokens:
            line = self.process.stdout.readline()
            if not line:
                return False
            if line.startswith(b"data: {"):
                event = json.loads(line[len("data: "):])
                self.events.append(event)
                for choice in event.get("choices", []):
                    if choice["delta"].get("content"):
                        self.pieces.append(choice["delta"]["content"])
                        self.times.append(time.monotonic())
            elif line.startswith(b"data: "):
                self.events.append(line[len(b"data: "):].strip().decode())
        return True

    def text(self):
        return "".join(self.pieces)


def shown(text):
    return json.dumps(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…", ensure_ascii=False)


def begun_by(hosts):
    """The name of the host that began the last answer."""
    with open(hosts.path("answer-headers"), encoding="utf-8") as file:
        return next(line.split(":")[1].strip() for line in file if line.lower().startswith("leasehold-host:"))


def kill_two(hosts, gateway, stream):
    """Kills the host that writes, twice. Returns the names of the hosts that wrote, and the pauses in seconds."""
    writers, pauses, begin = [], [], 0
    for tokens in KILL_AFTER:
        stream.read(tokens)
        if not writers:
            writers.append(hosts.host(begun_by(hosts)))
        host = writers[-1]
        print(f"  host {host.name} writes {shown(''.join(stream.pieces[begin:]))}")
        begin, moment = len(stream.pieces), time.monotonic()
        host.kill()
        print(f"  host {host.name}: SIGKILL to broker and worker after {begin} tokens")
        moves = len(writers)
        cell.wait_for(lambda moves=moves: len(gateway.moves()) >= moves, "the text does not move", 30)
        writers.append(next(one for one in hosts.hosts if one.address == gateway.moves()[-1][2]))
        stream.read(begin + 8)
        pause = max(end - start for start, end in zip([moment, *stream.times[begin:]], stream.times[begin:]))
        pauses.append(pause)
        print(f"  host {writers[-1].name} goes on after a pause of {1000 * pause:.0f} ms")
    stream.read(TOKENS + 1)
    print(f"  host {writers[-1].name} writes {shown(''.join(stream.pieces[begin:]))}")
    return [host.name for host in writers], pauses


class Checks:
    def __init__(self):
        self.failed = 0

    def check(self, promise, seen, holds):
        print(f"{'ok    ' if holds else 'FAILED'}  {promise}: {seen}")
        self.failed += not holds


def judge(stream, undisturbed, code, writers):
    checks = Checks()
    text, wanted = stream.text(), undisturbed["choices"][0]["message"]["content"]
    checks.check("the text is the undisturbed one", f"{len(text)} of {len(wanted)} characters", text == wanted)
    checks.check("each token came once", f"{len(stream.pieces)} events of {TOKENS} tokens",
                 0 < len(stream.pieces) <= TOKENS)
    chunks = [event for event in stream.events if isinstance(event, dict)]
    for field in ("id", "created"):
        values = {event.get(field) for event in chunks}
        checks.check(f"{field} is the same in each event", ", ".join(map(str, values)), len(values) == 1)
    last = (stream.events or ["no event"])[-1]
    checks.check("the stream ends with [DONE]", last, last == "[DONE]")
    checks.check("curl kept one connection", f"exit code {code}", code == 0)
    checks.check("three hosts wrote it", ", ".join(writers), len(set(writers)) == 3)
    return checks.failed


def run(bin_dir):
    with cell.Cell(bin_dir, MODEL) as hosts:
        hosts.add_hosts(3, "--slow-motion-us", "100")
        gateway = hosts.add_gateway(listen="127.0.0.1:0")
        print(f"Hosts {', '.join(host.name for host in hosts.hosts)}, each a broker and a worker; "
              f"a gateway at http://{gateway.address}")
        model = cell.model_name(gateway.address, hosts.key)
        with open(os.open(hosts.path("headers"), os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(f"Authorization: Bearer {hosts.key}\nContent-Type: application/json\n")
        print("Undisturbed: curl reads the text once.")
        undisturbed = json.loads(curl(gateway, body_of(model, False)).communicate()[0])
        print("Disturbed: curl streams the same text, and the host that writes it is killed, twice.")
        process = curl(gateway, body_of(model, True))
        stream = Stream(process)
        writers, _ = kill_two(hosts, gateway, stream)
        print()
        return judge(stream, undisturbed, process.wait(), writers)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not shutil.which("curl"):
        print("demo: curl is missing; install it with tools/setup --ci", file=sys.stderr)
        return 2
    try:
        return 1 if run(sys.argv[1]) else 0
    except (cell.Failure, OSError) as failure:
        print(f"demo: {failure}", file=sys.stderr)
        return getattr(failure, "exit_code", 1)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main())
