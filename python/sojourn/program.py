"""From a task to the bytes of its graph."""

import random
import re
import sys
from types import SimpleNamespace

import torch
from torch import nn

from sojourn import costs, index_check
from sojourn.canonical import DTYPES, compact_json, encode
from sojourn.description import Column, Named, Values
from sojourn.model import Model
from sojourn.refusal import Refusal, explain
from sojourn.starts import StartRecorder, given
from sojourn.torch import Task
from sojourn.tracing import (
    column_names,
    columns,
    count_rows_by_what_is_used,
    has_label,
    of_trial,
    place_of_method,
    traced,
)

FORMAT = 1
# `setup` runs with this seed, so that equal models have equal numbers where they are given.
SETUP_SEED = 0
MOST_SUMS = 64
# Numbers in all arrays of an evaluation together.
MOST_NUMBERS = 65_536
MOST_DIMENSIONS = 16
# Sums that are one number, whatever the model.
NUMBERS = ("loss", "accuracy")
# As `metric = "valid/NAME"` takes them.
SUM_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
SEVERAL_STAGES = "Stages are names of attributes: `stages = [\"discriminator\", \"generator\"]`."


class Exported:
    """A graph file's bytes (`data`), and a `summary` of it: parameters, nodes, tensors, flops_per_row, widest."""

    def __init__(self, data, summary):
        self.data = data
        self.summary = summary


def task_class(entry):
    """The class of an entry: itself, or one around a function that returns a Keras model."""
    if isinstance(entry, type) and issubclass(entry, Task):
        return entry
    if isinstance(entry, type) or not callable(entry):
        hint = "Derive it from sojourn.torch.Task, or name a function that returns a compiled keras.Model."
        raise Refusal(f"{getattr(entry, '__name__', entry)} is no Task.", hint=hint)
    from sojourn import keras

    return keras.task_of(entry)


def export_task(entry, config, data, operators, folder, initial):
    """The `Exported` of a class derived from `Task`, or of a function that returns a Keras model.

    `config` is a dict, or `Values` that are asked afterwards what was read of them. `initial` is as in requests.
    """
    data = of_trial(data, config)
    task, recorder = set_up(task_class(entry), config, data, folder)
    model = Model(task, given if initial == "given" else recorder.start)
    train = [train_stage(task, model, stage, data, folder) for stage in (task.stages or [None])]
    evaluate = evaluation(task, model, data, folder)
    predict = prediction(task, model, data, folder)
    lists = [stage.list for stage in train] + [evaluate.list] + ([predict.list] if predict else [])
    if not has_label(data):
        count_rows_by_what_is_used(lists)
    if operators is not None:
        for nodes in lists:
            nodes.check_operators(set(operators))
    graph = {
        "graph": FORMAT,
        "torch": torch.__version__.partition("+")[0],
        "columns": written_columns(data, lists),
        "tensors": model.described(lists),
        "train": [stage.json for stage in train],
        "evaluate": evaluate.json,
    }
    if predict:
        graph["predict"] = predict.json
    text = compact_json(graph)
    tensors = {"graph": torch.frombuffer(bytearray(text), dtype=torch.uint8), **model.shipped(graph["tensors"])}
    exported = Exported(encode(tensors), summary(graph, train, lists))
    if index_check.is_cheap(exported.summary):
        methods = {**{method_of(stage): True for stage in task.stages or [None]}, "evaluate": False}
        if predict:
            methods["predict"] = False
        index_check.check_indices(task, model, methods, data, folder)
    return exported


def method_of(stage):
    """The name of the method that gives a stage's loss."""
    return "loss" if stage is None else f"loss_{stage}"


def written_columns(data, lists):
    """The graph's `columns`: of rows with a label all, of others those that the lists of nodes use, and at least one."""
    described = columns(data)
    if not has_label(data):
        used = {name for nodes in lists for name in column_names([nodes.nodes, nodes.outputs])}
        described = {name: described[name] for name in described if name in (used or [min(described)])}
    return {name: [column["dtype"], list(column["shape"])] for name, column in described.items()}


def summary(graph, train, lists):
    """What a graph has and costs; its costs are those of the training step's forward pass."""
    kept = [tensor for tensor in graph["tensors"] if tensor["role"] != "constant"]
    sources = [node for stage in train for node in stage.list.sources]
    return {
        "parameters": sum(product(t["shape"]) for t in kept if t["role"] == "parameter"),
        "nodes": sum(len(nodes.nodes) for nodes in lists),
        "tensors": kept,
        "flops_per_row": costs.flops_per_row(sources),
        "widest": costs.widest(sources),
    }


def product(shape):
    return torch.Size(shape).numel()


