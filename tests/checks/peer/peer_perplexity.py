"""The divergence of llama.cpp's predictions and of this engine's from the same reference, on the same files and text.

llama-perplexity writes its predictions of each file; leasehold-perplexity compares them and its own with its f32
arithmetic. Exit codes: 0 done, 1 with --check if a file or the mean of all is beyond its limit, otherwise those of
common/errc.hpp.
"""

import argparse
import json
import os
import subprocess
import sys

import peer

PROGRAM = "llama-perplexity"
# Our mean divergence may be at most this many times the peer's on one file, and at most the peer's over all files. If
# the peer's value is below the floor of its codes, the floor replaces it, because the error of the codes would then
# determine the ratio.
MOST_TIMES_PEER = 1.1


def ours(options, model, *more):
    """The output of leasehold-perplexity."""
    command = [os.path.join(options.bin_dir, "leasehold-perplexity"), "--model", model, "--text", options.text,
               "--window", str(options.window), "--threads", str(options.threads), "--kv-type", options.kv_type,
               "--reference-kv-type", options.reference_kv_type, "--arithmetic", options.arithmetic,
               *(["--adapter", options.adapter] if options.adapter else []), *more]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise peer.Failure(done.returncode, done.stderr.decode(errors="replace").strip())
    return done.stdout


def compare_file(options, programs, model):
    """{"positions", "peer", "ours", "ours_exact", "difference_error", "code_floor"}: means over positions, in nats."""
    ours(options, model, "--check-window")
    logits = os.path.join(programs.scratch.name, "logits")
    if os.path.exists(logits):
        os.remove(logits)  # left by the previous file
    arguments = ["-m", model, "-f", options.text, "-c", str(options.window), "-t", str(options.threads), "-ngl", "0",
                 "-ctk", options.kv_type, "-ctv", options.kv_type, "--kl-divergence-base", logits]
    if options.adapter:
        arguments += ["--lora", options.adapter]
    if options.windows:
        arguments += ["--chunks", str(options.windows)]
    programs.output_of(PROGRAM, *arguments)
    return json.loads(ours(options, model, "--peer-logits", logits))


def is_within(row):
    return "error" not in row and row["ours"] <= MOST_TIMES_PEER * max(row["peer"], row["code_floor"])


def mean_of(rows):
    """Means over the compared files, each with the same weight."""
    compared = [row for row in rows if "error" not in row]
    n = max(1, len(compared))
    return {"files": len(compared), "code_floor": max((row["code_floor"] for row in compared), default=0),
            "peer": sum(row["peer"] for row in compared) / n, "ours": sum(row["ours"] for row in compared) / n}


def is_mean_within(mean):
    return mean["ours"] <= max(mean["peer"], mean["code_floor"])


def passes(rows):
    mean = mean_of(rows)
    return mean["files"] > 0 and all(map(is_within, rows)) and is_mean_within(mean)


def ratio_of(row):
    """"-" if both are below the floor, because their ratio is then meaningless."""
    if max(row["ours"], row["peer"]) < row["code_floor"] or row["peer"] <= 0:
        return "-"
    error = f" ± {row['difference_error'] / row['peer']:.3f}" if "difference_error" in row else ""
    return f"{row['ours'] / row['peer']:.3f}{error}"


def cells_of(row):
    if "error" in row:
        return [row["file"], "-", "-", "-", "-", "-", "not compared"]
    return [row["file"], str(row["positions"]), f"{row['peer']:.3e}", f"{row['ours']:.3e}", f"{row['ours_exact']:.3e}",
            ratio_of(row), "within" if is_within(row) else "BEYOND"]


def text_of(options, version, rows):
    """A table with a line per file and one for all files, and a description of the comparison."""
    mean = mean_of(rows)
    total = [f"mean of {mean['files']} files", "", f"{mean['peer']:.3e}", f"{mean['ours']:.3e}", "", ratio_of(mean),
             "within" if is_mean_within(mean) else "BEYOND"]
    titles = ["FILE", "POSITIONS", "PEER", "OURS", "OURS EXACT", "RATIO", "VERDICT"]
    return peer.table(titles, "lrrrrrl", [*map(cells_of, rows), total]) + "".join(
        f"{row['file']}: {row['error']}\n" for row in rows if "error" in row) + (
        f"Mean KL in nats from our f32 arithmetic with {options.reference_kv_type} keys and values. Peer: llama.cpp "
        f"{version}; ours: {options.arithmetic}; both with {options.kv_type} keys and values.\n"
        f"Windows of {options.window} tokens, whose second halves are compared. PEER and OURS pass through the peer's "
        f"16-bit codes; below {mean['code_floor']:.1e} nats the codes decide about the ratio. ± is one standard error "
        "of the ratio.\n")


def measure(options):
    """(version of the peer, a row per file); the error of a file is in its row."""
    with open(options.text, encoding="utf-8"):
        pass  # an error at once, not in every row
    rows = []
    with peer.Programs(options.peer, [PROGRAM]) as programs:
        version = programs.version_of(PROGRAM)
        for model in options.model:
            if sys.stderr.isatty():
                print(f"comparing file {len(rows) + 1} of {len(options.model)}", file=sys.stderr)
            try:
                row = compare_file(options, programs, model)
            except peer.Failure as failure:
                row = {"error": str(failure)}
            rows.append(row | {"file": os.path.splitext(os.path.basename(model))[0]})
    return version, rows


def run(options):
    try:
        version, rows = measure(options)
    except peer.Failure as failure:
        print(f"leasehold-perplexity: {failure}", file=sys.stderr)
        return failure.exit_code
    except OSError as error:
        print(f"leasehold-perplexity: {error}", file=sys.stderr)
        return peer.EXIT_CODES["FileNotFound"]
    print(text_of(options, version, rows), end="")
    return 1 if options.check and not passes(rows) else 0


def parse_options(arguments):
    parser = argparse.ArgumentParser(prog="peer_perplexity.py", description=__doc__.split("\n", 1)[0])
    kv_types = ["f32", "f16", "q8_0"]
    parser.add_argument("--bin-dir", required=True, help="Directory of the programs")
    parser.add_argument("--peer", required=True, metavar="DIR", help="Folder with llama.cpp's llama-perplexity")
    parser.add_argument("--model", action="append", required=True, help="GGUF model file; repeatable")
    parser.add_argument("--adapter", help="LoRA adapter of the model, a GGUF file")
    parser.add_argument("--text", required=True, help="Text to predict, UTF-8")
    parser.add_argument("--window", type=peer.in_range(1, 1 << 20), default=128, help="Tokens per window")
    parser.add_argument("--windows", type=peer.in_range(1, 1 << 20),
                        help="Windows of each file; default: the whole text")
    parser.add_argument("--threads", type=peer.in_range(1, 63), default=1, help="Compute threads")
    parser.add_argument("--kv-type", choices=kv_types, default="f16", help="Format of keys and values")
    parser.add_argument("--reference-kv-type", choices=kv_types, default="f32",
                        help="Format of keys and values of the reference")
    parser.add_argument("--arithmetic", choices=["f32", "int8"], default="int8",
                        help="Arithmetic of the model; that of the reference is f32")
    parser.add_argument("--check", action="store_true",
                        help="Exit with 1 if the mean KL of a file is more than 1.1 times the peer's, if that of all "
                        "files is more than the peer's, or if a file could not be compared")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(run(parse_options(sys.argv[1:])))
