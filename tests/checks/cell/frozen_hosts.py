"""Hosts whose processes are stopped until after their ceiling, and go on: nothing is committed past it."""

import random
import signal
import time

import bench_cell
import client
import commits
from cell import wait_for

TTL_MS = 2000
SLACK_MS = 200
TENANT = "ann"
TEXT_TOKENS = 400
MOST_SECONDS = 300
# Which processes of a host are stopped. A worker that runs on while the others are stopped meets the ceiling by itself.
PROCESSES = (("worker", "broker", "agent"),) * 4 + (("agent",), ("broker", "agent"), ("worker",), ("worker", "broker"))
RUN_S = (0.3, 1.5)  # between two stops of a host
# How long they are stopped, relative to the time left until the ceiling.
STOPS_S = ((-0.2, 0.2), (-0.01, 0.01), (0.0, 1.0), (1.0, 4.0))


class Freezer:
    """Stops and continues one host at random."""

    def __init__(self, hosts, host, chance):
        self.hosts, self.host, self.chance = hosts, host, chance
        self.stopped, self.stops = (), 0
        self.next_at = time.monotonic() + chance.uniform(*RUN_S)

    def tend(self):
        now = time.monotonic()
        if now < self.next_at:
            return
        if self.stopped:
            self.go_on()
            self.next_at = now + self.chance.uniform(*RUN_S)
        else:
            self.stopped = self.chance.choice(PROCESSES)
            self.signal(signal.SIGSTOP)
            self.stops += 1
            self.next_at = now + max(0.001, self.left() + self.chance.uniform(*self.chance.choice(STOPS_S)))

    def left(self):
        """Until the ceiling of the newest beat."""
        seen = [at for at, name, entry in self.hosts.beats.seen if name == self.host.name and entry]
        return seen[-1] + TTL_MS / 1e3 - commits.MARGIN_S - bench_cell.boottime() if seen else 0.0

    def go_on(self):
        self.signal(signal.SIGCONT)
        self.stopped = ()

    def signal(self, number):
        for name in self.stopped:
            getattr(self.host, name).signal(number)


def measure(settings, judges):
    """Freezes hosts until they have committed so many steps. `settings.seed`: of the stops."""
    with bench_cell.BenchCell(settings, TTL_MS, SLACK_MS) as hosts:
        hosts.admit(TENANT)
        _, key = hosts.create_key(TENANT)
        hosts.await_served(key)
        readers = client.Readers()
        loops = [bench_cell.LoopingText(readers, host.address, key, number, TEXT_TOKENS, stream=False)
                 for number, host in enumerate(hosts.hosts)]
        freezers = [Freezer(hosts, host, random.Random(f"{settings.seed} {host.name}")) for host in hosts.hosts]
        begin = time.monotonic()

        def is_enough():
            for freezer in freezers:
                freezer.tend()
            tokens = sum(len(loop.answers) - len(loop.refusals) for loop in loops) * TEXT_TOKENS
            return tokens >= settings.steps
        bench_cell.run_loops(readers, loops, is_enough, MOST_SECONDS)
        took = time.monotonic() - begin
        for freezer in freezers:
            freezer.go_on()
        for loop in loops:
            loop.leave()
        wait_for(lambda: all(host.is_ready() for host in hosts.hosts), "a host does not go on")
        judges.add(hosts, {TENANT})
        return {"stops": sum(one.stops for one in freezers), "seconds": took, "seed": settings.seed}
