"""Print stories of a model file, computed by oracle.py: greedy, or sampled at a temperature"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy

from oracle import Oracle


def choose(logits: numpy.ndarray, temperature: float, rng: numpy.random.Generator) -> int:
    """Returns the best token at temperature 0, else a sampled one."""
    if temperature == 0:
        return int(numpy.argmax(logits))
    weights = numpy.exp((logits - logits.max()) / temperature)
    return int(rng.choice(len(logits), p=weights / weights.sum()))


def continue_text(oracle: Oracle, prompt: str, temperature: float, rng: numpy.random.Generator) -> tuple[str, int]:
    """Returns the prompt with its continuation up to EOS or the end of the context, and the number of new tokens."""
    tokens = oracle.tokenizer.encode(prompt)
    prompt_length, sequence = len(tokens), oracle.new_sequence()
    for token in tokens:
        logits = oracle.logits_after(token, sequence)
    while len(tokens) < oracle.number("context_length"):
        tokens.append(choose(logits, temperature, rng))
        if tokens[-1] == oracle.tokenizer.eos:
            break
        logits = oracle.logits_after(tokens[-1], sequence)
    return oracle.tokenizer.decode(tokens), len(tokens) - prompt_length


def main() -> None:
    """Prints one story per prompt."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="Model file")
    parser.add_argument("prompts", nargs="+", help="Beginnings of stories")
    parser.add_argument("--temperature", type=float, default=0.0, help="Sampling temperature; 0: greedy")
    parser.add_argument("--seed", type=int, default=1, help="Seed of the sampling")
    arguments = parser.parse_args()
    oracle, rng = Oracle(arguments.model), numpy.random.default_rng(arguments.seed)
    for prompt in arguments.prompts:
        text, count = continue_text(oracle, prompt, arguments.temperature, rng)
        print(f"[{count} tokens] {text}\n")


if __name__ == "__main__":
    main()
