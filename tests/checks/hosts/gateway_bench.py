"""Five hosts and two gateways on this machine: texts through hosts that fail, and what a gateway costs.

The report is {"gateway": {...}}:

    texts      "read" through failures, and of these "changed": not read as in the undisturbed run
    killed     "pause_ms" from SIGKILL of a worker, or of broker and worker, to the next event, prefill included
    frozen     the same from SIGSTOP of both
    link_down  the same from the loss of a host's network link, of its answers and of what is sent to it, in turn;
               missing where this machine makes no network namespace
    gateway_killed  "pause_ms" of resumable texts that go on through the other gateway
    drain      "gap_ms", the longest gap of texts that leave a host that drains; "calm_gap_ms", that of undisturbed
               texts; "gap_ratio" of their medians
    first_token  "host_ms", "gateway_ms", "added_p50_ms"
    memory     "peak_mib" of a gateway with "streams" at the same time
    routers    by name: "paced_cpu_us_per_event", CPU time with 50 events a second of each stream; "full_...", with
               streams as fast as they are read; "..._events_per_core_s", what one core can do then; "cut_streams" of
               "streams" when one of two hosts is killed; of the gateway, "..._cpu_to_NAME", the ratio to another one

A distribution is {"n", "p50", "p90", "p99", "max"}: nearest-rank quantiles.
"""

import argparse
import contextlib
import itertools
import os
import statistics
import sys
import tempfile
import time

import cell
import client
import faults
import peer
import routers
import separate_link
from peer import distribution

HOSTS = 5
SLOW_MOTION_US = "30"
ROUNDS = ("kill_worker", "kill", "freeze", "drain")
PAUSE_ROUNDS = {"kill_worker": "killed", "kill": "killed", "freeze": "frozen"}  # with the name of their samples
PAUSE_TOKENS = 350
MOST_PAUSE_ROUNDS = 200  # a round may have no sample: texts may end before their host fails
SLOW_FAR_HOST = ("--slow-motion-us", "5")  # a whole text would fit what is on its way when the link goes


def measure_costs(settings, before_round, report):
    with tempfile.TemporaryDirectory(prefix="leasehold-routers-") as folder:
        report["memory"] = routers.measure_memory(settings, folder)
        before_round()
        report["routers"], missing = routers.measure(settings, folder)
    return missing


def measure_texts(settings, before_round, report):
    with cell.Cell(settings.bin_dir, settings.model) as hosts:
        hosts.add_hosts(HOSTS, "--slow-motion-us", SLOW_MOTION_US)
        gateways = [hosts.add_gateway(), hosts.add_gateway()]
        model = cell.model_name(gateways[0].address, hosts.key)
        rounds = faults.Rounds(hosts, model, settings.tokens, settings.texts)
        for _ in range(2):
            rounds.read_calm(gateways[0])
        for number in range(settings.rounds):
            before_round()
            for name in ROUNDS:
                getattr(rounds, name)(gateways[number % 2])
            rounds.kill_gateway(*gateways[::1 if number % 2 else -1])
    add_texts(rounds, report)
    samples = rounds.samples
    report["gateway_killed"] = {"pause_ms": distribution(samples["gateway_killed"])}
    drain, calm = distribution(samples["drain_gap"]), distribution(samples["calm_gap"])
    report["drain"] = {"gap_ms": drain, "calm_gap_ms": calm}
    if drain["n"]:
        report["drain"]["gap_ratio"] = drain["p50"] / calm["p50"]
    return []


def full_speed_rounds(settings, hosts, gateway):
    """Texts of hosts without slow motion, which would make the prefill of what is known long."""
    return faults.Rounds(hosts, cell.model_name(gateway.address, hosts.key), PAUSE_TOKENS, 2 * settings.texts,
                         ("greedy", "sampled"))


def repeat(rounds, samples, wanted, do_round):
    """Repeats a round until there are that many samples."""
    for _ in range(MOST_PAUSE_ROUNDS):
        if len(rounds.samples[samples]) >= wanted:
            break
        do_round()


