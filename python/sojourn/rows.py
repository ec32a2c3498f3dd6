"""Made-up rows, the same anywhere: for tests, and for checks of a task without its data."""

import torch

from sojourn import seeds
from sojourn.canonical import DTYPES

UNITS = float(1 << 24)


def made_up(data, rows, seed, tokens=None):
    """Columns of `rows` rows as `data` describes them.

    All numbers come from the stream `seeds::stream("made-up-rows", [seed])`, one draw of 32 bits each: first all of `x`, row by
    row, then all of `y`. A number of `x` is the draw's upper 24 bits over 2^24; but with `tokens = (first, vocabulary)`, the
    numbers of each row from `first` on are the draw modulo `vocabulary`. A class of `y` is the draw modulo `classes`, a number
    of `y` is as one of `x`.
    """
    shape = [rows, *data["x"]["shape"]]
    count = torch.Size(shape).numel()
    words = torch.from_numpy(seeds.stream("made-up-rows", [seed], count + rows).astype("int64"))
    x, y = words[:count].reshape(rows, -1), words[count:]
    numbers = units(x)
    if tokens:
        first, vocabulary = tokens
        numbers[:, first:] = (x[:, first:] % vocabulary).float()
    labels = y % data["classes"] if data.get("classes") else units(y)
    return {"x": numbers.reshape(shape).to(DTYPES[data["x"]["dtype"]]), "y": labels.to(DTYPES[data["y"]["dtype"]])}


def units(words):
    """Numbers in [0, 1) from words of 32 bits."""
    return ((words >> 8).double() / UNITS).float()


def batches(columns, size):
    """Batches of `size` rows in order; the last has those that remain."""
    rows = len(columns["x"])
    for first in range(0, rows, size):
        yield {name: column[first : first + size] for name, column in columns.items()}
