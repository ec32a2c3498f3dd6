"""Seeds and first numbers, the same as those of protocol/src/seeds.rs and protocol/model/src/initial.rs."""

import hashlib
import math
import struct

import numpy as np

MASK = (1 << 64) - 1
PCG_MULTIPLIER = 6364136223846793005
PCG_INCREMENT = 11634580027462260723
CHACHA_CONSTANTS = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]
WORDS_OF_A_BLOCK = 16
UNITS = float(1 << 24)


def derive(domain, *parts):
    """A seed of 64 bits for `domain`, from the integers that name the thing it is for."""
    numbers = b"".join(struct.pack("<Q", part & MASK) for part in parts)
    digest = hashlib.sha256(domain.encode() + b"\0" + numbers).digest()
    return int.from_bytes(digest[:8], "little")


def batch(hop_seed, number):
    """The seed that is set before a batch: 63 bits."""
    return derive("batch", hop_seed, number) >> 1


def row_order(hop_seed, rows):
    """The order in which a hop visits its shard's rows: a permutation of `range(rows)`."""
    words = iter(Words(derive("row-order", hop_seed), rows))
    order = list(range(rows))
    for last in range(rows - 1, 0, -1):
        other = below(words, last + 1)
        order[last], order[other] = order[other], order[last]
    return order


def below(words, bound):
    """An unbiased integer in `range(bound)`, by rejection."""
    zone = 0xFFFFFFFF - (0xFFFFFFFF - bound + 1) % bound
    while True:
        draw = next(words)
        if draw <= zone:
            return draw % bound


def stream(domain, parts, words):
    """The first `words` numbers of 32 bits of a stream of chance: an array of `uint32`."""
    return chacha8(derive(domain, *parts), 0, words)


def initial_values(seed, index, start, shape):
    """The first numbers of the tensor with this index among the parameters, then the buffers: an array of `float32`."""
    count = math.prod(shape)
    if start == "zeros" or start == "ones":
        return np.full(shape, float(start == "ones"), np.float32)
    if "constant" in start:
        return np.full(shape, start["constant"], np.float32)
    if "normal" in start:
        mean, deviation = start["normal"]
        bits = (stream("weights", [seed, index], 2 * count) >> 8).astype(np.float64)
        radius = np.sqrt(-2.0 * np.log((bits[0::2] + 1.0) / UNITS))
        values = mean + deviation * radius * np.cos(2.0 * math.pi * (bits[1::2] / UNITS))
        return values.astype(np.float32).reshape(shape)
    unit = (stream("weights", [seed, index], count) >> 8).astype(np.float64) / UNITS
    if "fan_in" in start:
        values = (2.0 * unit - 1.0) * (1.0 / math.sqrt(start["fan_in"]))
    else:
        low, high = start["uniform"]
        values = low + unit * (high - low)
    return values.astype(np.float32).reshape(shape)


class Words:
    """The endless stream of `ChaCha8Rng::seed_from_u64(seed)`, as integers; `about` says how many are likely needed."""

    def __init__(self, seed, about):
        self.seed = seed
        self.blocks = about // WORDS_OF_A_BLOCK + 1

    def __iter__(self):
        first = 0
        while True:
            yield from chacha8(self.seed, first, self.blocks * WORDS_OF_A_BLOCK).tolist()
            first += self.blocks


def chacha8(seed, first_block, words):
    """Outputs of `ChaCha8Rng::seed_from_u64(seed)` from a block on, all blocks at once."""
    blocks = -(-words // WORDS_OF_A_BLOCK)
    counter = np.arange(first_block, first_block + blocks, dtype=np.uint64)
    low, high = (counter & np.uint64(0xFFFFFFFF)).astype(np.uint32), (counter >> np.uint64(32)).astype(np.uint32)
    zeros = np.zeros(blocks, np.uint32)
    fixed = [np.full(blocks, word, np.uint32) for word in [*CHACHA_CONSTANTS, *key_of(seed)]]
    begin = [*fixed, low, high, zeros, zeros]
    state = [word.copy() for word in begin]
    with np.errstate(over="ignore"):
        for _ in range(4):
            for column in range(4):
                quarter_round(state, column, 4 + column, 8 + column, 12 + column)
            for column in range(4):
                quarter_round(state, column, 4 + (column + 1) % 4, 8 + (column + 2) % 4, 12 + (column + 3) % 4)
        sums = [a + b for a, b in zip(state, begin)]
    return np.stack(sums, 1).reshape(-1)[:words]


def key_of(seed):
    """The key that `rand_core` expands a seed of 64 bits to, with PCG32: eight words."""
    words = []
    for _ in range(8):
        seed = (seed * PCG_MULTIPLIER + PCG_INCREMENT) & MASK
        mixed = (((seed >> 18) ^ seed) >> 27) & 0xFFFFFFFF
        turn = seed >> 59
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
