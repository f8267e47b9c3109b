"""Tokens per second of this engine and of llama.cpp on the same files, with the same threads, in the same minutes.

The report is {"peer": {"version", "simd", "rounds", "prompt_tokens", FILE: {"format", "1_threads": {"ours", "peer",
"ratio"}, ...}, ...}}. FILE is the name of the file without its extension, with _ for a dot. The figures are medians over the
rounds of "decode", "batch_8", "batch_32" and "prefill", in tokens per second of wall-clock time.
"""

import argparse
import json
import math
import os
import subprocess
import sys

import peer

BENCH, BATCHED = "llama-bench", "llama-batched-bench"
TEXT_TOKENS = 2  # per sequence, before decoding
PEER_CONTEXT = 4096  # divided among its sequences
BATCHES = {8: "batch_8", 32: "batch_32"}


def malformed(program, what, text):
    return peer.Failure("MalformedMessage",
                        f'{program} printed {what}: "{text[:120]}"; use a llama.cpp that prints JSON lines')


def objects_in(output, program):
    """The lines that begin like an object. The programs also print empty lines and banners."""
    objects = []
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                objects.append(json.loads(line))
            except ValueError as error:
                raise malformed(program, "a line that is not JSON", line) from error
    if not objects:
        raise malformed(program, "no JSON line", output)
    return objects


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def speed_in(one, field, threads):
    """The value of the field, or None if the value or the number of threads is not usable."""
    speed = one.get(field)
    usable = one.get("n_threads") == threads and is_number(speed) and math.isfinite(speed) and speed > 0
    return speed if usable else None


def parse_bench(output, threads):
    """(version, format, figures) of one run of llama-bench with a prompt and an answer."""
    figures = {}
    for one in objects_in(output, BENCH):
        speed = speed_in(one, "avg_ts", threads)
        words = [one.get(field) for field in ("build_commit", "build_number", "model_type")]
        counts = [one.get(field) for field in ("n_prompt", "n_gen")]
        if speed is None or not all(isinstance(word, (str, int)) for word in words) or not all(map(is_number, counts)):
            raise malformed(BENCH, f"no usable result for {threads} threads", json.dumps(one))
        if counts[0] > 0 and counts[1] == 0:
            figures["prefill"] = speed
        if counts[0] == 0 and counts[1] > 0:
            figures["decode"] = speed
    if len(figures) != 2:
        raise malformed(BENCH, "no result for the prompt or none for the answer", output)
    return f"{words[0]} ({words[1]})", words[2], figures


def parse_batches(output, threads):
    """The figures of one run of llama-batched-bench."""
    figures = {}
    for one in objects_in(output, BATCHED):
        speed = speed_in(one, "speed_tg", threads)
        if speed is None or not is_number(one.get("pl")):
            raise malformed(BATCHED, f"no usable result for {threads} threads", json.dumps(one))
        if one["pl"] in BATCHES:
            figures[BATCHES[one["pl"]]] = speed
    if len(figures) != len(BATCHES):
        raise malformed(BATCHED, "no result for a batch of 8 or none for 32", output)
    return figures


def measure_ours(options, model, threads):
    command = [os.path.join(options.bin_dir, "leasehold-bench"), "figures", "--model", model, "--threads",
               str(threads), "--prompt-tokens", str(options.prompt_tokens), "--decoded-tokens",
               str(options.decoded_tokens)]
    if options.simd:
        command += ["--simd", options.simd]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise peer.Failure(done.returncode, done.stderr.decode(errors="replace").strip())
    return json.loads(done.stdout)["figures"]


def measure_peer(programs, options, model, threads):
    """(version, format, figures) of one round."""
    common = ["-m", model, "-t", str(threads)]
    version, form, figures = parse_bench(
        programs.output_of(BENCH, *common, "-ngl", "0", "-p", str(options.prompt_tokens), "-n",
                           str(options.decoded_tokens), "-r", "1", "-o", "jsonl"), threads)
    batches = programs.output_of(BATCHED, *common, "-tb", str(threads), "-ngl", "0", "-c", str(PEER_CONTEXT), "-npp",
                                 str(TEXT_TOKENS), "-ntg", str(options.decoded_tokens), "-npl",
                                 ",".join(map(str, BATCHES)), "--output-format", "jsonl")
    return version, form, figures | parse_batches(batches, threads)


def key_of(path):
    return os.path.splitext(os.path.basename(path))[0].replace(".", "_")


def measure_file(programs, options, path, report, before_round):
    """Adds the figures of one file to the report."""
    file = report[key_of(path)] = {}
    for threads in options.threads or [1]:
        ours, peers = [], []
        for _ in range(options.rounds):
            before_round()
            ours.append(measure_ours(options, path, threads))
            report["version"], file["format"], figures = measure_peer(programs, options, path, threads)
            peers.append(figures)
        file[f"{threads}_threads"] = peer.compared(ours, peers)


def measure(options, before_round):
    keys = [key_of(path) for path in options.model]
    report = {"simd": options.simd or "best", "rounds": options.rounds, "prompt_tokens": options.prompt_tokens}
    with peer.Programs(options.peer, [BENCH, BATCHED]) as programs:
        for key in keys:
            if keys.count(key) > 1:
                raise peer.Failure("BadRequest", f"two models are named {key}; rename a file")
        for path in options.model:
            measure_file(programs, options, path, report, before_round)
    return {"peer": report}


def text_of(report):
    """The report as a table."""
    everything = report["peer"]
    rows = [[name, file["format"], threads, figure, f"{run['ours'][figure]:.1f}", f"{run['peer'][figure]:.1f}",
             f"{ratio:.2f}"]
            for name, file in sorted(everything.items()) if isinstance(file, dict)
            for threads, run in sorted(file.items()) if isinstance(run, dict)
            for figure, ratio in sorted(run["ratio"].items())]
    return peer.table(["FILE", "FORMAT", "THREADS", "FIGURE", "OURS", "PEER", "RATIO"], "llllrrr", rows) + (
        f"Tokens per second, medians of {everything['rounds']} rounds; our SIMD path is {everything['simd']}; the peer is "
        f"llama.cpp {everything['version']}.\n")


def parse_options(arguments):
    parser = argparse.ArgumentParser(prog="peer_ratios.py", description=__doc__.split("\n", 1)[0])
    peer.add_report_options(parser)
    parser.add_argument("--peer", required=True, metavar="DIR",
                        help="Folder with llama.cpp's llama-bench and llama-batched-bench")
    parser.add_argument("--model", action="append", required=True, help="GGUF model; repeatable")
    parser.add_argument("--threads", action="append", type=peer.in_range(1, 63), help="Compute threads; repeatable")
    parser.add_argument("--simd", choices=["scalar", "avx2", "avx-vnni", "avx512", "amx"],
                        help="Our SIMD path; default: the fastest of this CPU. The peer's is that of its build")
    parser.add_argument("--prompt-tokens", type=peer.in_range(1, 2048), default=512, help="Tokens of the prompt")
    parser.add_argument("--decoded-tokens", type=peer.in_range(1, 2048), default=16, help="Tokens of each answer")
    parser.add_argument("--rounds", type=peer.in_range(1, 1000), default=5,
                        help="Rounds, in which both engines take turns")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    settings = parse_options(sys.argv[1:])
    sys.exit(peer.run("peer", settings, measure, text_of))