def set_up(task_class, config, data, folder):
    """A task after its `setup`, and the recorder that saw how its tensors were filled."""
    described = {
        name: Column(DTYPES[column["dtype"]], column["shape"], column.get("values")) for name, column in columns(data).items()
    }
    described |= {name: data.get(name) for name in (("classes", "rows") if has_label(data) else ("rows",))}
    seed_all(SETUP_SEED)
    recorder = StartRecorder()
    task = task_class()
    try:
        with recorder:
            task.setup(config if isinstance(config, Values) else Values("c", config), Named("data", described))
    except Exception as error:
        raise explain(error, folder, "setup") from error
    for method in ("optimizer", "configure_optimizers"):
        if hasattr(task_class, method):
            note = f"note: {task_class.__name__}.{method} is left aside; the optimiser is [training] of the job file"
            print(note, file=sys.stderr)
    return task, recorder


def seed_all(seed):
    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def train_stage(task, model, stage, data, folder):
    """One stage of a training step: the JSON, and its list of nodes."""
    method = method_of(stage)
    if stage is not None and not (hasattr(task, stage) and hasattr(task, method)):
        raise Refusal(f"The stage {stage!r} needs an attribute {stage} and a method {method}.", hint=SEVERAL_STAGES)
    nodes, value, loss = traced(task, model, method, data, folder, training=True)
    place = place_of_method(task, method, folder)
    check_number(value, f"{method} gives", "Give the mean over rows.", place)
    if not value.requires_grad:
        raise Refusal(f"The result of {method} doesn't depend on any parameter.", *place)
    json = {"nodes": nodes.nodes, "loss": loss[0]}
    moves = moved_by(task, model, stage)
    if moves != model.parameters():
        json["moves"] = moves
    return SimpleNamespace(json=json, list=nodes)


def moved_by(task, model, stage):
    """The names of the parameters that a stage moves: those of its attribute, or all."""
    if stage is None:
        return model.parameters()
    attribute = getattr(task, stage)
    moved = attribute.parameters() if isinstance(attribute, nn.Module) else [attribute]
    names = {model.name_of(tensor) for tensor in moved}
    return [name for name in model.parameters() if name in names]


def evaluation(task, model, data, folder):
    """The graph's `evaluate`, and its list of nodes."""
    nodes, sums, arguments = traced(task, model, "evaluate", data, folder, training=False)
    place = place_of_method(task, "evaluate", folder)
    if not isinstance(sums, dict) or "loss" not in sums or len(sums) > MOST_SUMS:
        hint = 'Return sums over the rows: {"loss": ..., "accuracy": ...}.'
        raise Refusal(f"evaluate must give a dict of at most {MOST_SUMS} sums, `loss` among them.", *place, hint=hint)
    shapes = {}
    for name, value in sums.items():
        if not isinstance(name, str) or not SUM_NAME.fullmatch(name):
            hint = "Names of sums have letters, digits, _, - and ., at most 64 of them."
            raise Refusal(f"evaluate gives a sum that is called {name!r}.", *place, hint=hint)
        if name not in NUMBERS and is_array(value):
            shapes[name] = list(value.shape)
        else:
            check_number(value, f"evaluate gives for {name!r}", "Give the sum over the rows.", place)
    numbers = sum(product(shape) for shape in shapes.values())
    if numbers > MOST_NUMBERS:
        hint = f"All arrays together have at most {MOST_NUMBERS}: a confusion matrix of 256 classes."
        raise Refusal(f"evaluate gives arrays of {numbers} numbers.", *place, hint=hint)
    json = {"nodes": nodes.nodes, "sums": dict(zip(sums, arguments))}
    if shapes:
        json["shapes"] = shapes
    return SimpleNamespace(json=json, list=nodes)


def is_array(value):
    """Can a sum be this array: a tensor of numbers whose shape is the same for any number of rows?"""
    return (
        isinstance(value, torch.Tensor)
        and 0 < value.dim() <= MOST_DIMENSIONS
        and all(isinstance(size, int) and size > 0 for size in value.shape)
        and not value.is_complex()
    )


def prediction(task, model, data, folder):
    """The graph's `predict` and its list of nodes, or None where the task says nothing of it."""
    is_default = type(task).predict is Task.predict
    if is_default and len(list(task.children())) != 1:
        return None
    try:
        nodes, value, arguments = traced(task, model, "predict", data, folder, training=False, with_label=False)
    except Refusal:
        if is_default:
            return None
        raise
    if not isinstance(value, torch.Tensor) or value.dim() == 0 or costs.with_one_row(value.shape[0]) != 1:
        place = place_of_method(task, "predict", folder)
        raise Refusal("predict must give one tensor with a row for each row of the batch.", *place)
    return SimpleNamespace(json={"nodes": nodes.nodes, "outputs": arguments[0]}, list=nodes)


def check_number(value, what, hint, place):
    """Refuses what isn't one number; `what` begins the sentence, `place` is a file and line."""
    if isinstance(value, torch.Tensor) and value.dim() == 0:
        return
    found = type(value).__name__
    if isinstance(value, torch.Tensor):
        sizes = ["rows" if isinstance(size, torch.SymInt) else str(size) for size in value.shape]
        found = f"a tensor of shape [{', '.join(sizes)}]"
    raise Refusal(f"{what} {found} instead of one number.", *place, hint=hint)
