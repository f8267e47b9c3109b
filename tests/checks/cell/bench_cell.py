"""The cell that `tools/bench cell` measures: hosts and gateways with event logs, and clients that never stop asking."""

import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hosts"))
import cell
import cell_local
import client
import etcd
import separate_link
from cell import Process
from peer import Failure

HOSTS = 5
MODEL_NAME = "Leasehold Stories"
PREFIX = f"/leasehold/{cell_local.CELL}/"
EVENT_LOG_BYTES = "4GiB"
RETRY_S = 0.05
EVENTS_BEFORE = 4  # of a text that has begun
BEGIN_TIMEOUT_S = 30
LOCAL_TENANT = "local"


def boottime():
    """The clock of ceilings, in seconds. Equal to time.monotonic() on a machine that was never suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class BenchHost(cell_local.Host):
    """A host whose broker and worker write event logs, and whose agent logs each ceiling."""

    def start_broker(self):
        self.broker = Process(self.cell, self.name + "-broker", "leasehold-broker", "--socket", self.socket(),
                              "--capacity", "64MiB", "--event-log", self.events("broker"), "--event-log-bytes",
                              EVENT_LOG_BYTES)

    def admit_local(self):
        """Admits a tenant of this host, under the key that all hosts know."""
        self.control("tenants", "admit", LOCAL_TENANT, "--max-concurrent", "8", "--max-blocks", "512")
        self.control("keys", "create", "--tenant", LOCAL_TENANT, "--key-file", self.cell.key_path)

    def events(self, program):
        return self.cell.path(f"{self.name}-{program}.events")


class BenchCell(cell_local.LocalCell):
    """`with BenchCell(settings, 5000, 500) as hosts:`; `beats` has what etcd has shown. With a link, the agent of the
    last host reaches etcd only through it."""

    def __init__(self, settings, ttl_ms, slack_ms, *worker_options, link=None):
        super().__init__(settings.bin_dir, settings.model, HOSTS, ttl_ms, slack_ms)
        self.worker_options, self.link = worker_options, link
        self.beats = None

    def start(self):
        super().start()
        self.beats = Beats(self.etcd.client())
        self.beats.start()

    def new_host(self, name):
        host = BenchHost(self, name, "--event-log", self.path(name + "-worker.events"), "--event-log-bytes",
                         EVENT_LOG_BYTES, "--http-trusted-proxy", "127.0.0.1", *self.worker_options)
        host.agent_options = ("--log-level", "debug")
        if self.link and len(self.hosts) + 1 == self.count:
            far = [word for url in self.etcd.other_urls for word in ("--etcd", url)]
            host.agent_prefix, host.agent_options = self.link.prefix, (*host.agent_options, *far, "--etcd-any-address")
        return host

    def new_etcd(self):
        return etcd.Etcd(self.folder.name, separate_link.NEAR if self.link else None)

    def control(self, *words):
        """What `brokerctl cell` prints with -o json."""
        code, text = self.brokerctl(*words, "-o", "json")
        if code != 0:
            raise Failure("SystemError", f"brokerctl cell {' '.join(words)} ends with {code}: {text}")
        return json.loads(text)

    def admit(self, tenant, concurrent=64):
        code, text = self.brokerctl("tenants", "admit", tenant, "--max-concurrent", str(concurrent))
        if code != 0:
            raise Failure("SystemError", f"tenant {tenant} is not admitted: {text}")

    def create_key(self, tenant):
        """(id, API key)."""
        made = self.control("keys", "create", "--tenant", tenant)
        return made["key"], made["api_key"]

    def await_served(self, key):
        """Every host answers requests with the key."""
        for host in self.hosts:
            status = cell_local.ask(host, key)
            if status != 200:
                raise Failure("SystemError", f"host {host.name} answers a key of the cell with {status}; its agent's "
                              f"log ends: {host.agent.log()[-600:]}")


class Beats(threading.Thread):
    """Watches the hosts of a cell, as a gateway does. `seen` has (time, host, Entry or None when it is deleted), by
    this machine's boot time."""

    def __init__(self, etcd_client):
        super().__init__(daemon=True)
        self.client, self.seen = etcd_client, []

    def run(self):
        prefix = PREFIX + "hosts/"
        try:
            for events in self.client.watch(prefix, prefix[:-1] + "0", revision=1):
                now = boottime()
                for is_deleted, entry in events:
                    self.seen.append((now, entry.key[len(prefix):], None if is_deleted else entry))
        except (OSError, Failure):
            pass  # etcd has ended


