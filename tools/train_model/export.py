"""Writes the trained model and its vocabulary as a GGUF file."""

from __future__ import annotations

from pathlib import Path

import numpy
import sentencepiece

from gguf import GGMLQuantizationType, GGUFWriter, LlamaFileType
from gguf.quants import quantize

from model import Shape, StoryModel, tensors_for_file
from vocabulary import BOS_ID, EOS_ID, UNKNOWN_ID, Vocabulary, describe

ARCHITECTURE = "llama"
MODEL_NAME = "Leasehold Stories"
ALIGNMENT = 32


def add_model_metadata(writer: GGUFWriter, shape: Shape) -> None:
    """The keys from which a loader builds the graph."""
    writer.add_name(MODEL_NAME)
    writer.add_custom_alignment(ALIGNMENT)
    writer.add_file_type(LlamaFileType.MOSTLY_Q8_0)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.embd)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.ffn)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_vocab_size(shape.vocab)
    writer.add_layer_norm_rms_eps(shape.norm_epsilon)
    writer.add_rope_freq_base(shape.rope_base)


def add_vocabulary_metadata(writer: GGUFWriter, vocabulary: Vocabulary) -> None:
    """The keys from which a loader builds the tokenizer."""
    writer.add_tokenizer_model("llama")
    writer.add_token_list(vocabulary.pieces)
    writer.add_token_scores(vocabulary.scores)
    writer.add_token_types(vocabulary.types)
    writer.add_bos_token_id(BOS_ID)
    writer.add_eos_token_id(EOS_ID)
    writer.add_unk_token_id(UNKNOWN_ID)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(True)


def add_weights(writer: GGUFWriter, name: str, weights: numpy.ndarray) -> None:
    """Adds a matrix as Q8_0, and a norm as F32."""
    weights = weights.astype(numpy.float32)
    if weights.ndim == 1:
        writer.add_tensor(name, weights)
    else:
        kind = GGMLQuantizationType.Q8_0
        writer.add_tensor(name, quantize(weights, kind), raw_dtype=kind)


def write_file(path: Path, shape: Shape, vocabulary: Vocabulary, weights: dict[str, numpy.ndarray]) -> None:
    """Writes the file; `weights` is in file order."""
    writer = GGUFWriter(path, ARCHITECTURE)
    add_model_metadata(writer, shape)
    add_vocabulary_metadata(writer, vocabulary)
    for name, tensor in weights.items():
        add_weights(writer, name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def export_model(model: StoryModel, processor: sentencepiece.SentencePieceProcessor, path: Path) -> None:
    """Writes the trained model and its vocabulary."""
    weights = {name: tensor.numpy() for name, tensor in tensors_for_file(model).items()}
    write_file(path, model.shape, describe(processor), weights)
