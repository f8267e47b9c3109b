"""An independent reference for the model file: tokenizer and forward pass in float64, from the file alone.

It shares no code with the training. The forward pass handles one token at a time and keeps the keys and values of
earlier positions; it is written to be read, not to be fast.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy

from gguf import GGUFReader
from gguf.quants import dequantize

SPACE = "\u2581"
BYTE_TYPE = 6


def read_gguf(path: Path) -> tuple[dict[str, object], dict[str, numpy.ndarray]]:
    """Metadata by key, and tensors by name as float64 [rows, columns]."""
    reader = GGUFReader(path)
    metadata = {key: field.contents() for key, field in reader.fields.items()}
    weights = {tensor.name: dequantize(tensor.data, tensor.tensor_type).astype(numpy.float64)
               for tensor in reader.tensors}
    return metadata, weights


class Tokenizer:
    """SentencePiece BPE: join the neighbours with the best score until none can be joined."""

    def __init__(self, metadata: dict) -> None:
        self.pieces: list[str] = metadata["tokenizer.ggml.tokens"]
        self.scores: list[float] = metadata["tokenizer.ggml.scores"]
        self.types: list[int] = metadata["tokenizer.ggml.token_type"]
        self.bos = int(metadata["tokenizer.ggml.bos_token_id"])
        self.eos = int(metadata["tokenizer.ggml.eos_token_id"])
        self.ids = {piece: i for i, piece in enumerate(self.pieces)}

    def best_pair(self, parts: list[str]) -> int | None:
        """Index of the pair with the best score; the leftmost of equals."""
        joined = [(self.scores[self.ids[a + b]], -i) for i, (a, b) in enumerate(zip(parts, parts[1:])) if a + b in self.ids]
        return -max(joined)[1] if joined else None

    def encode(self, text: str) -> list[int]:
        """BOS and the ids of the text. A space is put before a text that is not empty."""
        parts = list((" " + text if text else "").replace(" ", SPACE))
        while (at := self.best_pair(parts)) is not None:
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
        ids = [self.bos]
        for part in parts:
            ids += [self.ids[part]] if part in self.ids else [self.ids[f"<0x{b:02X}>"] for b in part.encode("utf-8")]
        return ids

    def decode(self, ids: list[int]) -> str:
        """The text of the ids, without BOS, EOS and the first space."""
        raw = b""
        for token in ids:
            if self.types[token] == BYTE_TYPE:
                raw += bytes([int(self.pieces[token][3:5], 16)])
            elif token not in (self.bos, self.eos):
                raw += self.pieces[token].replace(SPACE, " ").encode("utf-8")
        return raw.decode("utf-8", errors="replace").removeprefix(" ")


@dataclass
class LayerCache:
    """Keys and values of the positions seen so far, each [kv_heads, head_dim]."""

    keys: list[numpy.ndarray] = field(default_factory=list)
    values: list[numpy.ndarray] = field(default_factory=list)


class Oracle:
    """The model of a file. A sequence is a list of LayerCache, one per layer."""

    def __init__(self, path: Path) -> None:
        self.metadata, self.weights = read_gguf(path)
        self.tokenizer = Tokenizer(self.metadata)
        self.layers = self.number("block_count")
        self.heads, self.kv_heads = self.number("attention.head_count"), self.number("attention.head_count_kv")
        self.head_dim = self.number("rope.dimension_count")
        self.epsilon = float(self.metadata["llama.attention.layer_norm_rms_epsilon"])
        self.rope_base = float(self.metadata["llama.rope.freq_base"])

    def number(self, key: str) -> int:
        """A whole number from the metadata of the architecture."""
        return int(self.metadata[f"llama.{key}"])

    def project(self, x: numpy.ndarray, layer: int, part: str, heads: int) -> numpy.ndarray:
        """One of the input projections of the attention, as [heads, head_dim]."""
        return (self.weights[f"blk.{layer}.attn_{part}.weight"] @ x).reshape(heads, self.head_dim)

    def new_sequence(self) -> list[LayerCache]:
        """Empty caches."""
        return [LayerCache() for _ in range(self.layers)]

    def normalise(self, x: numpy.ndarray, name: str) -> numpy.ndarray:
        """RMS norm with the named gain."""
        return x / numpy.sqrt(numpy.mean(x * x) + self.epsilon) * self.weights[name]

    def rotate(self, x: numpy.ndarray, position: int) -> numpy.ndarray:
        """Each pair of neighbours, as a complex number, times e^(i * position * base^(-2k/d))."""
        turns = position * self.rope_base ** (-numpy.arange(0, self.head_dim, 2) / self.head_dim)
        pairs = (x[:, 0::2] + 1j * x[:, 1::2]) * numpy.exp(1j * turns)
        return numpy.stack((pairs.real, pairs.imag), axis=-1).reshape(x.shape)

    def attend(self, x: numpy.ndarray, layer: int, cache: LayerCache) -> numpy.ndarray:
        """Attention of the newest position over all positions."""
        position = len(cache.keys)
        query = self.rotate(self.project(x, layer, "q", self.heads), position)
        cache.keys.append(self.rotate(self.project(x, layer, "k", self.kv_heads), position))
        cache.values.append(self.project(x, layer, "v", self.kv_heads))
        keys, values = numpy.stack(cache.keys), numpy.stack(cache.values)
        mixed = []
        for head in range(self.heads):
            shared = head * self.kv_heads // self.heads
            score = keys[:, shared] @ query[head] / numpy.sqrt(self.head_dim)
            weight = numpy.exp(score - score.max())
            mixed.append(weight @ values[:, shared] / weight.sum())
        return self.weights[f"blk.{layer}.attn_output.weight"] @ numpy.concatenate(mixed)

    def feed_forward(self, x: numpy.ndarray, layer: int) -> numpy.ndarray:
        """down(silu(gate x) * up x)."""
        gate = self.weights[f"blk.{layer}.ffn_gate.weight"] @ x
        up = self.weights[f"blk.{layer}.ffn_up.weight"] @ x
        return self.weights[f"blk.{layer}.ffn_down.weight"] @ (gate / (1 + numpy.exp(-gate)) * up)

    def logits_after(self, token: int, sequence: list[LayerCache]) -> numpy.ndarray:
        """Appends a token to the sequence; returns the logits of the next one."""
        x = self.weights["token_embd.weight"][token]
        for layer, cache in enumerate(sequence):
            x = x + self.attend(self.normalise(x, f"blk.{layer}.attn_norm.weight"), layer, cache)
            x = x + self.feed_forward(self.normalise(x, f"blk.{layer}.ffn_norm.weight"), layer)
        return self.weights["output.weight"] @ self.normalise(x, "output_norm.weight")


def largest(logits: numpy.ndarray, count: int = 5) -> list[list]:
    """The largest logits with their ids, best first."""
    return [[int(i), round(float(logits[i]), 5)] for i in numpy.argsort(-logits, kind="stable")[:count]]


def greedy_case(oracle: Oracle, prompt_text: str, steps: int) -> dict:
    """The prompt and `steps` greedy tokens, each with the five largest logits."""
    prompt = oracle.tokenizer.encode(prompt_text)
    sequence = oracle.new_sequence()
    for token in prompt:
        logits = oracle.logits_after(token, sequence)
    taken = []
    for _ in range(steps):
        top = largest(logits)
        taken.append({"token": top[0][0], "top": top})
        logits = oracle.logits_after(top[0][0], sequence)
    text = oracle.tokenizer.decode(prompt + [step["token"] for step in taken])
    return {"prompt": prompt, "prompt_text": prompt_text, "steps": taken, "text": text}