class LoopingText:
    """A client that asks again as soon as its answer ends, and soon after a refusal. `tend` it often."""

    def __init__(self, readers, address, key, number, tokens, **more):
        self.readers, self.address, self.key = readers, address, key
        self.body = client.chat("greedy", number, MODEL_NAME, tokens, **more)
        self.answers = []  # ended ones
        self.refusals = []  # (time, status); 0: no connection
        self.answer, self.next_try = None, 0.0

    def tend(self):
        now = time.monotonic()
        if self.answer and self.answer.is_ended:
            self.answers.append(self.answer)
            if self.answer.status != 200:
                self.refusals.append((now, self.answer.status or 0))
            if not self.answer.is_whole():
                self.next_try = now + RETRY_S
            self.answer = None
        if self.answer is None and now >= self.next_try:
            try:
                self.answer = self.readers.open(self.address, self.key, self.body)
            except OSError:
                self.refusals.append((now, 0))
                self.next_try = now + RETRY_S

    def every_answer(self):
        return self.answers + ([self.answer] if self.answer else [])

    def tokens(self):
        """When each token was read."""
        return [at for answer in self.every_answer() for at in token_times(answer)]

    def last_token(self):
        return max(self.tokens(), default=0.0)

    def leave(self):
        if self.answer:
            self.readers.close(self.answer)


def token_times(answer):
    """When the tokens of a stream were read: its events, but for the first, which has only a role, errors and ends."""
    return [at for data, at in zip(answer.events, answer.times)
            if b'"delta":{"content"' in data and b'"role"' not in data]


def run_loops(readers, loops, until, timeout_s):
    """Keeps the loops asking until it holds; returns whether that came in time."""
    def is_done():
        for loop in loops:
            loop.tend()
        return until()
    deadline = time.monotonic() + timeout_s
    while not is_done():
        if time.monotonic() > deadline:
            return False
        readers.run(is_done, max(0.0, min(RETRY_S, deadline - time.monotonic())))
        if not readers.open_answers:
            time.sleep(cell.POLL_S)
    return True


def run_for(readers, loops, seconds):
    end = time.monotonic() + seconds
    run_loops(readers, loops, lambda: time.monotonic() >= end, seconds + 1)


def loops_everywhere(hosts, readers, key, tokens):
    """A client at each host, and one at each gateway."""
    return [LoopingText(readers, program.address, key, number, tokens)
            for number, program in enumerate([*hosts.hosts, *hosts.gateways])]


def await_tokens(readers, loops):
    """Until each has some. Parts are divided meanwhile, so first requests may be refused for a moment."""
    if not run_loops(readers, loops, lambda: all(len(loop.tokens()) >= EVENTS_BEFORE for loop in loops),
                     BEGIN_TIMEOUT_S):
        silent = next(loop for loop in loops if len(loop.tokens()) < EVENTS_BEFORE)
        raise Failure("TimedOut", f"{silent.address} serves no text in {BEGIN_TIMEOUT_S} s; it answered "
                      f"{sorted({status for _, status in silent.refusals})}")


def begin_texts(hosts, readers, key, tokens):
    """The answers of a text at each host, and of one through each gateway, which have begun."""
    loops = loops_everywhere(hosts, readers, key, tokens)
    await_tokens(readers, loops)
    return [loop.answer or loop.answers[-1] for loop in loops]
