"""Parts of data with columns by name, as safetensors files: docs/data-and-shards.md describes them.

A tensor is its type's word, its shape, and its bytes in pieces.
"""

import json
import re
import struct

import numpy as np


def ends(numbers):
    """The tensor that says where each row ends."""
    return ("I64", [len(numbers)], [numbers.astype("<i8").tobytes()])


def with_ends_of(name, word, shape, buffers):
    """A column `[rows, length, ...]` as all rows one after another, and where each ends: the bytes are the same."""
    rows, length, *element = shape
    flat = (word, [rows * length, *element], buffers)
    return {name: flat, f"{name}.ends": ends(np.arange(1, rows + 1, dtype=np.int64) * length)}


def write_tensors(file, tensors, metadata):
    """A safetensors file of tensors by name, each its type, its shape and its bytes in pieces. Wide numbers come first."""
    header, end = {"__metadata__": metadata}, 0
    order = sorted(tensors, key=lambda name: (-int(re.sub(r"\D", "", tensors[name][0]) or 8), name))
    for name in order:
        word, shape, buffers = tensors[name]
        begin, end = end, end + sum(map(len, buffers))
        header[name] = {"dtype": word, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(file, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            out.writelines(tensors[name][2])


def read_tensors(file):
    """The tensors of a file as `write_tensors` takes them."""
    data = file.read_bytes()
    first = 8 + struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:first])
    del header["__metadata__"]
    return {
        name: (entry["dtype"], entry["shape"], [data[slice(*(first + offset for offset in entry["data_offsets"]))]])
        for name, entry in header.items()
    }
