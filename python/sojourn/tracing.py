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


def has_label(data):
    """Are the data rows of numbers with a label, `x` and `y`? Others have columns under names of their own."""
    return "columns" not in data


def columns(data):
    """The descriptions of the columns that a batch has, by name, in the order of their names."""
    if has_label(data):
        return {name: data[name] for name in ("x", "y") if name in data}
    return dict(sorted(data["columns"].items()))


def of_trial(data, config):
    """The description of the data in one trial: a column that is cut has the trial's `window` of tokens, and the one after."""
    if has_label(data):
        return data
    described = {
        name: {**column, "shape": [config["window"] + 1]} if column.get("window") else column
        for name, column in data["columns"].items()
    }
    return {**data, "columns": described}


def batch_of(data, columns):
    """What a task is given, from tensors by column."""
    return Batch(**columns, y=None) if has_label(data) and "y" not in columns else Batch(**columns)


class Call(nn.Module):
    """A method of a task as a module's `forward`, which takes the columns `names` of `data` in this order.

    `seen` gets what it gives as `value`, and what it demands of the number of rows as `guards`.
    """

    def __init__(self, task, method, data, names, folder):
        super().__init__()
        self.task = task
        self.method = method
        self.data = data
        self.names = names
        self.folder = folder
        self.seen = SimpleNamespace(value=None, guards=None)

    def forward(self, *columns):
        self.seen.guards = watch_rows(columns[0].shape[0], self.folder)
        before = python_state(self.task)
        value = getattr(self.task, self.method)(batch_of(self.data, dict(zip(self.names, columns))))
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


def traced(task, model, method, data, folder, training, with_label=True):
    """The list of nodes of a task's method, what the method gave, and the arguments of its outputs."""
    task.train(training)
    described = columns(data)
    if has_label(data) and not with_label:
        described.pop("y", None)
    call = Call(task, method, data, list(described), folder)
    program = export_program(call, tuple(map(example, described.values())))
    nodes = NodeList(program, list(input_arguments(program, model, call.names)), folder)
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


def column_names(value):
    """The names of the columns that an argument, a list or a node refers to."""
    if isinstance(value, dict):
        if isinstance(value.get("c"), str):
            yield value["c"]
        else:
            yield from column_names(list(value.values()))
    elif isinstance(value, list):
        for part in value:
            yield from column_names(part)


def count_rows_by_what_is_used(lists):
    """Takes the number of rows from a column that is used otherwise too, in the same list if there is one.

    So no column need be there for the number of rows alone.
    """
    used = [sorted({name for node in nodes.nodes if not counts_rows(node) for name in column_names(node)}) for nodes in lists]
    anywhere = sorted({name for names in used for name in names})
    for nodes, names in zip(lists, used):
        for node in filter(counts_rows, nodes.nodes):
            if (names or anywhere) and node["args"][0]["c"] not in names:
                node["args"] = [{"c": (names or anywhere)[0]}, 0]


def counts_rows(node):
    """Does a node give the number of rows, by a column?"""
    return node["op"] == "sym.size" and "c" in node["args"][0] and node["args"][1] == 0


def input_arguments(program, model, names):
    """The argument that each input of a program stands for; `names` are the columns that it takes."""
    names = iter(names)
    for spec in program.graph_signature.input_specs:
        if spec.kind == InputKind.USER_INPUT:
            yield {"c": next(names)}
            continue
        name = spec.target.removeprefix("task.")
        tensor = program.state_dict.get(spec.target)
        yield model.argument(name, tensor if tensor is not None else program.constants[spec.target])
