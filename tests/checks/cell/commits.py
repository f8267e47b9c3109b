"""The judge of what a cell's workers committed: nothing under a lease of the cell at or past the host's ceiling.

It reads the event log of each worker, whose steps have the time that the worker read just before it committed; the log
of each agent, which has every ceiling and the time from which it held; and when etcd showed each beat. An agent sends a
beat before etcd can show it, so a ceiling is at most that time plus the TTL minus the margin, whatever the agent says.
"""

import bisect
import calendar
import json
import re
import time

MARGIN_S = 0.2  # what a host takes off its TTL
# The log has ceilings in whole milliseconds, rounded down, and stamps of another clock.
ROUNDING_S = 0.0015
CEILING = re.compile(r"^(\S+)\.(\d{6}) \w+ leasehold-cell (?:host joined|beat arrived).*"
                     r"ceiling_in_ms=(-?\d+)")
MOST_SHOWN = 5


def boot_offset():
    """What the wall clock is ahead of the boot time."""
    return time.clock_gettime(time.CLOCK_REALTIME) - time.clock_gettime(time.CLOCK_BOOTTIME)


def ceilings_of(log, shown, offset):
    """[(time from which it held, ceiling)] of one host, by an agent's log and by [(time, TTL)] of the beats in etcd."""
    ceilings, beats = [], sorted(shown)
    for line in log.splitlines():
        found = CEILING.match(line)
        if not found:
            continue
        at = calendar.timegm(time.strptime(found[1], "%Y-%m-%dT%H:%M:%S")) + int(found[2]) / 1e6 - offset
        ceiling = at + int(found[3]) / 1e3
        # A beat that etcd has shown later than this one's reply by so much is not this beat.
        before = beats[:bisect.bisect(beats, (at + 1.0, 0))]
        if before:
            ceiling = min(ceiling, max(time_s + ttl_s for time_s, ttl_s in before) - MARGIN_S)
        ceilings.append((at, ceiling))
    return ceilings


def leases_of(lines, tenants):
    """The leases of these tenants, by a broker's event log."""
    leases = set()
    for line in lines:
        if '"lease_state"' in line:
            event = json.loads(line)
            if event["tenant"] in tenants:
                leases.add(event["lease"])
    return leases


def late_steps(lines, leases, ceilings):
    """(steps of the leases, [(time, ceiling, line)] of those that were committed past the ceiling)."""
    times = [at for at, _ in ceilings]
    steps, late, highest = 0, [], []
    for _, ceiling in ceilings:
        highest.append(max(ceiling, highest[-1]) if highest else ceiling)
    for line in lines:
        if '"batched_decode_step"' not in line:
            continue
        event = json.loads(line)
        if leases.isdisjoint(event["per_seq_leases"]):
            continue
        steps += 1
        at = event["at_boottime_ns"] / 1e9
        known = bisect.bisect(times, at + ROUNDING_S)
        ceiling = highest[known - 1] if known else 0.0
        if at >= ceiling + ROUNDING_S:
            late.append((at, ceiling, line.strip()))
    return steps, late


def judge(hosts, tenants):
    """{"steps", "late", "shown"} of a BenchCell whose hosts have stopped or are idle. `tenants`: those of the cell."""
    offset = boot_offset()
    report = {"steps": 0, "late": 0, "shown": []}
    for host in hosts.hosts:
        shown = [(at, json.loads(entry.value)["ttl_ms"] / 1e3) for at, name, entry in hosts.beats.seen
                 if name == host.name and entry]
        with open(host.events("broker"), encoding="utf-8") as log:
            leases = leases_of(log, tenants)
        with open(host.events("worker"), encoding="utf-8") as log:
            steps, late = late_steps(log, leases, ceilings_of(host.agent.log(), shown, offset))
        report["steps"] += steps
        report["late"] += len(late)
        report["shown"] += [f"host {host.name}: {1e3 * (at - ceiling):.1f} ms past the ceiling: {line}"
                            for at, ceiling, line in late[:MOST_SHOWN]]
    return report
