"""Trains the model on packed rows of stories."""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import sentencepiece
import torch
import torch.nn.functional as functional

from corpus import write_story
from model import Shape, StoryModel
from vocabulary import BOS_ID, EOS_ID


@dataclass(frozen=True)
class Recipe:
    """Training parameters. Equal recipes give equal weights on one machine."""

    seed: int = 20
    steps: int = 1100
    batch: int = 8
    peak_rate: float = 5e-3
    final_share: float = 0.02
    warmup: int = 50
    weight_decay: float = 0.05
    threads: int = 1


def story_tokens(processor: sentencepiece.SentencePieceProcessor, rng: random.Random) -> Iterator[int]:
    """Yields BOS story EOS BOS story EOS … without end; no story repeats."""
    while True:
        yield from (BOS_ID, *processor.encode(write_story(rng)), EOS_ID)


def packed_rows(processor: sentencepiece.SentencePieceProcessor, shape: Shape, recipe: Recipe) -> Iterator[torch.Tensor]:
    """Yields batches [batch, context + 1]; each row starts with a new story and is filled with more."""
    rng = random.Random(recipe.seed)
    while True:
        rows = []
        for _ in range(recipe.batch):
            stream = story_tokens(processor, rng)
            rows.append([next(stream) for _ in range(shape.context + 1)])
        yield torch.tensor(rows)


def rate_at(step: int, recipe: Recipe) -> float:
    """Learning rate: linear warm-up, then cosine decay to a share of the peak."""
    if step < recipe.warmup:
        return recipe.peak_rate * (step + 1) / recipe.warmup
    done = (step - recipe.warmup) / max(1, recipe.steps - recipe.warmup)
    share = recipe.final_share + 0.5 * (1 - recipe.final_share) * (1 + math.cos(math.pi * done))
    return recipe.peak_rate * share


def make_optimisers(model: StoryModel, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the blocks, AdamW for the tables and the norms; norms have no weight decay."""
    inner = [p for p in model.blocks.parameters() if p.ndim == 2]
    tables = [model.embed.weight, model.head.weight]
    norms = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": tables, "weight_decay": recipe.weight_decay}, {"params": norms, "weight_decay": 0.0}]
    return [torch.optim.Muon(inner, lr=recipe.peak_rate, weight_decay=recipe.weight_decay,
                             adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(groups, lr=recipe.peak_rate, betas=(0.9, 0.98))]


def train_step(model: StoryModel, optimisers: list[torch.optim.Optimizer], rows: torch.Tensor, rate: float) -> float:
    """Makes one update; returns the loss before it, in nats per token."""
    logits = model(rows[:, :-1])
    loss = functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
    model.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.step()
    return float(loss.detach())


def train(processor: sentencepiece.SentencePieceProcessor, shape: Shape, recipe: Recipe) -> tuple[StoryModel, float]:
    """Returns the trained model and the mean loss of the last 100 steps, all on new stories."""
    torch.manual_seed(recipe.seed)
    torch.set_num_threads(recipe.threads)
    model = StoryModel(shape)
    optimisers = make_optimisers(model, recipe)
    losses: list[float] = []
    began = time.monotonic()
    for step, rows in zip(range(recipe.steps), packed_rows(processor, shape, recipe)):
        losses.append(train_step(model, optimisers, rows, rate_at(step, recipe)))
        if step % 100 == 99:
            report(step + 1, losses, began)
    return model.eval(), sum(losses[-100:]) / len(losses[-100:])


def report(step: int, losses: list[float], began: float) -> None:
    """Prints one line of progress to stderr."""
    recent = sum(losses[-100:]) / len(losses[-100:])
    print(f"training step={step} loss={recent:.4f} seconds={time.monotonic() - began:.0f}", file=sys.stderr, flush=True)
