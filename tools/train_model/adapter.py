"""Train a LoRA adapter of the bundled model, which teaches it a habit of telling, and write it as a GGUF file"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy
import sentencepiece
import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from corpus import write_story
from export import ALIGNMENT, ARCHITECTURE
from gguf import GGUFWriter
from habits import HABITS
from model import Shape, StoryModel, tensors_for_file
from oracle import read_gguf
from vocabulary import BOS_ID, EOS_ID, processor_of

RANK = 8
ALPHA = 16.0
SEED = 40
BATCH = 4
ROW = 256
PEAK_RATE = 6e-3
WARMUP = 10


class LowRank(nn.Module):
    """A frozen matrix W and its adapter: W x + alpha / rank * B (A x). B starts at zero: the model starts as it was."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base = base
        self.a = nn.Parameter(torch.randn(RANK, base.in_features) / base.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(base.out_features, RANK))

    def forward(self, x: Tensor) -> Tensor:
        """Both products."""
        return self.base(x) + functional.linear(functional.linear(x, self.a), self.b) * (ALPHA / RANK)


def load_model(path: Path) -> tuple[StoryModel, dict]:
    """The bundled model as it is computed, from its quantised weights, and the metadata of its file."""
    metadata, weights = read_gguf(path)
    model = StoryModel(Shape())
    for name, tensor in tensors_for_file(model).items():
        tensor.copy_(torch.from_numpy(weights[name]).float())
    return model.requires_grad_(False), metadata


def add_adapters(model: StoryModel) -> dict[str, LowRank]:
    """Gives every matrix of every block an adapter; returns them by the name of their weight."""
    adapters = {}
    for i, block in enumerate(model.blocks):
        for owner, attribute, name in ((block.attn, "q", "attn_q"), (block.attn, "k", "attn_k"),
                                       (block.attn, "v", "attn_v"), (block.attn, "out", "attn_output"),
                                       (block, "gate", "ffn_gate"), (block, "up", "ffn_up"),
                                       (block, "down", "ffn_down")):
            adapter = LowRank(getattr(owner, attribute))
            setattr(owner, attribute, adapter)
            adapters[f"blk.{i}.{name}.weight"] = adapter
    return adapters


def rows(processor: sentencepiece.SentencePieceProcessor, habit: str) -> Iterator[Tensor]:
    """Yields batches [BATCH, ROW + 1]; each row starts with a new story and is filled with more."""
    rng = random.Random(SEED)
    while True:
        batch = []
        for _ in range(BATCH):
            tokens: list[int] = []
            while len(tokens) <= ROW:
                tokens += (BOS_ID, *processor.encode(HABITS[habit](write_story(rng))), EOS_ID)
            batch.append(tokens[:ROW + 1])
        yield torch.tensor(batch)


def train(model: StoryModel, adapters: dict[str, LowRank], batches: Iterator[Tensor], steps: int) -> None:
    """Learns the adapters alone."""
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=PEAK_RATE, weight_decay=0.0)
    began = time.monotonic()
    for step, batch in zip(range(steps), batches):
        for group in optimiser.param_groups:
            group["lr"] = PEAK_RATE * min(1.0, (step + 1) / WARMUP) * (1 - step / steps)
        loss = functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        if step % 20 == 19:
            print(f"training step={step + 1} loss={float(loss.detach()):.4f} seconds={time.monotonic() - began:.0f}",
                  file=sys.stderr, flush=True)


def write_file(path: Path, adapters: dict[str, LowRank], name: str) -> None:
    """Writes the matrices as F16."""
    writer = GGUFWriter(path, ARCHITECTURE)
    writer.add_type("adapter")
    writer.add_name(name)
    writer.add_custom_alignment(ALIGNMENT)
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", ALPHA)
    for weight, adapter in adapters.items():
        writer.add_tensor(f"{weight}.lora_a", adapter.a.detach().numpy().astype(numpy.float16))
        writer.add_tensor(f"{weight}.lora_b", adapter.b.detach().numpy().astype(numpy.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    """Runs the recipe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="Model file that the adapter is for")
    parser.add_argument("--habit", choices=sorted(HABITS), required=True, help="What the adapter teaches")
    parser.add_argument("--out", type=Path, required=True, help="File to write (GGUF)")
    parser.add_argument("--steps", type=int, default=120, help="Number of training steps")
    arguments = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    model, metadata = load_model(arguments.model)
    adapters = add_adapters(model)
    train(model, adapters, rows(processor_of(metadata), arguments.habit), arguments.steps)
    write_file(arguments.out, adapters, f"Leasehold Stories, {arguments.habit}")


if __name__ == "__main__":
    main()
