"""Finds indices out of range, which tracing doesn't see: a task is tried on rows with the largest numbers of its data.

Such rows are made up, and may be nonsense for the task. So an error counts only where it is about an index, and where the task
gets further once a column has a small number in place of the largest one that its description allows.
"""

import contextlib
import re

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from sojourn.canonical import DTYPES
from sojourn.refusal import Refusal, place
from sojourn.tracing import batch_of, columns, has_label, place_of_method
from sojourn.watch import without_fast_attention

ROWS = 2
# Of floating-point numbers, whose bounds aren't known.
NEAR_ONE = 0.999
# What PyTorch says of an index, a class or a target that is too large or too small.
OUT_OF_RANGE = re.compile(r"out of (range|bounds)|not in the valid range|Class values must be|Target values should be")
# Tasks of which a row costs more aren't tried: operations, and numbers of one tensor.
MOST_FLOPS = 20_000_000_000
MOST_NUMBERS = 1 << 26


def check_indices(task, model, methods, data, folder):
    """Refuses a task of which an index is out of range for numbers that `data` allows; leaves its buffers as they are.

    `methods` says by the name of a method whether it trains.
    """
    with torch.no_grad(), torch.random.fork_rng(devices=[]), without_fast_attention(), unchanged_buffers(model):
        for method, training in methods.items():
            task.train(training)
            check_method(task, method, data, folder)


def is_cheap(summary):
    """Can a task be tried in seconds, by what its graph costs?"""
    return summary["flops_per_row"] <= MOST_FLOPS and summary["widest"] <= MOST_NUMBERS


def check_method(task, method, data, folder):
    """As `check_indices`, of one method."""
    counts = value_counts(data)
    error, steps = attempt(task, method, largest_rows(data, counts), data)
    if not isinstance(error, (IndexError, RuntimeError, ValueError)) or not OUT_OF_RANGE.search(str(error)):
        return
    guilty = [name for name in counts if attempt(task, method, largest_rows(data, counts, lowered=name), data)[1] > steps]
    if guilty:
        numbers = ", ".join(f"{name} has numbers up to {counts[name] - 1}" for name in guilty)
        file, line = place(error, folder)
        if file is None:
            file, line = place_of_method(task, method, folder)
        message = f"{method} has an index or a class out of range: {numbers}."
        raise Refusal(message, file, line, size_hint(guilty[0], data), f"{type(error).__name__}: {error}")


def value_counts(data):
    """How many whole numbers from 0 on a column may have, by name: of those columns of which that is known."""
    described = columns(data)
    counts = {name: column["values"] for name, column in described.items() if column.get("values")}
    counts |= {column["length"]: column["shape"][0] + 1 for column in described.values() if "length" in column}
    return {**counts, "y": data["classes"]} if has_label(data) and data.get("classes") else counts


def largest_rows(data, counts, lowered=None):
    """Columns of two rows with the largest number of each column in `counts`; but `lowered` has 1, or 0 of two values.

    The second row has what occurs in any data: the class 0, and sequences of length 1, which end in zeros.
    """
    made = {}
    for name, column in columns(data).items():
        numbers = torch.zeros(ROWS, *column["shape"], dtype=DTYPES[column["dtype"]])
        if name == lowered:
            numbers.fill_(max(0, min(1, counts[name] - 2)))
        elif name in counts:
            numbers.fill_(counts[name] - 1)
        elif numbers.is_floating_point():
            numbers[1] = NEAR_ONE
        made[name] = numbers
    for name, column in columns(data).items():
        if name != lowered and "length" in column:
            made[name][1, 1:] = 0
            made[column["length"]][1] = 1
        elif name != lowered and name == "y" and has_label(data):
            made[name][1] = 0
    return made


def attempt(task, method, rows, data):
    """What a method raises for rows, or None; and how many operators it got through."""
    if has_label(data) and method == "predict":
        rows = {name: column for name, column in rows.items() if name != "y"}
    with Steps() as steps:
        try:
            getattr(task, method)(batch_of(data, rows))
        except Exception as error:
            return error, steps.done
    return None, steps.done


class Steps(TorchDispatchMode):
    """Counts the operators that are done in its context."""

    def __init__(self):
        super().__init__()
        self.done = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        self.done += 1
        return result


def size_hint(name, data):
    """Where the size comes from that a column's numbers index."""
    if has_label(data):
        return "Take the size from the data: nn.Linear(..., data.classes)."
    for text, column in columns(data).items():
        if column.get("length") == name:
            return f"Take the size from the data: nn.Embedding(data.{text}.shape[0] + 1, ...)."
    return f"Take the size from the data: nn.Embedding(data.{name}.values, ...), nn.Linear(..., data.{name}.values)."


@contextlib.contextmanager
def unchanged_buffers(model):
    """Undoes what moves buffers meanwhile: other configurations may share the modules that have them."""
    buffers = [tensor.detach() for tensor in model.tensors.values() if not tensor.requires_grad]
    before = [tensor.clone() for tensor in buffers]
    try:
        yield
    finally:
        for tensor, numbers in zip(buffers, before):
            if not torch.equal(tensor, numbers):
                tensor.copy_(numbers)
