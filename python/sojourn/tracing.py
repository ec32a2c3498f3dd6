"""Traces a task's methods with `torch.export`, for any number of rows."""

import inspect
from types import SimpleNamespace

import torch
from torch import nn
from torch.export.graph_signature import InputKind

from sojourn.canonical import DTYPES
from sojourn.nodes import NodeList, moved_tensors, written_arguments
from sojourn.refusal import Refusal, explain, within
from sojourn.torch import Batch
from sojourn.watch import check_python_state, python_state, watch_rows, watched

# Rows of the examples that are traced: any number above 1 does.
EXAMPLE_ROWS = 7


def columns(data):
    """The descriptions of the columns that a batch has, by name."""
    return {name: data[name] for name in ("x", "y") if name in data}


class Call(nn.Module):
    """A method of a task as a module's `forward`.

    `seen` gets what it gives as `value`, and what it demands of the number of rows as `guards`.
    """

    def __init__(self, task, method, folder):
        super().__init__()
        self.task = task
        self.method = method
        self.folder = folder
        self.seen = SimpleNamespace(value=None, guards=None)

    def forward(self, *columns):
        self.seen.guards = watch_rows(columns[0].shape[0], self.folder)
        before = python_state(self.task)
        value = getattr(self.task, self.method)(Batch(*columns))
        check_python_state(before, python_state(self.task), self.method)
        if isinstance(value, dict):
            value = {name: as_tensor(part) for name, part in value.items()}
        self.seen.value = value
        return list(value.values()) if isinstance(value, dict) else value


def as_tensor(value):
    """A number, such as `batch.rows`, as a tensor; anything else as it is."""
    if isinstance(value, (int, float, torch.SymInt)) and not isinstance(value, bool):
        return torch.full((), value, dtype=torch.float32)
    return value


def traced(task, model, method, data, folder, training, with_y=True):
    """The list of nodes of a task's method, what the method gave, and the arguments of its outputs."""
    task.train(training)
    call = Call(task, method, folder)
    examples = tuple(example(column) for name, column in columns(data).items() if with_y or name == "x")
    program = export_program(call, examples)
    nodes = NodeList(program, list(input_arguments(program, model)), folder)
    check_moved(nodes, model, method, training)
    for output in nodes.outputs:
        if not isinstance(output, dict) or "n" not in output:
            raise Refusal(f"A result of {method} isn't computed from the batch.")
    return nodes, call.seen.value, nodes.outputs


def check_moved(nodes, model, method, training):
    """Refuses nodes that move what isn't theirs: parameters, the batch, and buffers where nothing is trained."""
    for name in moved_tensors(nodes):
        if name in model.parameters():
            raise Refusal(f"{method} changes the parameter {name} itself.", hint="Only the optimiser may move parameters.")
        if not training:
            hint = "Change buffers in the loss alone: `if self.training:`."
            raise Refusal(f"{method} changes {name}, though it doesn't train.", hint=hint)
    for spoken, source in zip(nodes.nodes, nodes.sources):
        if any("c" in argument for argument in written_arguments(spoken, source.target)):
            hint = "Compute a new tensor: x = batch.x * 2 instead of batch.x.mul_(2)."
            raise Refusal(f"{method} changes the batch itself.", *nodes.place_of(source), hint=hint)


def example(column):
    """Rows of zeros as a column has them."""
    return torch.zeros(EXAMPLE_ROWS, *column["shape"], dtype=DTYPES[column["dtype"]])


def export_program(call, examples):
    """A program of `torch.export` that holds for any number of rows."""
    rows = torch.export.Dim("rows", min=2)
    shapes = {"columns": tuple({0: rows} for _ in examples)}
    try:
        with watched(call.folder):
            return torch.export.export(call, examples, dynamic_shapes=shapes, strict=False)
    except Exception as error:
        refusal = explain(error, call.folder, call.method)
        if refusal.file is None and call.seen.guards:
            refusal.file, refusal.line = call.seen.guards.place
        if refusal.file is None:
            refusal.file, refusal.line = place_of_method(call.task, call.method, call.folder)
        raise refusal from error


def place_of_method(task, method, folder):
    """File and line where a task's method begins, if that is in the user's code."""
    code = inspect.unwrap(getattr(type(task), method)).__code__
    return (code.co_filename, code.co_firstlineno) if within(code.co_filename, folder) else (None, None)


def input_arguments(program, model):
    """The argument that each input of a program stands for."""
    names = iter(["x", "y"])
    for spec in program.graph_signature.input_specs:
        if spec.kind == InputKind.USER_INPUT:
            yield {"c": next(names)}
            continue
        name = spec.target.removeprefix("task.")
        tensor = program.state_dict.get(spec.target)
        yield model.argument(name, tensor if tensor is not None else program.constants[spec.target])
