"""A SentencePiece BPE vocabulary of 512 tokens with byte fallback, trained on the stories."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass

import sentencepiece

VOCAB_SIZE = 512
UNKNOWN_ID, BOS_ID, EOS_ID = 0, 1, 2
TYPE_NORMAL, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_BYTE = 1, 2, 3, 6


@dataclass(frozen=True)
class Vocabulary:
    """The tables of a SentencePiece model in a GGUF file, in id order."""

    pieces: list[str]
    scores: list[float]
    types: list[int]


def train_vocabulary(stories: list[str]) -> sentencepiece.SentencePieceProcessor:
    """Learns the merges with one thread and no sampling, so the same stories give the same pieces."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(stories), model_writer=model, model_type="bpe", vocab_size=VOCAB_SIZE,
        byte_fallback=True, character_coverage=1.0,
        normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=True,
        unk_id=UNKNOWN_ID, bos_id=BOS_ID, eos_id=EOS_ID, pad_id=-1, num_threads=1, minloglevel=2,
        max_sentence_length=8192)
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def varint(value: int) -> bytes:
    """A number in the variable-length form of protocol buffers."""
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + varint(value >> 7)


def field(number: int, payload: bytes | int | float) -> bytes:
    """One field of a protocol buffer."""
    if isinstance(payload, float):
        return varint(number << 3 | 5) + struct.pack("<f", payload)
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def processor_of(metadata: dict) -> sentencepiece.SentencePieceProcessor:
    """The vocabulary of a model file, in the form of SentencePiece (its sentencepiece_model.proto)."""
    tables = (metadata[f"tokenizer.ggml.{name}"] for name in ("tokens", "scores", "token_type"))
    pieces = b"".join(field(1, field(1, piece.encode()) + field(2, float(score)) + field(3, int(kind)))
                      for piece, score, kind in zip(*tables))
    trainer = field(3, 2) + field(35, 1)  # BPE with bytes as fallback
    normalizer = field(1, b"identity") + field(3, 1) + field(4, 0) + field(5, 1)
    return sentencepiece.SentencePieceProcessor(model_proto=pieces + field(2, trainer) + field(3, normalizer))


def token_type(processor: sentencepiece.SentencePieceProcessor, token: int) -> int:
    """Returns the GGUF type number of one token."""
    if processor.is_unknown(token):
        return TYPE_UNKNOWN
    if processor.is_control(token):
        return TYPE_CONTROL
    return TYPE_BYTE if processor.is_byte(token) else TYPE_NORMAL


def describe(processor: sentencepiece.SentencePieceProcessor) -> Vocabulary:
    """Returns the tables for the file."""
    ids = range(processor.get_piece_size())
    return Vocabulary(pieces=[processor.id_to_piece(i) for i in ids],
                      scores=[float(processor.get_score(i)) for i in ids],
                      types=[token_type(processor, i) for i in ids])
