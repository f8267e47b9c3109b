"""Writes a GGUF version 3 file.

Layout: "GGUF", version, tensor count, pair count; the key and value pairs; one description per tensor;
padding; the tensors, each on a multiple of the alignment. Everything little-endian.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy

ALIGNMENT = 32
BLOCK = 32
TYPE_F32, TYPE_Q8_0 = 0, 8
VALUE_UINT32, VALUE_INT32, VALUE_FLOAT32, VALUE_BOOL, VALUE_STRING, VALUE_ARRAY = 4, 5, 6, 7, 8, 9


@dataclass(frozen=True)
class FileTensor:
    """One tensor as it goes into the file; `shape` is [rows, columns] or [columns]."""

    name: str
    shape: tuple[int, ...]
    type: int
    data: bytes


def quantise_q8_0(weights: numpy.ndarray) -> bytes:
    """Blocks of 32 along the row: a half-precision scale, then 32 signed bytes."""
    blocks = weights.astype(numpy.float32).reshape(-1, BLOCK)
    scale = numpy.abs(blocks).max(axis=1) / numpy.float32(127)
    inverse = numpy.divide(1, scale, out=numpy.zeros_like(scale), where=scale > 0)
    scaled = blocks * inverse[:, None]
    steps = numpy.trunc(scaled + numpy.copysign(numpy.float32(0.5), scaled)).astype(numpy.int8)
    packed = numpy.empty(len(blocks), dtype=[("scale", "<f2"), ("steps", "i1", BLOCK)])
    packed["scale"], packed["steps"] = scale, steps
    return packed.tobytes()


def pack_string(text: str) -> bytes:
    """Length, then UTF-8."""
    raw = text.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw


def pack_scalar(kind: int, value: object) -> bytes:
    """One value without its type tag."""
    if kind == VALUE_STRING:
        return pack_string(str(value))
    formats = {VALUE_UINT32: "<I", VALUE_INT32: "<i", VALUE_FLOAT32: "<f", VALUE_BOOL: "<?"}
    return struct.pack(formats[kind], value)


class Metadata:
    """The key and value pairs, in the order they were added."""

    def __init__(self) -> None:
        self.packed: list[bytes] = []

    def add(self, key: str, kind: int, value: object) -> None:
        """A single value."""
        self.packed.append(pack_string(key) + struct.pack("<I", kind) + pack_scalar(kind, value))

    def add_array(self, key: str, kind: int, values: list) -> None:
        """An array of values of one kind."""
        head = pack_string(key) + struct.pack("<IIQ", VALUE_ARRAY, kind, len(values))
        self.packed.append(head + b"".join(pack_scalar(kind, v) for v in values))


def padding(size: int) -> bytes:
    """Zeros up to the next multiple of the alignment."""
    return bytes(-size % ALIGNMENT)


def describe_tensors(tensors: list[FileTensor]) -> bytes:
    """Name, dimensions with the fastest first, type and offset of every tensor."""
    packed, offset = [], 0
    for tensor in tensors:
        dims = tensor.shape[::-1]
        packed.append(pack_string(tensor.name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, tensor.type, offset))
        offset += len(tensor.data) + len(padding(len(tensor.data)))
    return b"".join(packed)


def write_gguf(path: Path, metadata: Metadata, tensors: list[FileTensor]) -> None:
    """The whole file; a small model fits in memory."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata.packed))
    head += b"".join(metadata.packed) + describe_tensors(tensors)
    body = b"".join(tensor.data + padding(len(tensor.data)) for tensor in tensors)
    path.write_bytes(head + padding(len(head)) + body)
