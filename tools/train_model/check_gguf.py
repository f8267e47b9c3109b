"""Reads a model file back and recomputes one case of the answers beside it. Needs numpy only."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from oracle import Oracle, greedy_case

LOGIT_TOLERANCE = 1e-4


def differences(expected: dict, found: dict) -> list[str]:
    """Every step at which the recomputed case says something else."""
    wrong = [] if expected["prompt"] == found["prompt"] else ["the prompt has other tokens"]
    for i, (want, have) in enumerate(zip(expected["steps"], found["steps"], strict=True)):
        gap = max(abs(a[1] - b[1]) for a, b in zip(want["top"], have["top"], strict=True))
        if want["token"] != have["token"] or gap > LOGIT_TOLERANCE:
            wrong.append(f"step {i}: token {have['token']} instead of {want['token']}, logits off by {gap:.2g}")
    return wrong


def main() -> int:
    """0 when the file and its answers agree, 1 otherwise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--case", type=int, default=0)
    arguments = parser.parse_args()
    expected = json.loads(arguments.model.with_suffix(".json").read_text())["cases"][arguments.case]
    oracle = Oracle(arguments.model)
    weights = sum(w.size for w in oracle.weights.values())
    print(f"{arguments.model.name}: {len(oracle.weights)} tensors, {weights} weights, "
          f"{len(oracle.tokenizer.pieces)} tokens, {arguments.model.stat().st_size} bytes")
    wrong = differences(expected, greedy_case(oracle, expected["prompt_text"], len(expected["steps"])))
    print("\n".join(wrong) if wrong else f"case {arguments.case} agrees: {expected['text']}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
