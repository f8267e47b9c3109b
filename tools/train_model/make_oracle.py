"""Write the expected greedy output of a model file, computed by oracle.py"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from oracle import Oracle, greedy_case

PROMPTS = ("Once upon a time", "The little fox", "One morning", "In the garden")
STEPS = 48


def main() -> None:
    """Writes one line per case, so that a diff is readable."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="Model file")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    arguments = parser.parse_args()
    oracle = Oracle(arguments.model)
    cases = [json.dumps(greedy_case(oracle, prompt, STEPS)) for prompt in PROMPTS]
    arguments.out.write_text('{"cases": [\n' + ",\n".join(cases) + "\n]}\n")


if __name__ == "__main__":
    main()
