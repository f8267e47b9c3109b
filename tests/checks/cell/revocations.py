"""A key of a cell is revoked while texts run under it on every host: when the last token is read, and when
`brokerctl cell keys revoke --wait` returns. Then the same while one host is cut off."""

import os
import signal
import subprocess
import time

import bench_cell
import client
from cell import Failure, wait_for
from peer import distribution

TENANT = "ann"
TEXT_TOKENS = 400
START_TIMEOUT_S = 30
AFTER_S = 0.3  # how long later tokens are looked for
AFTER_CUT_S = 2.0


class Revocation:
    """`brokerctl cell keys revoke --wait`, timed from the moment before its start."""

    def __init__(self, hosts, key_id):
        self.begin = time.monotonic()
        self.process = subprocess.Popen([os.path.join(hosts.bin_dir, "brokerctl"), "cell", "--config", hosts.config,
                                         "keys", "revoke", key_id, "--wait"], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.end, self.text = None, ""

    def has_ended(self):
        if self.end is None and self.process.poll() is not None:
            self.end = time.monotonic()
            self.text = self.process.communicate()[0]
            if self.process.returncode != 0:
                raise Failure("SystemError", f"keys revoke --wait ends with {self.process.returncode}: {self.text}")
        return self.end is not None

    def took(self):
        return self.end - self.begin


def was_refused(answer):
    """Whether the stream ended with a typed error, and not by itself."""
    return any(b'{"error":{' in data for data in answer.events[-2:])


def revoke_once(hosts, readers, samples):
    """A text at each host, and one through each gateway."""
    key_id, key = hosts.create_key(TENANT)
    hosts.await_served(key)
    texts = bench_cell.begin_texts(hosts, readers, key, TEXT_TOKENS)
    revocation = Revocation(hosts, key_id)
    readers.run(revocation.has_ended, START_TIMEOUT_S)
    wait_for(revocation.has_ended, "keys revoke --wait does not end")
    readers.run(lambda: time.monotonic() > revocation.end + AFTER_S, AFTER_S)
    for one in texts:
        readers.close(one)
    last = max(at for one in texts for at in bench_cell.token_times(one))
    samples["last_token"].append(max(0.0, last - revocation.begin))
    samples["wait"].append(revocation.took())
    samples["not_refused"] += sum(not was_refused(one) for one in texts)


def measure(hosts, count):
    samples = {"last_token": [], "wait": [], "not_refused": 0}
    readers = client.Readers()
    for _ in range(count):
        revoke_once(hosts, readers, samples)
    return {"last_token_ms": distribution(samples["last_token"]), "wait_ms": distribution(samples["wait"]),
            "not_refused": samples["not_refused"]}


# ---------------------------------------------------------------- one host is cut off


class Frozen:
    """The agent and the broker of a host are stopped; its worker runs on."""

    def __init__(self, host):
        self.host = host

    def cut(self):
        for process in (self.host.agent, self.host.broker):
            process.signal(signal.SIGSTOP)

    def mend(self):
        for process in (self.host.agent, self.host.broker):
            process.signal(signal.SIGCONT)


class WithoutEtcd:
    """The agent of a host has lost its link to etcd; everything on the host runs on."""

    def __init__(self, host, link):
        self.host, self.link = host, link

    def cut(self):
        self.link.down()

    def mend(self):
        self.link.up()


def revoke_cut_off(hosts, readers, fault, samples):
    """Clients of the revoked key ask again and again, at every host, also after the host has gone on."""
    joins = fault.host.agent.log().count("host joined")
    key_id, key = hosts.create_key(TENANT)
    hosts.await_served(key)
    loops = bench_cell.loops_everywhere(hosts, readers, key, TEXT_TOKENS)
    bench_cell.await_tokens(readers, loops)
    fault.cut()
    revocation = Revocation(hosts, key_id)
    bench_cell.run_loops(readers, loops, revocation.has_ended, START_TIMEOUT_S)
    bench_cell.run_for(readers, loops, AFTER_CUT_S)
    fault.mend()
    bench_cell.run_for(readers, loops, AFTER_CUT_S)
    for loop in loops:
        loop.leave()
    samples["wait"].append(revocation.took())
    cut_off = loops[hosts.hosts.index(fault.host)]
    samples["last_token"].append(max(0.0, cut_off.last_token() - revocation.begin))
    samples["late_tokens"] += sum(at > revocation.end for loop in loops for at in loop.tokens())
    if "expired" not in revocation.text:
        raise Failure("SystemError", f"host {fault.host.name} was not expired: {revocation.text}")
    wait_for(lambda: fault.host.agent.log().count("host joined") > joins, "the host does not join again")


def measure_cut_off(hosts, faults):
    """One run for each fault. The bar for --wait is what of it is above the TTL · 1.01 and the slack."""
    samples = {"wait": [], "last_token": [], "late_tokens": 0}
    readers = client.Readers()
    for fault in faults:
        revoke_cut_off(hosts, readers, fault, samples)
    bound = (hosts.ttl_ms * 1.01 + hosts.slack_ms) / 1e3
    return {"wait_ms": distribution(samples["wait"]), "last_token_ms": distribution(samples["last_token"]),
            "over_bound_ms": distribution(took - bound for took in samples["wait"]),
            "late_tokens": samples["late_tokens"]}
