"""Canonical safetensors: tensors in the order of their names' bytes, no metadata, no gaps.

So equal tensors give equal bytes.
"""

import ctypes
import json
import struct

import torch

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
WORDS = {dtype: word for word, dtype in DTYPES.items()}


def encode(tensors):
    """The bytes of a file with these tensors, a dict by name."""
    header, parts, end = {}, [], 0
    for name in sorted(tensors, key=lambda name: name.encode()):
        data = tensor_bytes(tensors[name])
        begin, end = end, end + len(data)
        header[name] = {
            "dtype": WORDS[tensors[name].dtype],
            "shape": list(tensors[name].shape),
            "data_offsets": [begin, end],
        }
        parts.append(data)
    text = compact_json(header)
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *parts])


def decode(data):
    """The tensors of a file's bytes, by name."""
    (length,) = struct.unpack_from("<Q", data)
    first = 8 + length
    tensors = {}
    for name, entry in json.loads(data[8:first]).items():
        begin, end = entry["data_offsets"]
        part = bytearray(data[first + begin : first + end])
        dtype = DTYPES[entry["dtype"]]
        flat = torch.frombuffer(part, dtype=dtype) if part else torch.empty(0, dtype=dtype)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def tensor_bytes(tensor):
    """The numbers of a tensor, row by row, little-endian."""
    tensor = tensor.detach().cpu().contiguous()
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()) if tensor.numel() else b""


def compact_json(value):
    """JSON in UTF-8 without spaces; keys stay in their order."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
