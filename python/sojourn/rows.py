"""Rows to train and test with: made-up ones, the same anywhere, and those of shards with columns by name."""

import torch

from sojourn import seeds
from sojourn.canonical import DTYPES
from sojourn.tracing import columns, has_label

UNITS = float(1 << 24)


def made_up(data, rows, seed, tokens=None):
    """Columns of `rows` rows as `data` describes them.

    All numbers come from the stream `seeds::stream("made-up-rows", [seed])`, one draw of 32 bits each.

    Of rows with a label: first all of `x`, row by row, then all of `y`. A number of `x` is the draw's upper 24 bits over 2^24;
    but with `tokens = (first, vocabulary)`, the numbers of each row from `first` on are the draw modulo `vocabulary`. A class of
    `y` is the draw modulo `classes`, a number of `y` is as one of `x`.

    Of columns by name: one column after another in the order of their names' bytes, each row by row in the shape that a batch
    has. A number of a float column is the draw's upper 24 bits over 2^24, rounded to the column's type; any other is the draw
    modulo the column's `values`; without them modulo 256 in a `U8` and 2 elsewhere. But a column that has the lengths of another
    is 1 plus the draw modulo the longest length; the places of the other beyond them are drawn, and are 0 in spite of it.
    """
    if has_label(data):
        return made_up_with_label(data, rows, seed, tokens)
    described = columns(data)
    counts = {name: torch.Size([rows, *column["shape"]]).numel() for name, column in described.items()}
    words = torch.from_numpy(seeds.stream("made-up-rows", [seed], sum(counts.values())).astype("int64"))
    drawn = dict(zip(described, words.split(list(counts.values()))))
    longest = {column["length"]: column["shape"][0] for column in described.values() if "length" in column}
    made = {}
    for name, column in described.items():
        dtype = DTYPES[column["dtype"]]
        if name in longest:
            numbers = 1 + drawn[name] % longest[name]
        elif dtype.is_floating_point:
            numbers = units(drawn[name])
        else:
            numbers = drawn[name] % (column.get("values") or (256 if dtype == torch.uint8 else 2))
        made[name] = numbers.reshape([rows, *column["shape"]]).to(dtype)
    for name, column in described.items():
        if "length" in column:
            made[name][~is_there(made[column["length"]], column["shape"][0])] = 0
    return made


def made_up_with_label(data, rows, seed, tokens):
    """As `made_up`, for `x` and `y`."""
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


def is_there(lengths, longest):
    """Which places of rows padded to `longest` are within the rows' `lengths`: `[rows, longest]`."""
    return torch.arange(longest) < lengths[:, None]


def of_shard(data, tensors):
    """What batches have of a shard's tensors: ragged rows padded, and windows cut to the trial's.

    A row that is cut gives several, which overlap by one token, one after another.
    """
    made = {}
    for name, column in ({} if has_label(data) else columns(data)).items():
        if "length" in column:
            ends = tensors[f"{name}.ends"]
            lengths = ends.diff(prepend=ends.new_zeros(1))
            made[name] = tensors[name].new_zeros(len(ends), *column["shape"])
            made[name][is_there(lengths, column["shape"][0])] = tensors[name]
            made[column["length"]] = lengths
        elif column.get("window"):
            (length,) = column["shape"]
            made[name] = tensors[name].unfold(1, length, length - 1).reshape(-1, length)
        elif name in tensors:
            made[name] = tensors[name]
    return made or tensors


def shard(data, columns_of_rows):
    """The tensors of a shard with these rows, columns by name as batches have them."""
    described = columns(data)
    tensors = {name: column for name, column in columns_of_rows.items() if name not in lengths_of(described)}
    for name, column in described.items():
        if "length" in column:
            lengths = columns_of_rows[column["length"]]
            tensors[name] = tensors[name][is_there(lengths, column["shape"][0])]
            tensors[f"{name}.ends"] = lengths.cumsum(0)
    return tensors


def lengths_of(described):
    """The names of the columns that have the lengths of others."""
    return {column["length"] for column in described.values() if "length" in column}


def batches(columns, size):
    """Batches of `size` rows in order; the last has those that remain."""
    rows = len(next(iter(columns.values())))
    for first in range(0, rows, size):
        yield {name: column[first : first + size] for name, column in columns.items()}
