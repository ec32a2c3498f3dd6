"""What every trainer has to compute to the last bit: seeds, orders of rows, first weights, files. numpy alone.

Each function names the file of `protocol/vectors` that shows it in numbers; `docs/internals/wire.md` says it in words.
"""

import hashlib
import json
import math
import os
import struct
from collections import namedtuple

import numpy as np

MASK = (1 << 64) - 1

# Seeds and streams of chance: seeds.json.


def derive(domain, *parts):
    """A seed of 64 bits for `domain`, from the integers that name the thing it is for."""
    numbers = b"".join(struct.pack("<Q", part) for part in parts)
    digest = hashlib.sha256(domain.encode() + b"\0" + numbers).digest()
    return int.from_bytes(digest[:8], "little")


def batch_seed(hop_seed, batch):
    """The seed that is set before a batch, for dropout and augmentation: 63 bits."""
    return derive("batch", hop_seed, batch) >> 1


def stream(seed, first_block, blocks):
    """ChaCha with 8 rounds from a block on, 16 words of 32 bits for each block: an array of `uint32`.

    The key is the seed of 64 bits as `rand_core` expands it; the nonce is 0, the counter has 64 bits.
    """
    counter = np.arange(first_block, first_block + blocks, dtype=np.uint64)
    low, high = (counter & np.uint64(0xFFFFFFFF)).astype(np.uint32), (counter >> np.uint64(32)).astype(np.uint32)
    words = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *key_of(seed)]
    begin = [np.full(blocks, word, np.uint32) for word in words] + [low, high, 0 * low, 0 * low]
    x = [word.copy() for word in begin]
    with np.errstate(over="ignore"):
        for _ in range(4):
            for n in range(4):
                quarter_round(x, n, 4 + n, 8 + n, 12 + n)
            for n in range(4):
                quarter_round(x, n, 4 + (n + 1) % 4, 8 + (n + 2) % 4, 12 + (n + 3) % 4)
        return np.stack([a + b for a, b in zip(x, begin)], 1).reshape(-1)


def key_of(seed):
    """Eight words from PCG32, whose state is the seed."""
    words = []
    for _ in range(8):
        seed = (seed * 6364136223846793005 + 11634580027462260723) & MASK
        mixed, turn = (((seed >> 18) ^ seed) >> 27) & 0xFFFFFFFF, seed >> 59
        words.append(((mixed >> turn) | (mixed << (-turn & 31))) & 0xFFFFFFFF)
    return words


def quarter_round(x, a, b, c, d):
    for first, second in [(16, 12), (8, 7)]:
        x[a] += x[b]
        x[d] = rotate(x[d] ^ x[a], first)
        x[c] += x[d]
        x[b] = rotate(x[b] ^ x[c], second)


def rotate(words, bits):
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def words_of(seed):
    """The endless stream of a seed, as integers."""
    first, blocks = 0, 64
    while True:
        yield from stream(seed, first, blocks).tolist()
        first += blocks


def below(words, bound):
    """An unbiased integer in `range(bound)`: draws from the incomplete last range are thrown away."""
    zone = 0xFFFFFFFF - (0xFFFFFFFF - bound + 1) % bound
    while (draw := next(words)) > zone:
        pass
    return draw % bound


# Orders of rows: row-orders.json.


def batches(rows, batch_size):
    """Batches in `rows` rows; the last may be smaller."""
    return -(-rows // batch_size)


def pass_seed(hop_seed, number):
    """The seed of one of a hop's passes over its shard; that of the first is the hop's."""
    return derive("pass", hop_seed, number) if number else hop_seed


def row_order(seed, rows):
    """The order in which a pass visits its shard's rows: Fisher and Yates' permutation."""
    words, order = words_of(derive("row-order", seed)), list(range(rows))
    for last in range(rows - 1, 0, -1):
        other = below(words, last + 1)
        order[last], order[other] = order[other], order[last]
    return order


def balanced_rows(hop_seed, labels):
    """As many rows as there are labels, with replacement: each draw takes a class, then one of its rows."""
    by_class = {}
    for row, label in enumerate(labels):
        by_class.setdefault(int(label), []).append(row)
    classes = [by_class[label] for label in sorted(by_class)]
    words = words_of(derive("row-order", hop_seed))

    def draw():
        rows = classes[below(words, len(classes))]
        return rows[below(words, len(rows))]

    return [draw() for _ in labels]


# First weights: initial-weights.json.


def uniform_weights(seed, index, shape, fan_in):
    """The first numbers of the parameter with this index, in order of computation: uniform in ±1/sqrt(fan_in).

    Each parameter has a stream of its own. 24 random bits make a number in double precision, rounded once at the end.
    """
    count = math.prod(shape)
    words = stream(derive("weights", seed, index), 0, batches(count, 16))[:count]
    unit = (words >> np.uint32(8)).astype(np.float64) / float(1 << 24)
    return ((2.0 * unit - 1.0) * (1.0 / math.sqrt(fan_in))).astype(np.float32).reshape(shape)


# The tensor `lineage`: lineages.json.


def lineage_numbers(hop_seed, trial, position):
    """Which hop of which trial made a checkpoint, and where it stands. Seeds keep their bits, so the large are negative."""
    signed = [number - (1 << 64) if number >> 63 else number for number in (hop_seed, position["step"])]
    return [signed[0], trial, position["epoch"], position["shard"], position["batch"], signed[1]]


# Canonical files: safetensors.json, shards.json, checkpoints.json.

Tensor = namedtuple("Tensor", "dtype shape data")

SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8}
NUMPY = {"U8": "u1", "F32": "<f4", "I64": "<i8"}


class NotCanonical(ValueError):
    """The bytes aren't a canonical file."""


def tensor_of(array):
    """A tensor with the numbers of an array of `uint8`, `float32` or `int64`."""
    word = next(word for word, kind in NUMPY.items() if np.dtype(kind) == array.dtype)
    return Tensor(word, list(array.shape), np.ascontiguousarray(array, NUMPY[word]).tobytes())


def array_of(tensor):
    """The numbers of a tensor, which can't be written to."""
    return np.frombuffer(tensor.data, NUMPY[tensor.dtype]).reshape(tensor.shape)


def header_of(tensors):
    """A file's first bytes: the length of the header; JSON without spaces, by names in the order of their bytes, padded with
    spaces to eight bytes."""
    entries, end = {}, 0
    for name in sorted(tensors, key=lambda name: name.encode()):
        dtype, shape = tensors[name][:2]
        begin, end = end, end + math.prod(shape) * SIZES[dtype]
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def encode(tensors):
    """The canonical file of tensors by name: equal tensors give equal bytes, whoever writes them."""
    names = sorted(tensors, key=lambda name: name.encode())
    return header_of(tensors) + b"".join(tensors[name].data for name in names)


def decode(data):
    """The tensors of a canonical file by name. Any other file is refused, even where other readers would take it."""
    try:
        (length,) = struct.unpack_from("<Q", data)
        at = 8 + length
        tensors = {}
        for name, entry in json.loads(data[8:at].decode()).items():
            begin, end = entry["data_offsets"]
            tensors[name] = Tensor(entry["dtype"], entry["shape"], data[at + begin : at + end])
        is_same = encode(tensors) == data
    except (ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise NotCanonical(f"not a canonical file: {error}") from error
    if not is_same:
        raise NotCanonical("not a canonical file: other bytes than its tensors would give")
    return tensors


def write_file(path, data):
    """Writes a file that appears whole, by a rename; gives the blob's name and size."""
    with open(f"{path}.tmp", "wb") as file:
        file.write(data)
    os.replace(f"{path}.tmp", path)
    return {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
