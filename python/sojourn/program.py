"""From a task to the bytes of its graph."""

import inspect
import itertools
import random
import sys
from types import SimpleNamespace

import torch
from torch import nn
from torch.export.graph_signature import InputKind

from sojourn import costs
from sojourn.canonical import DTYPES, WORDS, compact_json, encode, tensor_bytes
from sojourn.description import Column, Values
from sojourn.export import Exported
from sojourn.nodes import NodeList, tensor_names
from sojourn.refusal import Refusal, explain, within
from sojourn.starts import StartRecorder
from sojourn.torch import Batch, Task
from sojourn.watch import check_python_state, python_state, watch_rows, watched

FORMAT = 1
# Rows of the examples that are traced: any number above 1 does.
EXAMPLE_ROWS = 7
# `setup` runs with this seed, so that equal models have equal numbers where they are given.
SETUP_SEED = 0
LONGEST_NAME = 200
MOST_SUMS = 64
SEVERAL_STAGES = "Stages are names of attributes: `stages = [\"discriminator\", \"generator\"]`."


def task_class(entry):
    """The class of an entry: itself, or one around a function that returns a Keras model."""
    if isinstance(entry, type) and issubclass(entry, Task):
        return entry
    if isinstance(entry, type) or not callable(entry):
        hint = "Derive it from sojourn.torch.Task, or name a function that returns a compiled keras.Model."
        raise Refusal(f"{getattr(entry, '__name__', entry)} is no Task.", hint=hint)
    from sojourn import keras

    return keras.task_of(entry)


def export_task(entry, config, data, operators, folder):
    """The `Exported` of a class derived from `Task`, or of a function that returns a Keras model.

    `config` is a dict, or `Values` that are asked afterwards what was read of them.
    """
    task, recorder = set_up(task_class(entry), config, data, folder)
    model = Model(task, recorder)
    train = [train_stage(task, model, stage, data, folder) for stage in (task.stages or [None])]
    evaluate = evaluation(task, model, data, folder)
    predict = prediction(task, model, data, folder)
    lists = [stage.list for stage in train] + [evaluate.list] + ([predict.list] if predict else [])
    if operators is not None:
        for nodes in lists:
            nodes.check_operators(set(operators))
    graph = {
        "graph": FORMAT,
        "torch": torch.__version__.partition("+")[0],
        "columns": {name: [column["dtype"], list(column["shape"])] for name, column in columns(data).items()},
        "tensors": model.described(lists),
        "train": [stage.json for stage in train],
        "evaluate": evaluate.json,
    }
    if predict:
        graph["predict"] = predict.json
    text = compact_json(graph)
    tensors = {"graph": torch.frombuffer(bytearray(text), dtype=torch.uint8), **model.shipped(graph["tensors"])}
    return Exported(encode(tensors), summary(graph, train, lists))


def summary(graph, train, lists):
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


def columns(data):
    return {name: data[name] for name in ("x", "y") if name in data}


def set_up(task_class, config, data, folder):
    """A task after its `setup`, and the recorder that saw how its tensors were filled."""
    described = {name: Column(DTYPES[column["dtype"]], column["shape"]) for name, column in columns(data).items()}
    described |= {name: data.get(name) for name in ("classes", "rows", "total_steps")}
    seed_all(SETUP_SEED)
    recorder = StartRecorder()
    task = task_class()
    try:
        with recorder:
            task.setup(config if isinstance(config, Values) else Values("c", config), Values("data", described))
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


