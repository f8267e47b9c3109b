"""Compares t_reuse of the programs of two builds: compare_clocks.py --bench BENCH --model FILE OLD_BIN NEW_BIN.

Each round runs both builds one after the other, in turn first. The bench gives the broker of the clocks no state
directory, so it is started by a script that does. BENCH is the leasehold-bench of the newer build. Prints the
medians over all rounds. Exit code 1 unless the new median of p50
is at most 2 % above the old one (--p50-ratio) and that of p99 at most --p99-us, if given.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile


def options():
    parser = argparse.ArgumentParser(description="Compare t_reuse of the programs of two builds")
    parser.add_argument("--bench", required=True, help="leasehold-bench of the newer build")
    parser.add_argument("--model", required=True, help="GGUF model")
    parser.add_argument("--rounds", type=int, default=20, help="Rounds, each with both builds")
    parser.add_argument("--flips", type=int, default=300, help="Revocations of a build in a round")
    parser.add_argument("--tenants", type=int, default=8, help="Tenants that generate")
    parser.add_argument("--p50-ratio", type=float, default=1.02, help="Most that the new p50 may be of the old one")
    parser.add_argument("--p99-us", type=float, help="Most that the new p99 may be")
    parser.add_argument("old", help="Directory of the old programs")
    parser.add_argument("new", help="Directory of the new programs")
    return parser.parse_args()


def with_journal(programs, directory):
    """A directory of the programs whose broker has a state directory."""
    state, links = os.path.join(directory, "state"), os.path.join(directory, "bin")
    os.mkdir(state, 0o700)
    os.mkdir(links)
    for name in os.listdir(programs):
        os.symlink(os.path.abspath(os.path.join(programs, name)), os.path.join(links, name))
    broker = os.path.join(links, "leasehold-broker")
    program = os.readlink(broker)
    os.unlink(broker)
    with open(broker, "w") as script:
        script.write(f"#!/bin/sh\nexec '{program}' --state-dir '{state}' \"$@\"\n")
    os.chmod(broker, 0o755)
    return links


def measure(chosen, programs, seed):
    """p50 and p99 of t_reuse in µs."""
    with tempfile.TemporaryDirectory() as out:
        command = [chosen.bench, "revoke", "--quick", "--only", "clocks", "--bin-dir", with_journal(programs, out),
                   "--demo-model", chosen.model, "--tenants", str(chosen.tenants), "--flips", str(chosen.flips),
                   "--seed", str(seed), "--out", out]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(os.path.join(out, "revoke.json")) as file:
            clock = json.load(file)["t_reuse_us"]
    return {name: clock[name] for name in ("p50", "p99")}


def main():
    chosen = options()
    rounds = {"old": [], "new": []}
    for number in range(chosen.rounds):
        order = ("old", "new") if number % 2 == 0 else ("new", "old")
        for build in order:
            rounds[build].append(measure(chosen, getattr(chosen, build), number + 1))
        print(f"round {number + 1}: " + ", ".join(
            f"{build} {rounds[build][-1]['p50']:.1f} µs, {rounds[build][-1]['p99']:.1f} µs" for build in rounds), flush=True)
    medians = {build: {name: statistics.median(each[name] for each in rounds[build]) for name in rounds[build][0]}
               for build in rounds}
    for name in medians["old"]:
        old, new = medians["old"][name], medians["new"][name]
        print(f"t_reuse {name}: old {old:.1f} µs, new {new:.1f} µs, ratio {new / old:.3f}")
    over = medians["new"]["p50"] > chosen.p50_ratio * medians["old"]["p50"]
    late = chosen.p99_us is not None and medians["new"]["p99"] > chosen.p99_us
    if over or late:
        sys.exit("the new build is over a limit")


main()
