"""A cell's etcd with many tenants: its size, and how it carries takes, returns and beats at the rate that these tenants
and their hosts cause.

A take and a return are the transactions of an agent: they compare ledger, policy and the host's incarnation, and write
the ledger. The rates are those of the design: each tenant has one request an hour, so it takes a part and returns it;
a host of a hundred tenants beats every ten seconds.
"""

import json
import random
import threading
import time

import etcd
from peer import distribution

TENANTS_PER_WRITE = 60  # two keys each; etcd takes 128 operations
REQUESTS_PER_TENANT_S = 1 / 3600
HOSTS_PER_TENANT = 1 / 100
BEAT_S = 10.0
BEAT_BYTES = 512
CLIENTS = 8
LIMITS = {"concurrent": 8, "blocks": 1024, "reserved": 0, "tokens_per_minute": 100000}
PREFIX = "/leasehold/many/"


def fill(client, count):
    """Writes the tenants, each with a key, and returns the seconds."""
    begin = time.monotonic()
    policy = json.dumps({"limits": LIMITS})
    for first in range(0, count, TENANTS_PER_WRITE):
        operations = []
        for number in range(first, min(count, first + TENANTS_PER_WRITE)):
            key = {"hash": f"{number:064x}", "tenant": f"tenant{number}", "name": "a key of this tenant"}
            operations += [etcd.put_of(f"{PREFIX}tenants/tenant{number}", policy),
                           etcd.put_of(f"{PREFIX}keys/{number:016x}", json.dumps(key))]
        client.transact([], operations)
    return time.monotonic() - begin


class Host:
    """What one host writes. Its calls are timed by kind."""

    def __init__(self, client, name, chance):
        self.client, self.name, self.chance = client, name, chance
        self.key = f"{PREFIX}hosts/{self.name}"
        self.incarnation = self.modified = client.put(self.key, "x" * BEAT_BYTES)

    def beat(self):
        _, self.modified = self.client.transact([etcd.modified_at(self.key, self.modified)],
                                                [etcd.put_of(self.key, "x" * BEAT_BYTES)])

    def take_and_return(self, tenant):
        """Whether both were written."""
        ledger, policy = f"{PREFIX}ledger/{tenant}", f"{PREFIX}tenants/{tenant}"
        _, entries = self.client.list(policy)
        mine = [etcd.created_at(self.key, self.incarnation), etcd.modified_at(policy, entries[0].modified)]
        part = {"host": self.name, "incarnation": self.incarnation, **LIMITS, "as_of": entries[0].modified}
        taken, revision = self.client.transact([etcd.modified_at(ledger, 0), *mine],
                                               [etcd.put_of(ledger, json.dumps({"parts": [part]}))])
        returned, _ = self.client.transact([etcd.modified_at(ledger, revision), *mine], [etcd.delete_of(ledger)])
        return taken and returned


class Load:
    """Many hosts, in threads that share the work: each carries out the next call that is due."""

    def __init__(self, members, count, name, seed):
        self.count, self.samples, self.failed = count, {"beat": [], "take_and_return": []}, 0
        self.lock = threading.Lock()
        self.due = 0.0  # when the next call begins
        chance = random.Random(seed)
        self.hosts = [Host(members.client(), f"{name}{number}", chance) for number in range(CLIENTS)]

    def run(self, rate, seconds):
        """Calls at this rate, of both kinds in the proportion of the design; rate None: as fast as etcd answers."""
        takes = self.count * REQUESTS_PER_TENANT_S
        beats = self.count * HOSTS_PER_TENANT / BEAT_S
        share_of_takes = takes / (takes + beats)
        begin = self.due = time.monotonic()
        threads = [threading.Thread(target=self.work, args=(host, rate, begin + seconds, share_of_takes))
                   for host in self.hosts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def work(self, host, rate, end, share_of_takes):
        while time.monotonic() < end:
            with self.lock:
                at = self.due
                self.due += 1 / rate if rate else 0
                is_take = host.chance.random() < share_of_takes
                # Each host has tenants of its own, so that no two take the same part at the same time.
                at_host = self.hosts.index(host) + CLIENTS * host.chance.randrange(self.count // CLIENTS)
                tenant = f"tenant{at_host}"
            if at >= end:
                return
            time.sleep(max(0.0, at - time.monotonic()))
            begin = time.monotonic()
            done = host.take_and_return(tenant) if is_take else host.beat() is None
            with self.lock:
                self.samples["take_and_return" if is_take else "beat"].append(time.monotonic() - begin)
                self.failed += not done


def measure(members, count, seconds, seed):
    """Figures of an etcd of three members. Memory is the greatest of its members'."""
    client = members.client(timeout_s=30)
    filled = fill(client, count)
    at_rate, at_most = Load(members, count, "steady", seed), Load(members, count, "fast", seed)
    rate = count * (REQUESTS_PER_TENANT_S + HOSTS_PER_TENANT / BEAT_S)
    at_rate.run(rate, seconds)
    at_most.run(None, seconds / 2)
    size, _ = client.size_bytes()
    most = {kind: len(taken) / (seconds / 2) for kind, taken in at_most.samples.items()}
    return {"tenants": count, "fill_s": filled, "etcd_mib": size / 2**20, "memory_mib": members.peak_mib(),
            "calls_per_s": rate, "failed": at_rate.failed + at_most.failed,
            "beat_ms": distribution(at_rate.samples["beat"]),
            "take_and_return_ms": distribution(at_rate.samples["take_and_return"]),
            "most_takes_per_s": most["take_and_return"], "most_beats_per_s": most["beat"],
            "headroom": sum(most.values()) / rate}
