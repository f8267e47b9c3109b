"""What the first request of a key costs that its host does not know, and whether later ones ask etcd."""

import re
import time
import urllib.request

import bench_cell
import cell_local
import client
from cell import Failure
from peer import distribution

CALLS = re.compile(r'^grpc_server_handled_total\{.*grpc_method="(\w+)",grpc_service="etcdserverpb\.KV".*\} (\d+)$', re.M)
STEADY = "steady"
SETTLE_S = 3  # in which the parts of a tenant are divided among all hosts
PAUSE_S = 0.05


class Asker:
    """Asks for one token. `refused` has a sentence for each request that no repetition can help."""

    def __init__(self):
        self.readers, self.refused = client.Readers(), []

    def ask(self, host, key, number):
        """Seconds until the token. Refusals that pass are repeated, as clients do."""
        begin = time.monotonic()
        body = client.chat("greedy", number % 4, bench_cell.MODEL_NAME, 1)
        while True:
            answer = self.readers.open(host.address, key, body)
            self.readers.run()
            tokens = bench_cell.token_times(answer)
            now = time.monotonic()
            if answer.status == 200 and tokens:
                return tokens[0] - begin
            if answer.status not in (429, 503) or now > begin + cell_local.cell.START_TIMEOUT_S:
                self.refused.append(f"host {host.name} answers with {answer.status}: "
                                    f"{(answer.document or b' '.join(answer.events[-2:])).decode()[:200]}")
                return now - begin
            time.sleep(bench_cell.RETRY_S / 10)


def tenants(count):
    """Those that both measurements use."""
    return {STEADY, *(f"{STEADY}{number}" for number in range(bench_cell.HOSTS)),
            *(f"new{number}" for number in range(count))}


def measure(hosts, count):
    """Three kinds of new key: of a tenant that no host serves; of one that this host serves; and of one whose limits
    another host has, so that it must give some back. Each is compared with the next request of the same key."""
    asker = Asker()
    added = {"new_tenant": [], "known_tenant": [], "divided_tenant": []}
    for number in range(count):
        tenant = f"new{number}"
        hosts.admit(tenant, 8)
        keys = [hosts.create_key(tenant)[1] for _ in range(3)]
        first = hosts.hosts[number % len(hosts.hosts)]
        second = hosts.hosts[(number + 1) % len(hosts.hosts)]
        for kind, host, key in zip(added, (first, first, second), keys):
            took = asker.ask(host, key, number)
            added[kind].append(took - asker.ask(host, key, number))
    return {**{kind: {"added_ms": distribution(taken)} for kind, taken in added.items()},
            "refused": len(asker.refused), "faults": asker.refused[:3]}


# ---------------------------------------------------------------- calls to etcd


class Calls:
    """Counts the calls that etcd's members have answered, and how many of these were beats."""

    def __init__(self, hosts):
        self.urls, self.client = hosts.etcd.urls, hosts.etcd.client()
        self.own = 0

    def answered(self):
        total = 0
        for url in self.urls:
            with urllib.request.urlopen(url + "/metrics", timeout=5) as reply:
                total += sum(int(count) for _, count in CALLS.findall(reply.read().decode()))
        return total

    def beats(self):
        """Each beat is one call, and one version of its host's key."""
        self.own += 1
        _, entries = self.client.list_prefix(bench_cell.PREFIX + "hosts/")
        return sum(entry.version for entry in entries)

    def besides_beats(self):
        """Calls that are neither beats nor this object's own, read at a moment without a beat on its way."""
        for _ in range(100):
            before = self.beats()
            time.sleep(0.02)
            own, answered = self.own, self.answered()
            if self.beats() == before:
                return answered - before - own
        raise Failure("TimedOut", "beats follow each other too fast to count calls between them")


def calls_of(hosts, asker, keys, seconds):
    """(requests, calls to etcd besides beats) of short requests at every host in turn, each with the host's key."""
    def ask_for(time_s):
        end, asked = time.monotonic() + time_s, 0
        while time.monotonic() < end:
            at = asked % len(keys)
            asker.ask(hosts.hosts[at], keys[at], asked)
            asked += 1
            time.sleep(PAUSE_S)
        return asked
    ask_for(SETTLE_S)
    calls = Calls(hosts)
    before = calls.besides_beats()
    asked = ask_for(seconds)
    return asked, calls.besides_beats() - before


def measure_calls(hosts, seconds):
    """For longer than an unused part is kept: requests of a tenant on each host, which has all of its limits. Then of
    one tenant on all hosts, which look for a larger part from time to time, whether or not there are requests."""
    asker, keys = Asker(), []
    for number in range(len(hosts.hosts)):
        hosts.admit(f"{STEADY}{number}")
        keys.append(hosts.create_key(f"{STEADY}{number}")[1])
    requests, calls = calls_of(hosts, asker, keys, seconds)
    hosts.admit(STEADY)
    _, key = hosts.create_key(STEADY)
    hosts.await_served(key)
    divided_s = max(1, seconds // 3)
    _, divided = calls_of(hosts, asker, [key] * len(hosts.hosts), divided_s)
    return {"requests": requests, "calls": calls, "divided_calls_per_host_s": divided / divided_s / len(hosts.hosts),
            "refused": len(asker.refused), "faults": asker.refused[:3]}
