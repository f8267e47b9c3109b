"""etcd without a quorum: for half a TTL no text is disturbed; for longer, tenants of the cell stop at the ceiling, those
of one host never, and all go on when etcd answers again."""

import contextlib
import threading
import time

import bench_cell
import client
import etcd
import revocations
from cell import Failure
from peer import distribution

TENANT = "ann"
TEXT_TOKENS = 350
# Slow hosts compute a paused text again before it goes on, in slow motion too. So texts are short where the time to go
# on is measured.
SHORT_TEXT_TOKENS = 100
READ_TIMEOUT_S = 90
BEFORE_S = 2.0
AFTER_CEILING_S = 0.5  # a token that was committed before the ceiling may be read so much later
GO_ON_TIMEOUT_S = 20


class Return(threading.Thread):
    """Writes until etcd has answered; `at` is when it did."""

    def __init__(self, hosts):
        super().__init__(daemon=True)
        self.client, self.at = hosts.etcd.client(timeout_s=0.25), None

    def run(self):
        while self.at is None:
            with contextlib.suppress(*etcd.CALL_ERRORS):
                self.client.put(etcd.MARKER, "")
                self.at = time.monotonic()
        self.client.close()


# ---------------------------------------------------------------- half a TTL


def read_texts(hosts, readers, key, fault=None):
    """Reads a text at each host and through each gateway. `fault()` runs once all have begun, and returns what is to be
    called, and after how many seconds, to end it."""
    texts = bench_cell.begin_texts(hosts, readers, key, TEXT_TOKENS)
    if fault:
        mend, seconds = fault()
        end = time.monotonic() + seconds
        readers.run(lambda: time.monotonic() >= end, seconds + 1)
        early = sum(one.is_whole() for one in texts)
        mend()
        if early:
            raise Failure("SystemError", f"{early} texts ended before the outage did; use slower hosts")
    readers.run(timeout_s=READ_TIMEOUT_S)
    for one in texts:
        readers.close(one)
    return texts


def measure_short(hosts, rounds):
    """`rounds` outages of half a TTL. A text is disturbed if it has not the same bytes as without an outage, or moves
    to another host."""
    hosts.admit(TENANT)
    _, key = hosts.create_key(TENANT)
    hosts.await_served(key)
    readers = client.Readers()
    calm = read_texts(hosts, readers, key)
    seconds = hosts.ttl_ms / 2e3
    faults, gaps, texts = [], [], 0
    moves = sum(len(gateway.moves()) for gateway in hosts.gateways)
    for number in range(rounds):
        def lose(number=number):
            hosts.etcd.lose_quorum(number)
            return hosts.etcd.restore_quorum, seconds
        seen = read_texts(hosts, readers, key, lose)
        texts += len(seen)
        faults += [fault for one, other in zip(calm, seen) if (fault := client.fault_of(one, other))]
        gaps += [one.longest_gap() for one in seen]
        time.sleep(hosts.ttl_ms / 3e3)  # every host beats
    return {"texts": texts, "disturbed": len(faults), "faults": faults[:3],
            "moved": sum(len(gateway.moves()) for gateway in hosts.gateways) - moves,
            "gap_ms": distribution(gaps), "calm_gap_ms": distribution(one.longest_gap() for one in calm)}


# ---------------------------------------------------------------- longer than the TTL


def measure_long(hosts, seconds, number=0):
    """Clients of a cell's tenant and of a local tenant ask all the time, at every host."""
    hosts.admit(TENANT)
    _, key = hosts.create_key(TENANT)
    hosts.await_served(key)
    for host in hosts.hosts:
        host.admit_local()
    readers = client.Readers()
    of_cell = bench_cell.loops_everywhere(hosts, readers, key, SHORT_TEXT_TOKENS)
    local = [bench_cell.LoopingText(readers, host.address, hosts.key, i, SHORT_TEXT_TOKENS)
             for i, host in enumerate(hosts.hosts)]
    loops = of_cell + local
    bench_cell.await_tokens(readers, loops)
    bench_cell.run_for(readers, loops, BEFORE_S)
    lost = time.monotonic()
    hosts.etcd.lose_quorum(number)
    bench_cell.run_for(readers, loops, seconds)
    restored = time.monotonic()
    hosts.etcd.restore_quorum()
    back = Return(hosts)
    back.start()
    bench_cell.run_loops(readers, loops, lambda: back.at and all(loop.last_token() > back.at for loop in of_cell),
                         GO_ON_TIMEOUT_S)
    for loop in loops:
        loop.leave()
    if back.at is None:
        raise Failure("TimedOut", f"etcd does not answer {GO_ON_TIMEOUT_S} s after its members went on")
    stopped = lost + hosts.ttl_ms / 1e3 + AFTER_CEILING_S
    go_on = [next((at for at in loop.tokens() if at > restored), None) for loop in of_cell]
    gaps = [max(b - a for a, b in zip(times, times[1:])) for times in (loop.tokens() for loop in local)]
    return {"seconds": restored - lost, "etcd_back_s": back.at - restored,
            "late_tokens": sum(stopped < at < restored for loop in of_cell for at in loop.tokens()),
            "go_on_ms": distribution(max(0.0, at - back.at) for at in go_on if at),
            "never_went_on": sum(at is None for at in go_on),
            "cut_texts": sum(not one.is_whole() or revocations.was_refused(one)
                             for loop in of_cell for one in loop.answers if one.status == 200),
            "local_refused": sum(len(loop.refusals) for loop in local), "local_gap_ms": distribution(gaps)}
