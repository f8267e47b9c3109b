#!/usr/bin/env python3
"""Times llama.cpp's CUDA programs on a model file, for the stage llama of leasehold-gpu-check.

Writes JSON: {"version", "tokens_per_s": {"batch_1", "batch_8", "batch_32", "prefill", "decode"}}. A batch decodes
after a prompt of 512 tokens in each sequence, "decode" from an empty context. The tables of these programs are read,
which every version prints. Exit codes: those of peer.py.
"""
import argparse
import glob
import importlib.util
import json
import os
import sys
import time

import peer
from peer_output import BATCHED, BENCH, parse_batches_table, parse_bench_table, rows_in

THREADS = 4  # of the host, which launches kernels
BATCHES = {1: "batch_1", 8: "batch_8", 32: "batch_32"}
PROMPT_TOKENS, DECODED_TOKENS = 512, 64
CONTEXT = max(BATCHES) * (PROMPT_TOKENS + DECODED_TOKENS)


def cuda_folders():
    """The toolkit's libraries, and those that come with PyTorch."""
    package = importlib.util.find_spec("nvidia")
    roots = package.submodule_search_locations if package else []
    return ["/usr/local/cuda/lib64"] + sorted(one for root in roots for one in glob.glob(os.path.join(root, "*", "lib")))


def use_libraries(folder):
    """Lets the programs find their libraries beside them, and those of CUDA on this machine."""
    before = os.environ.get("LD_LIBRARY_PATH")
    folders = [folder, os.path.join(folder, "..", "lib"), *([before] if before else []), *cuda_folders()]
    os.environ["LD_LIBRARY_PATH"] = ":".join(folders)


def require_card(output):
    for row in rows_in(output, BENCH):
        if "CUDA" not in row.get("backend", ""):
            raise peer.Failure("SystemError", f"{BENCH} ran on {row.get('backend', 'an unknown backend')}; use programs "
                               "that were built with CUDA, and see that libcudart and libcublas are found")


def measure(options):
    deadline = time.monotonic() + options.seconds
    common = ["-m", options.model, "-t", str(THREADS), "-ngl", "99", "-fa", "1"]
    with peer.Programs(options.peer, [BENCH, BATCHED]) as programs:
        def output_of(name, *arguments):
            programs.longest_run_s = max(1.0, deadline - time.monotonic())
            return programs.output_of(name, *common, *arguments)
        output = output_of(BENCH, "-p", str(PROMPT_TOKENS), "-n", str(DECODED_TOKENS))
        require_card(output)
        version, _, figures = parse_bench_table(output, THREADS)
        output = output_of(BATCHED, "-c", str(CONTEXT), "-npp", str(PROMPT_TOKENS), "-ntg", str(DECODED_TOKENS), "-npl",
                           ",".join(map(str, BATCHES)))
        return {"version": version, "tokens_per_s": figures | parse_batches_table(output, THREADS, BATCHES)}


def main():
    parser = argparse.ArgumentParser(description="Time llama.cpp's CUDA programs on a model file")
    parser.add_argument("--peer", required=True, help=f"Folder of {BENCH} and {BATCHED}")
    parser.add_argument("--model", required=True, help="GGUF model")
    parser.add_argument("--out", required=True, help="File for the figures")
    parser.add_argument("--seconds", type=float, required=True, help="Time limit for both programs")
    options = parser.parse_args()
    use_libraries(options.peer)
    try:
        measured = measure(options)
    except (peer.Failure, OSError) as failure:
        print(failure, file=sys.stderr)
        return getattr(failure, "exit_code", peer.EXIT_CODES["SystemError"])
    with open(options.out, "w", encoding="utf-8") as out:
        json.dump(measured, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
