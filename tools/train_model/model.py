"""The transformer: Llama's block with the interleaved rotary pairs of GGUF `llama` files."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as functional
from torch import Tensor, nn


@dataclass(frozen=True)
class Shape:
    """Sizes of the model. Every row width is a multiple of 32, the block size of Q8_0."""

    vocab: int = 512
    embd: int = 128
    layers: int = 5
    heads: int = 8
    kv_heads: int = 4
    ffn: int = 384
    context: int = 512
    rope_base: float = 10000.0
    norm_epsilon: float = 1e-5

    @property
    def head_dim(self) -> int:
        """Width of one head."""
        return self.embd // self.heads


def rope_tables(shape: Shape) -> tuple[Tensor, Tensor]:
    """cos and sin, each [context, head_dim / 2]."""
    exponent = torch.arange(0, shape.head_dim, 2).double() / shape.head_dim
    angle = torch.arange(shape.context).double()[:, None] * shape.rope_base ** -exponent
    return angle.cos().float(), angle.sin().float()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotates each pair (x[2i], x[2i + 1]) of x [batch, heads, time, head_dim] by the angle of its position."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class Attention(nn.Module):
    """Causal grouped-query attention."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        kv_width = shape.kv_heads * shape.head_dim
        self.shape = shape
        self.q = nn.Linear(shape.embd, shape.embd, bias=False)
        self.k = nn.Linear(shape.embd, kv_width, bias=False)
        self.v = nn.Linear(shape.embd, kv_width, bias=False)
        self.out = nn.Linear(shape.embd, shape.embd, bias=False)

    def split(self, x: Tensor, heads: int) -> Tensor:
        """[batch, time, heads * head_dim] to [batch, heads, time, head_dim]."""
        return x.unflatten(-1, (heads, self.shape.head_dim)).transpose(1, 2)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Attends over the whole row."""
        shape = self.shape
        group = shape.heads // shape.kv_heads
        q = rotate(self.split(self.q(x), shape.heads), cos, sin)
        k = rotate(self.split(self.k(x), shape.kv_heads), cos, sin).repeat_interleave(group, dim=1)
        v = self.split(self.v(x), shape.kv_heads).repeat_interleave(group, dim=1)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(-2))


class Block(nn.Module):
    """Norm, attention, norm, gated feed-forward, with residual connections."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attn_norm = nn.RMSNorm(shape.embd, eps=shape.norm_epsilon)
        self.attn = Attention(shape)
        self.ffn_norm = nn.RMSNorm(shape.embd, eps=shape.norm_epsilon)
        self.gate = nn.Linear(shape.embd, shape.ffn, bias=False)
        self.up = nn.Linear(shape.embd, shape.ffn, bias=False)
        self.down = nn.Linear(shape.ffn, shape.embd, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """One layer."""
        x = x + self.attn(self.attn_norm(x), cos, sin)
        h = self.ffn_norm(x)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))


class StoryModel(nn.Module):
    """Token ids [batch, time] to logits [batch, time, vocab]."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embed = nn.Embedding(shape.vocab, shape.embd)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.embd, eps=shape.norm_epsilon)
        self.head = nn.Linear(shape.embd, shape.vocab, bias=False)
        cos, sin = rope_tables(shape)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.apply(self.initialise)

    def initialise(self, module: nn.Module) -> None:
        """Small normal weights; layers that add to the residual stream start smaller with depth."""
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.04)
        if isinstance(module, Block):
            for linear in (module.attn.out, module.down):
                nn.init.normal_(linear.weight, std=0.04 / (2 * self.shape.layers) ** 0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits for every position."""
        time = tokens.shape[1]
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, self.cos[:time], self.sin[:time])
        return self.head(self.norm(x))


def tensors_for_file(model: StoryModel) -> dict[str, Tensor]:
    """The weights by GGUF name, each [rows, columns] as stored."""
    named = {"token_embd.weight": model.embed.weight, "output_norm.weight": model.norm.weight,
             "output.weight": model.head.weight}
    for i, block in enumerate(model.blocks):
        parts = {"attn_norm": block.attn_norm, "attn_q": block.attn.q, "attn_k": block.attn.k,
                 "attn_v": block.attn.v, "attn_output": block.attn.out, "ffn_norm": block.ffn_norm,
                 "ffn_gate": block.gate, "ffn_up": block.up, "ffn_down": block.down}
        named |= {f"blk.{i}.{name}.weight": module.weight for name, module in parts.items()}
    return {name: weight.detach() for name, weight in named.items()}
