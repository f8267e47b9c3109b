"""A cell of five hosts, three members of etcd and two gateways on this machine: the bars of a cell.

The report is {"cell": {...}}:

    commits       "steps" of all workers under leases of the cell; "late": those that were committed past the ceiling
    law           "revisions" of etcd, "sums" of counting parts; "broken": revisions at which a sum rose above a limit
    frozen_hosts  "stops" of processes until after their host's ceiling
    revoked       "last_token_ms", anywhere, and "wait_ms" of `keys revoke --wait`, from the start of the command;
                  "not_refused": texts that ended without a typed error
    cut_off       "frozen" and, where this machine makes a network namespace, "without_etcd": the same with one host cut
                  off; "over_bound_ms": what --wait took above TTL · 1.01 + slack; "late_tokens", after --wait returned
    new_key       "added_ms" to the first token of a key that its host does not know, for a "new_tenant", a
                  "known_tenant" and a "divided_tenant", whose limits another host has; "refused" requests
    known_tenant  "calls" to etcd, besides beats, while tenants that have their parts make "requests"; "refused" ones;
                  "divided_calls_per_host_s" of a tenant whose limits are divided among all hosts
    short_outage  "disturbed" and "moved" texts while etcd has no quorum for half a TTL
    outage        etcd without a quorum for "seconds": "late_tokens" of the cell's tenants while etcd was away,
                  "cut_texts" of theirs, "go_on_ms" after etcd answers again, "never_went_on"; "local_refused" and
                  "local_gap_ms" of local tenants
    many_tenants  "etcd_mib", "memory_mib", and calls at the rate that so many tenants cause, "failed" ones among them;
                  "headroom": what etcd carries at most, of that rate
    simulated     what leasehold-cell-scale counts of larger cells

A distribution is {"n", "p50", "p90", "p99", "max"}: nearest-rank quantiles.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", name) for name in ("hosts", "peer")]
import bench_cell
import etcd
import frozen_hosts
import many_tenants
import new_keys
import outages
import peer
import revocations
import separate_link
from judges import Judges

TTL_MS, SLACK_MS = 5000, 500
LONG_TTL_MS, LONG_OUTAGE_S = 30000, 600
# Texts of 400 tokens then last for six seconds on an idle machine.
SLOW_HOSTS = ("--slow-motion-us", "100")
WITHOUT_LINK = "skipped: a network namespace cannot be made, so no host loses its link: "


def measure_keys(settings, judges, report):
    with bench_cell.BenchCell(settings, TTL_MS, SLACK_MS) as hosts:
        report["known_tenant"] = new_keys.measure_calls(hosts, settings.request_seconds)
        report["new_key"] = new_keys.measure(hosts, settings.samples)
        judges.add(hosts, new_keys.tenants(settings.samples))


def measure_slow_texts(settings, judges, report, before_stage):
    """Returns a line if no host can lose its link."""
    with contextlib.ExitStack() as stack:
        link = stack.enter_context(separate_link.SeparateLink())
        hosts = stack.enter_context(bench_cell.BenchCell(settings, TTL_MS, SLACK_MS, *SLOW_HOSTS,
                                                         link=None if link.refused else link))
        hosts.add_gateways()
        hosts.admit(revocations.TENANT)
        report["revoked"] = revocations.measure(hosts, settings.samples)
        before_stage()
        frozen = [revocations.Frozen(host) for host in hosts.hosts[:settings.runs]]
        report["cut_off"] = {"frozen": revocations.measure_cut_off(hosts, frozen)}
        if not link.refused:
            cut = [revocations.WithoutEtcd(hosts.hosts[-1], link)] * settings.runs
            report["cut_off"]["without_etcd"] = revocations.measure_cut_off(hosts, cut)
        before_stage()
        report["short_outage"] = outages.measure_short(hosts, settings.runs)
        report["outage"] = outages.measure_long(hosts, settings.outage_s)
        judges.add(hosts, {revocations.TENANT})
        return [WITHOUT_LINK + link.refused] if link.refused else []


def measure_many_tenants(settings, report):
    with tempfile.TemporaryDirectory(prefix="leasehold-etcd-", ignore_cleanup_errors=True) as folder:
        members = etcd.Etcd(folder)
        try:
            members.await_put(etcd.MARKER, "")
            report["many_tenants"] = many_tenants.measure(members, settings.tenants, settings.load_seconds,
                                                          settings.seed)
        finally:
            members.end()


def simulate(settings, report):
    program = os.path.join(settings.bin_dir, "..", "tests", "leasehold-cell-scale")
    done = subprocess.run([program, "--runs", str(settings.samples)], stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise peer.Failure("SystemError", f"{program} ends with {done.returncode}")
    report["simulated"] = json.loads(done.stdout)


def measure_long_outage(settings, judges, report):
    with bench_cell.BenchCell(settings, LONG_TTL_MS, SLACK_MS, *SLOW_HOSTS) as hosts:
        hosts.add_gateways()
        report["long_outage"] = outages.measure_long(hosts, LONG_OUTAGE_S)
        judges.add(hosts, {outages.TENANT})


def measure(settings, before_stage):
    report, judges, notes = {}, Judges(), []
    if settings.long:
        measure_long_outage(settings, judges, report)
    else:
        report["frozen_hosts"] = frozen_hosts.measure(settings, judges)
        before_stage()
        measure_keys(settings, judges, report)
        before_stage()
        notes += measure_slow_texts(settings, judges, report, before_stage)
        before_stage()
        measure_many_tenants(settings, report)
        simulate(settings, report)
    report["commits"], report["law"], report["skipped"] = judges.commits, judges.law, notes
    for line in notes:
        print(line, file=sys.stderr)
    return {"cell": report}


def rows_of(name, figures):
    """The distributions in a part of the report, with their names."""
    if "n" in figures:
        return [[name, *(f"{figures.get(key, 0):.{0 if key == 'n' else 1}f}"
                         for key in ("n", "p50", "p90", "p99", "max"))]]
    return [row for key, value in figures.items() if isinstance(value, dict) for row in rows_of(f"{name}.{key}", value)]


def numbers_of(name, figures):
    """The other numbers in a part of the report."""
    if "n" in figures:
        return []
    lines = [[f"{name}.{key}", f"{value:.1f}" if isinstance(value, float) else str(value)]
             for key, value in figures.items() if isinstance(value, (int, float))]
    return lines + [line for key, value in figures.items() if isinstance(value, dict)
                    for line in numbers_of(f"{name}.{key}", value)]


def faults_of(figures):
    return [str(fault) for fault in figures.get("faults", [])] + \
        [fault for value in figures.values() if isinstance(value, dict) for fault in faults_of(value)]


def text_of(report):
    """The report as tables, and each fault on a line."""
    parts = {name: part for name, part in report["cell"].items() if isinstance(part, dict)}
    return (peer.table(["MS", "N", "P50", "P90", "P99", "MAX"], "lrrrrr",
                       [row for name, part in parts.items() for row in rows_of(name, part)]) + "\n" +
            peer.table(["FIGURE", ""], "lr", [line for name, part in parts.items() for line in numbers_of(name, part)]) +
            "\n" + "".join(line + "\n" for part in parts.values() for line in faults_of(part)) +
            "".join(line + "\n" for line in report["cell"]["skipped"]))


def parse_options(arguments):
    parser = argparse.ArgumentParser(prog="tools/bench cell", description=__doc__.split("\n", 1)[0])
    peer.add_report_options(parser)
    parser.add_argument("--model", required=True, help="GGUF model")
    parser.add_argument("--long", action="store_true",
                        help="Measure only an outage of ten minutes of a cell with a TTL of 30 s")
    parser.add_argument("--steps", type=peer.in_range(1000, 100_000_000), default=1_000_000,
                        help="Steps that hosts commit while their processes are stopped and continued")
    parser.add_argument("--samples", type=peer.in_range(1, 10000), default=100,
                        help="Revocations, and new keys of each kind")
    parser.add_argument("--runs", type=peer.in_range(1, bench_cell.HOSTS), default=5,
                        help="Runs of what waits for the TTL: hosts that are cut off, short outages")
    parser.add_argument("--request-seconds", type=peer.in_range(1, 3600), default=15,
                        help="How long requests of a known tenant run while calls to etcd are counted")
    parser.add_argument("--outage-s", type=peer.in_range(6, 3600), default=20, help="Seconds without a quorum of etcd")
    parser.add_argument("--tenants", type=peer.in_range(100, 1_000_000), default=100_000,
                        help="Tenants in an etcd whose size and rates are measured")
    parser.add_argument("--load-seconds", type=peer.in_range(1, 3600), default=20, help="Seconds of its load")
    parser.add_argument("--seed", type=peer.in_range(0, 2**31), default=1, help="Seed for the moments of stops")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    chosen = parse_options(sys.argv[1:])
    if shutil.which("etcd") is None:
        print("cell_bench: etcd is not installed; run apt-get install etcd-server", file=sys.stderr)
        sys.exit(77)
    sys.exit(peer.run("cell", chosen, measure, text_of))