class Model:
    """The tensors of a task by name, in the order of registration; a tied one once, under its first name."""

    def __init__(self, task, recorder):
        self._recorder = recorder
        self.tensors = {}
        self._first_names = {}
        self._places = {}
        self._constants = {}
        self._temporary = set()
        for name, tensor, persistent in task._registered():
            first = self._places.setdefault(place(tensor), name)
            self._first_names[name] = first
            if first == name:
                self.tensors[name] = tensor
                if not persistent:
                    self._temporary.add(name)
        self._check()

    def _check(self):
        for name, tensor in self.tensors.items():
            if tensor.dtype != torch.float32 and tensor.requires_grad:
                hint = "Keep parameters in torch.float32: [training] precision says in which type to compute."
                raise Refusal(f"The parameter {name} is {tensor.dtype}.", hint=hint)
            if tensor.dtype not in WORDS:
                raise Refusal(f"The tensor {name} is {tensor.dtype}, for which graphs have no word.")
            if name == "lineage" or name.startswith("optimizer.") or len(name.encode()) > LONGEST_NAME:
                hint = f"Names under `optimizer`, the name `lineage` and more than {LONGEST_NAME} bytes aren't possible."
                raise Refusal(f"A tensor can't be called {name}.", hint=hint)
        if not self.parameters():
            raise Refusal("The task has no parameters.", hint="Make modules as attributes in setup: self.net = ...")

    def parameters(self):
        """The names of what is trained, in the order of registration."""
        return [name for name, tensor in self.tensors.items() if tensor.requires_grad]

    def name_of(self, tensor):
        """The name of a tensor of the model, or None."""
        return self._places.get(place(tensor))

    def argument(self, name, tensor):
        """The argument that stands for an input of a traced program: a tensor of the model, or a constant."""
        first = self._first_names.get(name) or self.name_of(tensor)
        if first:
            return {"t": first}
        key = (tensor.dtype, tuple(tensor.shape), tensor_bytes(tensor))
        if key not in self._constants:
            self._constants[key] = (self._free_name(), tensor.detach())
        return {"t": self._constants[key][0]}

    def _free_name(self):
        """A name for a constant that has none."""
        numbers = itertools.count(len(self._constants))
        return next(name for name in (f"lifted.{number}" for number in numbers) if name not in self.tensors)

    def described(self, lists):
        """The `tensors` of the graph's JSON, given all lists of nodes."""
        used = {name for nodes in lists for name in tensor_names([nodes.nodes, nodes.outputs])}
        moved = {name for nodes in lists for name in moved_tensors(nodes)}
        described = []
        for name, tensor in self.tensors.items():
            role = "parameter" if tensor.requires_grad else "buffer"
            if name in self._temporary and name not in moved:
                role = "constant"
                if name not in used:
                    continue
            described.append(self._entry(name, tensor, role))
        for name, tensor in self._constants.values():
            if name in used:
                described.append(self._entry(name, tensor, "constant"))
        return described

    def _entry(self, name, tensor, role):
        entry = {"name": name, "dtype": WORDS[tensor.dtype], "shape": list(tensor.shape), "role": role}
        if role != "constant":
            entry["start"] = self._recorder.start(tensor)
        return entry

    def shipped(self, described):
        """The tensors whose numbers are in the file, by their names there."""
        numbers = self.tensors | dict(self._constants.values())
        shipped = {}
        for entry in described:
            name = entry["name"]
            if entry["role"] == "constant":
                shipped[f"constant.{name}"] = numbers[name]
            elif entry["start"] == "given":
                shipped[f"given.{name}"] = numbers[name]
        return shipped


def place(tensor):
    """Where a tensor's numbers are in memory."""
    if tensor.numel() == 0:
        return id(tensor)
    return (tensor.untyped_storage()._cdata, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()))


def moved_tensors(nodes):
    """The names of the tensors that nodes of a list change."""
    for spoken, source in zip(nodes.nodes, nodes.sources):
        if spoken["op"].startswith(("aten.batch_norm.", "aten.instance_norm.")):
            statistics, by_batch = spoken["args"][3:5], spoken["args"][5]
            if by_batch:
                yield from tensor_names(statistics)
        elif is_mutable(source.target):
            yield from tensor_names(spoken["args"][:1])


def train_stage(task, model, stage, data, folder):
    """One stage of a training step: the JSON, and its list of nodes."""
    method = "loss" if stage is None else f"loss_{stage}"
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
        raise Refusal(f"evaluate must give a dict of at most {MOST_SUMS} numbers, `loss` among them.", *place, hint=hint)
    for name, value in sums.items():
        check_number(value, f"evaluate gives for {name!r}", "Give the sum over the rows.", place)
    named = dict(zip(sums, arguments))
    return SimpleNamespace(json={"nodes": nodes.nodes, "sums": named}, list=nodes)


def prediction(task, model, data, folder):
    """The graph's `predict` and its list of nodes, or None where the task says nothing of it."""
    is_default = type(task).predict is Task.predict
    if is_default and len(list(task.children())) != 1:
        return None
    try:
        nodes, value, arguments = traced(task, model, "predict", data, folder, training=False, with_y=False)
    except Refusal:
        if is_default:
            return None
        raise
    if not isinstance(value, torch.Tensor) or value.dim() == 0 or not costs.has_rows(value):
        raise Refusal("predict must give one tensor with a row for each row of the batch.")
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
        if is_mutable(source.target) and "c" in spoken["args"][0]:
            hint = "Compute a new tensor: x = batch.x * 2 instead of batch.x.mul_(2)."
            raise Refusal(f"{method} changes the batch itself.", *nodes.place_of(source), hint=hint)


def is_mutable(target):
    return isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable


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
    function = getattr(type(task), method)
    file = inspect.getsourcefile(function)
    if not within(file, folder):
        return None, None
    return file, function.__code__.co_firstlineno


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
