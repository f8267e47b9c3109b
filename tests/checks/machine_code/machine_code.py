#!/usr/bin/env python3
"""Counts the instructions of kernels in machine code, without a card.

    tests/checks/machine_code/machine_code.py --nvdisasm PATH [--nvcc PATH] [--only TEXT] [--check]
        [--json FILE] KERNELS.cu…

nvdisasm is a file of the package nvidia-cuda-nvdisasm. Prints a line per kernel whose name contains
TEXT: registers and threads, spilled bytes, static shared memory, of an early kernel of Q4_K the
instructions for 16 x 256 weights with the copies of the next ones, and how the kernel copies. `--check` exits with 1 if a kernel spills, or if
one that starts early has copies by registers (LDGSTS), no bulk copies or no wait, too many registers to
share an SM with its like, or more instructions for 16 x 256 weights of Q4_K than LIMITS.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
FLAGS = ["-std=c++20", "-O3", "-fmad=false", f"-I{ROOT}", "-arch=sm_90a", "-cubin", "-Xptxas", "-v"]
REGISTERS = 64 * 1024  # of an SM
REGISTER_UNIT = 8 * 32  # registers are given to a warp in units of 8 for each lane
EARLY_KERNELS_OF_AN_SM = 2
# Instructions for 16 x 256 weights of Q4_K, by rows of x.
LIMITS = {"lh_matmul_early_q4_k_1": 240, "lh_matmul_early_q4_k_8": 420}
# Products of a warp for 16 x 256 weights of Q4_K and one column by IDP, or eight by IMMA: those of
# the codes, and one more of eight for the minima.
PRODUCTS = 16 * 256 * 9 // 8
DP4A_PRODUCTS = 4 * 32
MMA_PRODUCTS = {"IMMA.16832": 16 * 32, "IMMA.16816": 16 * 16}

INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P[T0-9]+\s+)?([A-Z][A-Z0-9_.]*)([^;]*);")
LABEL = re.compile(r"^(\.L_x_\d+):")
TARGET = re.compile(r"`\((\.L_x_\d+)\)")


def run(command):
    made = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if made.returncode != 0:
        sys.exit(f"machine_code: {command[0]} failed: {made.stderr.strip()[-2000:]}")
    return made.stdout + made.stderr


def resources(log):
    """What ptxas says of each kernel."""
    kernels = {}
    for part in log.split("Compiling entry function '")[1:]:
        def number(pattern):
            found = re.search(pattern, part)
            return int(found.group(1)) if found else 0
        kernels[part.split("'")[0]] = {
            "registers": number(r"Used (\d+) registers"),
            "spilled": number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads"),
            "shared": number(r"(\d+) bytes smem")}
    return kernels


def threads_of(text):
    """The most threads of a block, by kernel, from the attributes in the disassembly."""
    threads = {}
    for part in re.split(r"\.section\s+\.nv\.info\.", text)[1:]:
        found = re.search(r"EIATTR_MAX_THREADS.*?\.word\s+(0x[0-9a-f]+)", part, re.S)
        if found:
            threads[re.match(r"[\w]+", part).group(0)] = int(found.group(1), 16)
    return threads


def bodies(text):
    """(name, lines of the code) of each kernel."""
    for part in re.split(r"\.section\s+\.text\.", text)[1:]:
        yield re.match(r"\w+", part).group(0), part.split("\n")


class Body:
    """The instructions of a kernel, and its loops as (first, last) indices."""

    def __init__(self, lines):
        self.names = []
        self.loops = []
        labels = {}
        jumps = []
        for line in lines:
            label = LABEL.match(line.strip())
            if label:
                labels[label.group(1)] = len(self.names)
            found = INSTRUCTION.search(line)
            if not found or found.group(2) == "NOP":
                continue
            target = TARGET.search(found.group(3))
            if found.group(2).startswith("BRA") and target:
                jumps.append((len(self.names), target.group(1)))
            self.names.append(found.group(2))
        for at, label in jumps:
            if labels.get(label, at + 1) <= at:
                self.loops.append((labels[label], at))

    def count(self, *starts, within=None):
        first, last = within or (0, len(self.names) - 1)
        return sum(name.startswith(starts) for name in self.names[first:last + 1])

    def products(self, loop, columns):
        """Products of a warp in one turn of a loop, for as many columns as one instruction has."""
        by_mma = sum(size * self.count(name, within=loop) for name, size in MMA_PRODUCTS.items())
        return self.count("IDP", within=loop) * DP4A_PRODUCTS // columns + by_mma

    def instructions_of_block(self, columns):
        """Instructions of the loop that multiplies 16 x 256 weights and copies the next ones; None
        if there is no such loop. Each branch in it counts as taken, so this is an upper bound. A loop
        inside it has as many turns as the products need."""
        loops = [loop for loop in self.loops if self.products(loop, columns)]
        copying = [loop for loop in loops if self.count("UBLKCP", within=loop)]
        if not copying:
            return None
        outer = min(copying, key=size)
        inside = [loop for loop in loops if outer[0] <= loop[0] and loop[1] <= outer[1] and loop != outer]
        if not inside:
            return size(outer)
        inner = min(inside, key=size)
        once = self.products(inner, columns)
        turns = (PRODUCTS - self.products(outer, columns) + once) // once
        return size(outer) + (turns - 1) * size(inner)


def size(loop):
    return loop[1] - loop[0] + 1


def columns_of(name):
    """The columns of a kernel that multiplies Q4_K by IDP; more are multiplied by IMMA."""
    found = re.search(r"_q4_k_([12])$", name)
    return int(found.group(1)) if found else 1


def count_kernels(nvcc, nvdisasm, source):
    with tempfile.TemporaryDirectory() as folder:
        cubin = pathlib.Path(folder) / "kernels.cubin"
        known = resources(run([nvcc, *FLAGS, "-o", cubin, source]))
        text = run([nvdisasm, cubin])
    threads = threads_of(text)
    for name, lines in bodies(text):
        body = Body(lines)
        yield {"kernel": name, "threads": threads.get(name, 0), **known.get(name, {}),
               "code": len(body.names),
               "of_block": body.instructions_of_block(columns_of(name)) if "_q4_k_" in name else None,
               "bulk_copies": body.count("UBLKCP"), "waits": body.count("ACQBULK"),
               "lane_copies": body.count("LDGSTS")}


def registers_of_block(one):
    """A warp's registers are rounded up."""
    per_warp = -(-one["registers"] * 32 // REGISTER_UNIT) * REGISTER_UNIT
    return per_warp * (one["threads"] // 32)


def faults(one):
    if one["spilled"]:
        yield f"spills {one['spilled']} bytes"
    if "early" not in one["kernel"]:
        return
    if not one["bulk_copies"] or not one["waits"]:
        yield "has no bulk copies or no wait for the previous kernel"
    if one["lane_copies"]:
        yield f"copies by registers at {one['lane_copies']} places"
    if EARLY_KERNELS_OF_AN_SM * registers_of_block(one) > REGISTERS:
        yield f"needs {registers_of_block(one)} registers, more than half of an SM's {REGISTERS}"
    limit = LIMITS.get(one["kernel"])
    if limit and (not one["of_block"] or one["of_block"] > limit):
        yield f"has more than {limit} instructions for 16 x 256 weights"


def line_of(one):
    loop = f", {one['of_block']} instructions for 16 x 256 weights" if one["of_block"] else ""
    return (f"{one['kernel']}: {one['registers']} registers x {one['threads']}, "
            f"{one['spilled']} B spilled, {one['shared']} B shared{loop}; {one['bulk_copies']} UBLKCP, "
            f"{one['waits']} ACQBULK, {one['lane_copies']} LDGSTS")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc", default="/usr/local/cuda/bin/nvcc")
    parser.add_argument("--nvdisasm", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("sources", nargs="+")
    options = parser.parse_args()
    counted = []
    for source in options.sources:
        for one in count_kernels(options.nvcc, options.nvdisasm, source):
            if options.only in one["kernel"]:
                counted.append(one)
                print(line_of(one), flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(counted, indent=1) + "\n")
    if not counted:
        sys.exit(f"machine_code: no kernel's name contains {options.only!r}")
    found = [f"{one['kernel']} {fault}" for one in counted for fault in faults(one)]
    if options.check and found:
        sys.exit("machine_code: " + "; ".join(found))


if __name__ == "__main__":
    main()
