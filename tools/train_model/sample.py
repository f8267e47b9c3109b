"""Writes stories with a model file, by the slow and plain oracle: greedy, or at a temperature with a seed."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy

from oracle import Oracle


def choose(logits: numpy.ndarray, temperature: float, rng: numpy.random.Generator) -> int:
    """The best token at temperature 0, else one drawn by its probability."""
    if temperature == 0:
        return int(numpy.argmax(logits))
    weights = numpy.exp((logits - logits.max()) / temperature)
    return int(rng.choice(len(logits), p=weights / weights.sum()))


def continue_text(oracle: Oracle, prompt: str, temperature: float, rng: numpy.random.Generator) -> tuple[str, int]:
    """The prompt and what follows it up to EOS or the end of the context, and the number of new tokens."""
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
    """One story per prompt."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("prompts", nargs="+")
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    oracle, rng = Oracle(arguments.model), numpy.random.default_rng(arguments.seed)
    for prompt in arguments.prompts:
        text, count = continue_text(oracle, prompt, arguments.temperature, rng)
        print(f"[{count} tokens] {text}\n")


if __name__ == "__main__":
    main()
