"""Write stories, train vocabulary and model, and write the GGUF file"""

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
    """Parses the command line."""
    recipe = Recipe()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="File to write (GGUF)")
    parser.add_argument("--checkpoint", type=Path, required=True,
                        help="Trained weights; read instead of training when the file exists, else written")
    parser.add_argument("--steps", type=int, default=recipe.steps, help="Number of training steps")
    parser.add_argument("--seed", type=int, default=recipe.seed, help="Seed of weights and stories")
    parser.add_argument("--threads", type=int, default=recipe.threads, help="Number of CPU threads")
    return parser.parse_args()


def trained(arguments: argparse.Namespace, processor: sentencepiece.SentencePieceProcessor) -> StoryModel:
    """Loads the model from the checkpoint, or trains it and writes the checkpoint."""
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
    """Runs the recipe."""
    arguments = parse_arguments()
    processor = train_vocabulary(write_corpus(VOCABULARY_SEED, VOCABULARY_STORIES))
    model = trained(arguments, processor)
    export_model(model, processor, arguments.out)


if __name__ == "__main__":
    main()
