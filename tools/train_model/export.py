"""Turns the trained model and its vocabulary into a GGUF file."""

from __future__ import annotations

from pathlib import Path

import numpy
import sentencepiece

from gguf_writer import (ALIGNMENT, TYPE_F32, TYPE_Q8_0, VALUE_BOOL, VALUE_FLOAT32, VALUE_INT32, VALUE_STRING,
                         VALUE_UINT32, FileTensor, Metadata, quantise_q8_0, write_gguf)
from model import Shape, StoryModel, tensors_for_file
from vocabulary import BOS_ID, EOS_ID, UNKNOWN_ID, describe

MODEL_NAME = "Leasehold Stories"
FILE_TYPE_Q8_0 = 7


def model_metadata(metadata: Metadata, shape: Shape) -> None:
    """What a loader needs to build the graph."""
    metadata.add("general.architecture", VALUE_STRING, "llama")
    metadata.add("general.name", VALUE_STRING, MODEL_NAME)
    metadata.add("general.alignment", VALUE_UINT32, ALIGNMENT)
    metadata.add("general.file_type", VALUE_UINT32, FILE_TYPE_Q8_0)
    counts = {"context_length": shape.context, "embedding_length": shape.embd, "block_count": shape.layers,
              "feed_forward_length": shape.ffn, "attention.head_count": shape.heads,
              "attention.head_count_kv": shape.kv_heads, "rope.dimension_count": shape.head_dim,
              "vocab_size": shape.vocab}
    for key, count in counts.items():
        metadata.add(f"llama.{key}", VALUE_UINT32, count)
    metadata.add("llama.attention.layer_norm_rms_epsilon", VALUE_FLOAT32, shape.norm_epsilon)
    metadata.add("llama.rope.freq_base", VALUE_FLOAT32, shape.rope_base)


def vocabulary_metadata(metadata: Metadata, processor: sentencepiece.SentencePieceProcessor) -> None:
    """What a loader needs to turn text into tokens and back."""
    vocabulary = describe(processor)
    metadata.add("tokenizer.ggml.model", VALUE_STRING, "llama")
    metadata.add_array("tokenizer.ggml.tokens", VALUE_STRING, vocabulary.pieces)
    metadata.add_array("tokenizer.ggml.scores", VALUE_FLOAT32, vocabulary.scores)
    metadata.add_array("tokenizer.ggml.token_type", VALUE_INT32, vocabulary.types)
    metadata.add("tokenizer.ggml.bos_token_id", VALUE_UINT32, BOS_ID)
    metadata.add("tokenizer.ggml.eos_token_id", VALUE_UINT32, EOS_ID)
    metadata.add("tokenizer.ggml.unknown_token_id", VALUE_UINT32, UNKNOWN_ID)
    metadata.add("tokenizer.ggml.add_bos_token", VALUE_BOOL, True)
    metadata.add("tokenizer.ggml.add_eos_token", VALUE_BOOL, False)
    metadata.add("tokenizer.ggml.add_space_prefix", VALUE_BOOL, True)


def file_tensor(name: str, weights: numpy.ndarray) -> FileTensor:
    """Matrices as Q8_0, norms as they are."""
    if weights.ndim == 1:
        return FileTensor(name, weights.shape, TYPE_F32, weights.astype("<f4").tobytes())
    return FileTensor(name, weights.shape, TYPE_Q8_0, quantise_q8_0(weights))


def export_model(model: StoryModel, processor: sentencepiece.SentencePieceProcessor, path: Path) -> None:
    """Writes the file."""
    metadata = Metadata()
    model_metadata(metadata, model.shape)
    vocabulary_metadata(metadata, processor)
    write_gguf(path, metadata, [file_tensor(name, w.numpy()) for name, w in tensors_for_file(model).items()])