def measure_pauses(settings, before_round, report):
    with cell.Cell(settings.bin_dir, settings.model) as hosts:
        hosts.add_hosts(HOSTS)
        gateway = hosts.add_gateway()
        rounds = full_speed_rounds(settings, hosts, gateway)
        rounds.read_calm(gateway)
        for name, samples in PAUSE_ROUNDS.items():
            def do_round(name=name):
                before_round()
                getattr(rounds, name)(gateway)
            # The worker's deaths are half of those that kill a host's processes.
            repeat(rounds, samples, settings.samples // 2 if name == "kill_worker" else settings.samples, do_round)
        add_texts(rounds, report)
        add_pauses(rounds, report, "killed", "frozen")
    return []


def add_texts(rounds, report):
    """What the judge found."""
    texts = report.setdefault("texts", {"read": 0, "changed": 0, "faults": []})
    texts["read"] += rounds.whole + len(rounds.faults)
    texts["changed"] += len(rounds.faults)
    texts["faults"] += rounds.faults[:10]


def add_pauses(rounds, report, *names):
    for name in names:
        if rounds.samples[name]:
            report[name] = {"pause_ms": distribution(rounds.samples[name])}


def measure_first_token(settings, _, report):
    with cell.Cell(settings.bin_dir, settings.model) as hosts:
        hosts.add_hosts(2)
        gateway = hosts.add_gateway()
        report["first_token"] = first_tokens(settings, gateway, cell.model_name(gateway.address, hosts.key))
    return []


def first_tokens(settings, gateway, model):
    """Asks the host that the gateway chose for the same text, and the gateway, in turn."""
    readers, taken = client.Readers(), ([], [])
    host = None
    for number in range(settings.requests + 5):
        body = client.chat("greedy", number % 4, model, 1)
        for where in (1, 0):
            address = gateway.address if where else gateway.cell.host(host).address
            answer = readers.open(address, gateway.cell.key, body)
            readers.run(lambda answer=answer: len(answer.events) > 1)
            host = answer.host()
            readers.run()
            if number >= 5:
                taken[where].append(answer.times[1] - answer.sent)
    medians = [1e3 * statistics.median_low(times) for times in taken]
    return {"host_ms": distribution(taken[0]), "gateway_ms": distribution(taken[1]),
            "added_p50_ms": medians[1] - medians[0]}


def measure_link(settings, before_round, report):
    """Returns a line if this machine makes no namespace."""
    with contextlib.ExitStack() as stack:
        link = stack.enter_context(separate_link.SeparateLink())
        if link.refused:
            return [f"skipped: a network namespace cannot be made: {link.refused}"]
        hosts = stack.enter_context(cell.Cell(settings.bin_dir, settings.model))
        hosts.add_hosts(1)  # it reads what is known at full speed
        hosts.add_far_host(link, *SLOW_FAR_HOST)
        gateway = hosts.add_gateway("--plaintext-hosts")
        rounds = full_speed_rounds(settings, hosts, gateway)
        rounds.read_calm(gateway)

        cuts = itertools.cycle(separate_link.CUTS.values())

        def do_round():
            before_round()
            rounds.cut_link(gateway, *(getattr(link, name) for name in next(cuts)))
        repeat(rounds, "link_down", settings.samples, do_round)
        add_texts(rounds, report)
        add_pauses(rounds, report, "link_down")
    return []


# Each adds its figures to the report, and returns a line for what this machine does not have.
MEASURES = {"costs": measure_costs, "texts": measure_texts, "pauses": measure_pauses,
            "first_token": measure_first_token, "link": measure_link}


def measure(settings, before_round):
    report, skipped = {}, []
    for part in settings.only or MEASURES:
        before_round()
        begin = time.monotonic()
        skipped += MEASURES[part](settings, before_round, report)
        print(f"{part}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
    for line in skipped:
        print(line, file=sys.stderr)
    report["skipped"] = skipped
    return {"gateway": report}


def text_of(report):
    """The report as tables."""
    report = report["gateway"]
    texts = report.get("texts", {"read": 0, "changed": 0, "faults": []})
    rows = [[f"{name}.{figure}", *(f"{values.get(key, 0):.{0 if key == 'n' else 1}f}" for key in
                                   ("n", "p50", "p90", "p99", "max"))]
            for name in sorted(report) if isinstance(report[name], dict)
            for figure, values in sorted(report[name].items()) if isinstance(values, dict) and "n" in values]
    costs = [[name, *(f"{one[key]:.1f}" for key in ("paced_cpu_us_per_event", "full_cpu_us_per_event")),
              f"{one['paced_events_per_core_s']:.0f}", f"{one['full_events_per_core_s']:.0f}",
              f"{one['cut_streams']} of {one['streams']}"] for name, one in report.get("routers", {}).items()]
    lines = [f"{texts['read']} texts through failures, {texts['changed']} changed", *texts["faults"]]
    if "first_token" in report:
        lines.append(f"first token: {report['first_token']['added_p50_ms']:.2f} ms more than the host's own, p50")
    if "drain" in report:
        lines.append(f"drain: the longest gap is {report['drain'].get('gap_ratio', 0):.2f} of the calm one, p50")
    if "memory" in report:
        lines.append(f"memory: {report['memory']['peak_mib']:.1f} MiB with {report['memory']['streams']} streams")
    lines += report["skipped"]
    return (peer.table(["MS", "N", "P50", "P90", "P99", "MAX"], "lrrrrr", rows) + "\n" +
            peer.table(["ROUTER", "PACED µs", "FULL µs", "PACED/s", "FULL/s", "CUT"], "lrrrrr", costs) + "\n" +
            "".join(line + "\n" for line in lines))


def parse_options(arguments):
    parser = argparse.ArgumentParser(prog="tools/bench gateway", description=__doc__.split("\n", 1)[0])
    peer.add_report_options(parser)
    parser.add_argument("--model", required=True, help="GGUF model")
    parser.add_argument("--peers", metavar="DIR", help="Folder with vllm-router and sglang-router")
    parser.add_argument("--only", action="append", choices=MEASURES, help="Measure this part alone; may be repeated")
    parser.add_argument("--rounds", type=peer.in_range(1, 1000), default=4,
                        help="Rounds of slow texts, each with every failure")
    parser.add_argument("--samples", type=peer.in_range(1, 10000), default=100,
                        help="Pauses of each kind that are measured at least: killed, frozen, link down")
    parser.add_argument("--texts", type=peer.in_range(1, 8), default=4, help="Texts of each kind in a round")
    parser.add_argument("--tokens", type=peer.in_range(20, 400), default=150, help="Tokens of each text")
    parser.add_argument("--requests", type=peer.in_range(1, 100000), default=300,
                        help="Requests to a host and to a gateway, for the first token")
    parser.add_argument("--streams", type=peer.in_range(1, 1000), default=64, help="Streams through each router")
    parser.add_argument("--events", type=peer.in_range(1, 100000), default=100, help="Events of each of these streams")
    parser.add_argument("--memory-streams", type=peer.in_range(1, 10000), default=1000,
                        help="Streams at the same time whose memory is measured")
    options = parser.parse_args(arguments)
    if options.peers and not os.path.isdir(options.peers):
        parser.error(f"argument --peers: {options.peers} is not a folder; install vllm-router and sglang-router in a "
                     "virtual environment, and name its bin")
    return options


if __name__ == "__main__":
    chosen = parse_options(sys.argv[1:])
    sys.exit(peer.run("gateway", chosen, measure, text_of))
