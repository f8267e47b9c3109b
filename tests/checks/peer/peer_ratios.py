"""Tokens per second of this engine and of llama.cpp on the same files, with the same threads, in the same minutes.

The report is {"peer": {"version", "simd", "rounds", "prompt_tokens", FILE: {"format", "1_threads": {"ours", "peer",
"ratio"}, ...}, ...}}. FILE is the name of the file without its extension, with _ for a dot. The figures are medians over the
rounds of "decode", "batch_8", "batch_32" and "prefill", in tokens per second of wall-clock time. A further peer, given as
NAME=DIR, has its version in "versions" and {"peer", "ratio"} of its own as NAME beside "ratio".
"""

import argparse
import contextlib
import json
import os
import shlex
import subprocess
import sys

import peer
from peer_output import BATCHED, BATCHES, BENCH, parse_batches, parse_batches_table, parse_bench, parse_bench_table

TEXT_TOKENS = 2  # per sequence, before decoding
PEER_CONTEXT = 4096  # divided among its sequences


def run_bench(options, *arguments):
    """What our program prints."""
    command = [os.path.join(options.bin_dir, "leasehold-bench"), *arguments]
    if options.simd:
        command += ["--simd", options.simd]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise peer.Failure(done.returncode, done.stderr.decode(errors="replace").strip())
    return done.stdout.decode()


def measure_ours(options, model, threads):
    return json.loads(run_bench(options, "figures", "--model", model, "--threads", str(threads), "--prompt-tokens",
                                str(options.prompt_tokens), "--decoded-tokens", str(options.decoded_tokens)))["figures"]


def measure_peer(programs, options, model, threads):
    """(version, format, figures) of one round."""
    common = ["-m", model, "-t", str(threads)]
    bench = ["-ngl", "0", "-p", str(options.prompt_tokens), "-n", str(options.decoded_tokens), "-r", "1"]
    batched = ["-tb", str(threads), "-ngl", "0", "-c", str(PEER_CONTEXT), "-npp", str(TEXT_TOKENS), "-ntg",
               str(options.decoded_tokens), "-npl", ",".join(map(str, BATCHES))]
    if not options.peer_tables:
        bench += ["-o", "jsonl"]
        batched += ["--output-format", "jsonl"]
    output = programs.output_of(BENCH, *common, *bench, *options.peer_args)
    version, form, figures = (parse_bench_table if options.peer_tables else parse_bench)(output, threads)
    output = programs.output_of(BATCHED, *common, *batched, *options.peer_args)
    return version, form, figures | (parse_batches_table if options.peer_tables else parse_batches)(output, threads)


def key_of(path):
    return os.path.splitext(os.path.basename(path))[0].replace(".", "_")


def measure_file(peers, options, path, report, before_round):
    """Adds the figures of one file to the report. `peers`: programs by name; the first name is empty."""
    file = report[key_of(path)] = {}
    for threads in options.threads or [1]:
        ours, theirs = [], {name: [] for name in peers}
        for _ in range(options.rounds):
            before_round()
            ours.append(measure_ours(options, path, threads))
            for name, programs in peers.items():
                version, file["format"], figures = measure_peer(programs, options, path, threads)
                theirs[name].append(figures)
                if name:
                    report.setdefault("versions", {})[name] = version
                else:
                    report["version"] = version
        run = file[f"{threads}_threads"] = peer.compared(ours, theirs.pop(""))
        for name, figures in theirs.items():
            run[name] = {key: value for key, value in peer.compared(ours, figures).items() if key != "ours"}


def measure(options, before_round):
    keys = [key_of(path) for path in options.model]
    for key in keys:
        if keys.count(key) > 1:
            raise peer.Failure("BadRequest", f"two models are named {key}; rename a file")
    report = {"simd": run_bench(options, "simd").strip(), "rounds": options.rounds, "prompt_tokens": options.prompt_tokens}
    with contextlib.ExitStack() as stack:
        peers = {name: stack.enter_context(peer.Programs(folder, [BENCH, BATCHED]))
                 for name, folder in named_peers(options.peer).items()}
        for path in options.model:
            measure_file(peers, options, path, report, before_round)
    return {"peer": report}


def named_peers(texts):
    """{name: folder} of each DIR or NAME=DIR. The first one has an empty name."""
    peers = {}
    for text in texts:
        name, separator, folder = text.rpartition("=")
        name = name if peers else ""
        if peers and (not separator or not name.isidentifier() or name in peers or name in ("ours", "peer", "ratio")):
            raise peer.Failure("BadRequest", f"--peer {text} has no name of its own; give each further peer as NAME=DIR")
        peers[name] = folder
    return peers


def rows_of(name, form, threads, run):
    """A row for each figure and peer."""
    others = {other: figures for other, figures in run.items() if other not in ("ours", "peer", "ratio")}
    return [[name, form, threads, figure, f"{run['ours'][figure]:.1f}", f"{one['peer'][figure]:.1f}", f"{ratio:.2f}",
             other or "llama.cpp"]
            for other, one in {"": run, **others}.items() for figure, ratio in sorted(one["ratio"].items())]


def text_of(report):
    """The report as a table."""
    everything = report["peer"]
    rows = [row for name, file in sorted(everything.items()) if isinstance(file, dict) and name != "versions"
            for threads, run in sorted(file.items()) if isinstance(run, dict)
            for row in rows_of(name, file["format"], threads, run)]
    versions = [f"llama.cpp {everything['version']}"]
    versions += [f"{name} {version}" for name, version in everything.get("versions", {}).items()]
    return peer.table(["FILE", "FORMAT", "THREADS", "FIGURE", "OURS", "PEER", "RATIO", "NAME"], "llllrrrl", rows) + (
        f"Tokens per second, medians of {everything['rounds']} rounds; our SIMD path is {everything['simd']}; the peer is "
        f"{', '.join(versions)}.\n")


def parse_options(arguments):
    parser = argparse.ArgumentParser(prog="peer_ratios.py", description=__doc__.split("\n", 1)[0])
    peer.add_report_options(parser)
    parser.add_argument("--peer", required=True, action="append", metavar="[NAME=]DIR",
                        help="Folder with llama.cpp's llama-bench and llama-batched-bench; repeatable, with a NAME for "
                        "each further one")
    parser.add_argument("--peer-args", type=shlex.split, default=[], metavar="TEXT",
                        help='Further arguments of these programs: "-fa 1"')
    parser.add_argument("--peer-tables", action="store_true", help="Read tables: the programs print no JSON lines")
    parser.add_argument("--model", action="append", required=True, help="GGUF model; repeatable")
    parser.add_argument("--threads", action="append", type=peer.in_range(1, 63), help="Compute threads; repeatable")
    parser.add_argument("--simd", choices=["scalar", "avx2", "avx-vnni", "avx512", "amx", "neon"],
                        help="Our SIMD path; default: the fastest of this CPU. The peer's is that of its build")
    parser.add_argument("--prompt-tokens", type=peer.in_range(1, 2048), default=512, help="Tokens of the prompt")
    parser.add_argument("--decoded-tokens", type=peer.in_range(1, 2048), default=16, help="Tokens of each answer")
    parser.add_argument("--rounds", type=peer.in_range(1, 1000), default=5,
                        help="Rounds, in which both engines take turns")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    settings = parse_options(sys.argv[1:])
    sys.exit(peer.run("peer", settings, measure, text_of))
