"""Kills, stops and drains hosts and gateways at random while clients read texts of every kind, and compares each text
with the undisturbed one.

A client whose gateway is killed comes back through another one: a resumable text goes on behind its last event, and
another one begins again. The seed decides which texts and faults come, and when; `--seed` repeats them. The times of
the processes differ from run to run.
"""

import argparse
import collections
import json
import os
import random
import signal
import sys
import time

import cell
import client
import peer

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/models/leasehold-stories-q8_0.gguf")
HOSTS, GATEWAYS = 4, 2
HEALTHY_HOSTS = 2  # that no fault touches at any time
TEXTS_AT_ONCE = 12
NUMBERS = 3  # texts of each kind
TOKENS = 120
SLOW_MOTION_US = "30"
FAULT_PAUSE_S, REPAIR_S = (0.2, 1.2), (0.5, 4.0)
TEXT_TIMEOUT_S = 120
MOST_RETURNS = 1000
MOVES = "64"  # on a busy machine a text meets more than the eight faults that a gateway allows
HOST_FAULTS = ("kill_worker", "kill", "stop", "drain")
KINDS = (*client.KINDS, *client.FORMS, "resumable")


class Text:
    """A client's request, and its answer through one gateway after another."""

    def __init__(self, soak, kind, number):
        self.soak, self.kind, self.number = soak, kind, number
        self.returns = 0
        soak.begun += 1
        more = {"resumable": True, "request_id": f"soak-{soak.begun}"} if kind == "resumable" else {}
        self.target, self.body = client.request("sampled" if more else kind, number, soak.model, TOKENS, **more)
        self.begin()

    def begin(self, fields=(), before=None):
        self.gateway = self.soak.chance.choice([one for one in self.soak.cell.gateways if one not in self.soak.down])
        self.answer = self.soak.readers.open(self.gateway.address, self.soak.cell.key, self.body, self.target, fields)
        if before:
            # An error and the end after it are not part of the text.
            self.answer.events = [event for event in before.events if not event.startswith((b'{"error"', b"[DONE]"))]
            self.answer.last_id = before.last_id

    def is_cut(self):
        """Whether its client must come back: its gateway is gone, or asks for it."""
        asks_to_resume = any(b"Last-Event-ID" in event for event in self.answer.events[-2:])
        if self.answer.is_whole() and not asks_to_resume:
            return False
        return self.gateway in self.soak.down or (self.kind == "resumable" and self.returns < MOST_RETURNS)

    def come_back(self):
        self.returns += 1
        if self.kind == "resumable" and self.answer.last_id:
            self.begin([f"Last-Event-ID: {self.answer.last_id}"], self.answer)
        else:
            self.begin()


