"""Copies a model file with a chat template: with_template.py MODEL COPY TEMPLATE

The template becomes the first entry of the metadata. A comment pads it to a multiple of every
alignment, so that the tensors stay aligned.
"""

import struct
import sys

GRID = 4096
COUNT_AT, ENTRIES_AT, TEXT = 16, 24, 8


def text(value):
    return struct.pack("<Q", len(value)) + value


model, copy, template = sys.argv[1:]
with open(model, "rb") as file:
    data = bytearray(file.read())
key = text(b"tokenizer.chat_template") + struct.pack("<I", TEXT)
source = template.encode()
filler = b" " * (-(len(key) + len(text(source + b"{##}"))) % GRID)
data[COUNT_AT:ENTRIES_AT] = struct.pack("<Q", struct.unpack_from("<Q", data, COUNT_AT)[0] + 1)
data[ENTRIES_AT:ENTRIES_AT] = key + text(source + b"{#" + filler + b"#}")
with open(copy, "wb") as file:
    file.write(data)
