"""Writes the stories, trains vocabulary and model, and writes the GGUF file: the whole recipe in one command."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import sentencepiece
import torch

from corpus import write_corpus
from export import export_model
from model import Shape, StoryModel
from train import Recipe, train
from vocabulary import train_vocabulary

VOCABULARY_SEED = 7
VOCABULARY_STORIES = 20000


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    recipe = Recipe()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="GGUF file to write")
    parser.add_argument("--checkpoint", type=Path, required=True,
                        help="trained weights: written after training, or read instead of training when it exists")
    parser.add_argument("--steps", type=int, default=recipe.steps)
    parser.add_argument("--seed", type=int, default=recipe.seed)
    parser.add_argument("--threads", type=int, default=recipe.threads)
    return parser.parse_args()


def trained(arguments: argparse.Namespace, processor: sentencepiece.SentencePieceProcessor) -> StoryModel:
    """The model from the checkpoint, or from training, which leaves a checkpoint."""
    if arguments.checkpoint.exists():
        model = StoryModel(Shape())
        model.load_state_dict(torch.load(arguments.checkpoint, weights_only=True))
        return model.eval()
    recipe = replace(Recipe(), steps=arguments.steps, seed=arguments.seed, threads=arguments.threads)
    model, loss = train(processor, Shape(), recipe)
    print(f"trained steps={recipe.steps} seed={recipe.seed} final_loss={loss:.4f}", file=sys.stderr)
    torch.save(model.state_dict(), arguments.checkpoint)
    return model


def main() -> None:
    """Corpus, vocabulary, model, file."""
    arguments = parse_arguments()
    processor = train_vocabulary(write_corpus(VOCABULARY_SEED, VOCABULARY_STORIES))
    model = trained(arguments, processor)
    export_model(model, processor, arguments.out)


if __name__ == "__main__":
    main()
