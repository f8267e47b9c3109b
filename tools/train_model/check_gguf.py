"""Recompute one case of the expected output beside a model file, and compare"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from oracle import Oracle, greedy_case

LOGIT_TOLERANCE = 1e-4


def differences(expected: dict, found: dict) -> list[str]:
    """Lists the steps at which the recomputed case differs."""
    wrong = [] if expected["prompt"] == found["prompt"] else ["the prompt has other tokens"]
    for i, (want, have) in enumerate(zip(expected["steps"], found["steps"], strict=True)):
        gap = max(abs(a[1] - b[1]) for a, b in zip(want["top"], have["top"], strict=True))
        if want["token"] != have["token"] or gap > LOGIT_TOLERANCE:
            wrong.append(f"step {i}: token {have['token']} instead of {want['token']}, logits off by {gap:.2g}")
    return wrong


def main() -> int:
    """Returns 0 when the case agrees, else 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="Model file; the cases are in the .json beside it")
    parser.add_argument("--case", type=int, default=0, help="Number of the case")
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
