"""Writes the expected greedy answers of a model file, computed by oracle.py."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from oracle import Oracle, greedy_case

PROMPTS = ("Once upon a time", "The little fox", "One morning", "In the garden")
STEPS = 48


def main() -> None:
    """One case per prompt, one line per case so that a difference is easy to see."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    oracle = Oracle(arguments.model)
    cases = [json.dumps(greedy_case(oracle, prompt, STEPS)) for prompt in PROMPTS]
    arguments.out.write_text('{"cases": [\n' + ",\n".join(cases) + "\n]}\n")


if __name__ == "__main__":
    main()
