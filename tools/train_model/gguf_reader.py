"""Reads a GGUF version 3 file back: metadata, and tensors as float64. Shares no code with the writer."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy

SCALAR_FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9
F32, Q8_0 = 0, 8


class Cursor:
    """A position in the bytes of a file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, form: str) -> int | float | bool:
        """The next number."""
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def take_string(self) -> str:
        """The next string."""
        length = int(self.take("<Q"))
        raw = self.data[self.at:self.at + length]
        self.at += length
        return raw.decode("utf-8")

    def take_value(self, kind: int) -> object:
        """The next value of a kind, arrays included."""
        if kind == STRING:
            return self.take_string()
        if kind == ARRAY:
            inner, count = int(self.take("<I")), int(self.take("<Q"))
            return [self.take_value(inner) for _ in range(count)]
        return self.take(SCALAR_FORMATS[kind])


def dequantise(raw: bytes, offset: int, kind: int, count: int) -> numpy.ndarray:
    """`count` weights from the bytes at `offset`."""
    if kind == F32:
        return numpy.frombuffer(raw, "<f4", count, offset).astype(numpy.float64)
    if kind != Q8_0:
        raise ValueError(f"tensor type {kind} is neither F32 nor Q8_0")
    blocks = numpy.frombuffer(raw, numpy.dtype([("d", "<f2"), ("q", "i1", 32)]), count // 32, offset)
    return (blocks["d"].astype(numpy.float64)[:, None] * blocks["q"]).reshape(-1)


def read_gguf(path: Path) -> tuple[dict[str, object], dict[str, numpy.ndarray]]:
    """Metadata by key, tensors by name with [rows, columns]."""
    cursor = Cursor(path.read_bytes())
    if cursor.data[:4] != b"GGUF":
        raise ValueError(f"{path} does not begin with GGUF")
    cursor.at = 4
    version, tensor_count, pair_count = (cursor.take(f) for f in ("<I", "<Q", "<Q"))
    if version != 3:
        raise ValueError(f"{path} has version {version}, expected 3")
    metadata = {}
    for _ in range(int(pair_count)):
        key = cursor.take_string()
        metadata[key] = cursor.take_value(int(cursor.take("<I")))
    return metadata, read_tensors(cursor, int(tensor_count), int(metadata.get("general.alignment", 32)))


def read_tensors(cursor: Cursor, count: int, alignment: int) -> dict[str, numpy.ndarray]:
    """The tensor table and what it points to."""
    table = []
    for _ in range(count):
        name, rank = cursor.take_string(), int(cursor.take("<I"))
        dims = [int(cursor.take("<Q")) for _ in range(rank)]
        table.append((name, dims[::-1], int(cursor.take("<I")), int(cursor.take("<Q"))))
    base = -(-cursor.at // alignment) * alignment
    return {name: dequantise(cursor.data, base + offset, kind, math.prod(shape)).reshape(shape)
            for name, shape, kind, offset in table}