class Soak:
    def __init__(self, hosts, seed, seconds):
        self.cell, self.seconds = hosts, seconds
        self.chance = random.Random(seed)
        self.readers = client.Readers()
        self.calm, self.texts = {}, []
        self.down = {}  # host or gateway: when it is repaired
        self.begun = 0
        self.counts = collections.Counter()
        self.failures = []

    def run(self):
        self.cell.add_hosts(HOSTS, "--slow-motion-us", SLOW_MOTION_US, "--drain-timeout-ms", "5000")
        for _ in range(GATEWAYS):
            self.cell.add_gateway("--moves", MOVES)
        self.model = cell.model_name(self.cell.gateways[0].address, self.cell.key)
        self.read_calm()
        end = time.monotonic() + self.seconds
        next_fault = 0.0
        while time.monotonic() < end:
            while len(self.texts) < TEXTS_AT_ONCE:
                self.begin_text()
            if time.monotonic() >= next_fault:
                self.fail_something()
                next_fault = time.monotonic() + self.chance.uniform(*FAULT_PAUSE_S)
            self.step(next_fault)
        self.repair(everything=True)
        end = time.monotonic() + TEXT_TIMEOUT_S
        while self.texts and time.monotonic() < end:
            self.step(end)
        self.failures += [f"{text.kind} {text.number} does not end" for text in self.texts]
        self.require_hosts_serve()

    def read_calm(self):
        for kind in KINDS:
            texts = [Text(self, kind, number) for number in range(NUMBERS)]
            self.readers.run(timeout_s=TEXT_TIMEOUT_S)
            for text in texts:
                if not text.answer.is_whole():
                    raise cell.Failure("SystemError", f"the undisturbed text {kind} {text.number} ends early: status "
                                       f"{text.answer.status}, {text.answer.events[-1:] or text.answer.document!r}")
                self.calm[kind, text.number] = text.answer

    def begin_text(self):
        self.texts.append(Text(self, self.chance.choice(KINDS), self.chance.randrange(NUMBERS)))

    def step(self, until):
        """Reads until a text ends, or the moment; then judges and repairs."""
        self.readers.run(lambda: time.monotonic() >= until or any(text.answer.is_ended for text in self.texts),
                         TEXT_TIMEOUT_S)
        for text in [one for one in self.texts if one.answer.is_ended]:
            if text.is_cut():
                self.counts["came back"] += 1
                text.come_back()
                time.sleep(client.POLL_S)
            else:
                self.texts.remove(text)
                self.judge(text)
        self.repair()

    def judge(self, text):
        fault = client.fault_of(self.calm[text.kind, text.number], text.answer)
        self.counts["texts"] += 1
        self.counts[f"texts {text.kind}"] += 1
        if fault:
            self.failures.append(f"{text.kind} {text.number} through {text.gateway.name}: {fault}")
            print("CHANGED", self.failures[-1], flush=True)

    def fail_something(self):
        healthy = [host for host in self.cell.hosts if host not in self.down]
        gateways = [one for one in self.cell.gateways if one not in self.down]
        fault = self.chance.choice((*HOST_FAULTS, *HOST_FAULTS, "kill gateway"))
        repaired_at = time.monotonic() + self.chance.uniform(*REPAIR_S)
        if fault == "kill gateway":
            if len(gateways) < 2:
                return
            gateway = self.chance.choice(gateways)
            self.down[gateway] = repaired_at
            gateway.process.end(signal.SIGKILL)
        else:
            if len(healthy) <= HEALTHY_HOSTS:
                return
            host = self.chance.choice(healthy)
            self.down[host] = repaired_at
            getattr(host, fault)()
        self.counts[fault] += 1

    def repair(self, everything=False):
        """Repaired hosts count as healthy once every gateway that runs has seen them ready."""
        now = time.monotonic()
        for one in [one for one, at in self.down.items() if everything or at <= now]:
            if isinstance(one, cell.Host):
                one.mend()
            else:
                one.start()
                one.await_ready()
            self.cell.await_all_known(skip=[other for other in self.down if other is not one])
            del self.down[one]

    def require_hosts_serve(self):
        """After all that, each host writes a text."""
        for host in self.cell.hosts:
            target, body = client.request("greedy", 0, self.model, TOKENS)
            answer = self.readers.open(host.address, self.cell.key, body, target)
            self.readers.run(timeout_s=TEXT_TIMEOUT_S)
            if fault := client.fault_of(self.calm["greedy", 0], answer):
                self.failures.append(f"host {host.name} at the end: {fault}")

    def moves(self):
        return sum(len(set(gateway.moves())) for gateway in self.cell.gateways)


def report_of(soak, seed):
    return {"seed": seed, "seconds": soak.seconds, "moves": soak.moves(), "counts": dict(sorted(soak.counts.items())),
            "changed": soak.failures}


def text_of(report):
    rows = [[name, str(count)] for name, count in report["counts"].items()] + [["moves", str(report["moves"])]]
    changed = len(report["changed"])
    verdict = f"{changed} texts are changed." if changed else "Every text is the undisturbed one."
    return peer.table(["WHAT", "NUMBER"], "lr", rows) + "".join(line + "\n" for line in report["changed"]) + verdict


def parse_options(arguments):
    parser = argparse.ArgumentParser(prog="tools/soak --hosts", description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--bin-dir", required=True, help="Directory of the programs; tools/soak names it")
    parser.add_argument("--parse-only", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=peer.in_range(1, 86400), default=60, help="How long faults come")
    parser.add_argument("--seed", type=peer.in_range(0, 2**63), help="Seed for texts and faults; default: a random one")
    parser.add_argument("--out", metavar="DIR", help="Directory for the report as JSON and text")
    return parser.parse_args(arguments)


def main():
    options = parse_options(sys.argv[1:])
    if options.parse_only:
        return 0
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    print("seed", seed, flush=True)
    try:
        if options.out:
            os.makedirs(options.out, exist_ok=True)
        with cell.Cell(options.bin_dir, MODEL) as hosts:
            soak = Soak(hosts, seed, options.seconds)
            soak.run()
            report = report_of(soak, seed)
    except (cell.Failure, OSError) as failure:
        print(f"soak: {failure}; the seed was {seed}", file=sys.stderr)
        return getattr(failure, "exit_code", 1)
    print(text_of(report))
    if options.out:
        for name, text in (("json", json.dumps(report, indent=2)), ("txt", text_of(report))):
            with open(os.path.join(options.out, "hosts-soak." + name), "w", encoding="utf-8") as file:
                file.write(text + "\n")
    return 1 if report["changed"] else 0


if __name__ == "__main__":
    sys.exit(main())
