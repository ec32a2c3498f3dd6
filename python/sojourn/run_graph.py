"""Runs graph files with PyTorch from their bytes alone: a second reader, to check exports with."""

import json
import operator

import torch

from sojourn import seeds
from sojourn.canonical import DTYPES, decode

MEMORY = {
    "contiguous": torch.contiguous_format,
    "channels_last": torch.channels_last,
    "preserve": torch.preserve_format,
}
WHOLE_NUMBERS = {
    "sym.size": lambda tensor, dimension: tensor.shape[dimension],
    "sym.add": operator.add,
    "sym.sub": operator.sub,
    "sym.mul": operator.mul,
    "sym.floordiv": operator.floordiv,
}


class Graph:
    """A graph with its tensors. `tensors` has the parameters and buffers by name; all that changes is there."""

    def __init__(self, data):
        """`data` is the bytes of a graph file. The tensors have no numbers before `begin` or `load`."""
        self._file = decode(data)
        self.json = json.loads(bytes(self._file["graph"].tolist()))
        self.constants = {}
        self.tensors = {}
        for entry in self.json["tensors"]:
            if entry["role"] == "constant":
                self.constants[entry["name"]] = self._file[f"constant.{entry['name']}"]

    def names(self, role):
        """The names of the tensors with this role, in the file's order."""
        return [entry["name"] for entry in self.json["tensors"] if entry["role"] == role]

    def begin(self, seed):
        """Version 0 of a trial with this seed of initial weights."""
        entries = {entry["name"]: entry for entry in self.json["tensors"]}
        numbers = {}
        for index, name in enumerate(self.names("parameter") + self.names("buffer")):
            entry = entries[name]
            if entry["start"] == "given":
                numbers[name] = self._file[f"given.{name}"]
            else:
                values = seeds.initial_values(seed, index, entry["start"], entry["shape"])
                numbers[name] = torch.from_numpy(values).to(DTYPES[entry["dtype"]])
        self.load(numbers)

    def load(self, numbers):
        """Takes copies of tensors by name as its own."""
        trained = set(self.names("parameter"))
        for name in self.names("parameter") + self.names("buffer"):
            self.tensors[name] = numbers[name].detach().clone().requires_grad_(name in trained)

    def parameters(self):
        """The trained tensors."""
        return [self.tensors[name] for name in self.names("parameter")]

    def stages(self):
        """For each stage of a training step: a function of a batch's columns that gives its loss, and what it moves."""
        for stage in self.json["train"]:
            moves = stage.get("moves", self.names("parameter"))
            yield self._loss(stage), [self.tensors[name] for name in moves]

    def _loss(self, stage):
        return lambda columns: self._run(stage["nodes"], columns, [stage["loss"]])[0]

    @torch.no_grad()
    def evaluate(self, columns):
        """The sums of a batch by name. `columns` has those of the graph, and perhaps others."""
        sums = self.json["evaluate"]["sums"]
        values = self._run(self.json["evaluate"]["nodes"], columns, list(sums.values()))
        return dict(zip(sums, values))

    @torch.no_grad()
    def predict(self, columns):
        """The outputs for a batch, `[rows, ...]`."""
        predict = self.json["predict"]
        return self._run(predict["nodes"], columns, [predict["outputs"]])[0]

    def _run(self, nodes, columns, outputs):
        """Calls the operators of a list of nodes; gives the values of `outputs`."""
        values = []

        def value(argument):
            if isinstance(argument, list):
                return [value(part) for part in argument]
            if not isinstance(argument, dict):
                return argument
            if "n" in argument:
                found = values[argument["n"]]
                return found[argument["i"]] if "i" in argument else found
            ((kind, what),) = argument.items()
            return self._word(kind, what, columns)

        for node in nodes:
            arguments = [value(argument) for argument in node["args"]]
            named = {key: value(argument) for key, argument in node.get("kwargs", {}).items()}
            with torch.set_grad_enabled(torch.is_grad_enabled() and not node.get("no_grad", False)):
                values.append(function(node["op"])(*arguments, **named))
        return [value(output) for output in outputs]

    def _word(self, kind, what, columns):
        if kind == "t":
            return self.constants[what] if what in self.constants else self.tensors[what]
        if kind == "c":
            return columns[what]
        if kind == "dtype":
            return DTYPES[what]
        if kind == "memory":
            return MEMORY[what]
        if kind == "float":
            return float(what)
        if kind == "text":
            return what
        raise ValueError(f"graphs have no argument {kind!r}")


def function(name):
    """What an operator of a node calls."""
    if name in WHOLE_NUMBERS:
        return WHOLE_NUMBERS[name]
    namespace, operator_name, overload = name.split(".")
    if namespace != "aten":
        raise ValueError(f"graphs have no operator {name!r}")
    return getattr(getattr(torch.ops.aten, operator_name), overload)


def train(stages, batches, hop_seed, first=0, learning_rate=1e-3, states=None):
    """Trains on batches with AdamW, an optimiser for each stage; gives each batch's losses, and the optimisers' states.

    `stages` are pairs of a loss function and the tensors that it moves; `batches` are columns by name. Before batch `b`,
    counted from `first`, the seed is set to `seeds.batch(hop_seed, b)`. `states` are those of an earlier call, to go on from.
    """
    stages = list(stages)
    optimizers = [torch.optim.AdamW(moves, lr=learning_rate) for _, moves in stages]
    for optimizer, state in zip(optimizers, states or []):
        optimizer.load_state_dict(state)
    losses = []
    for number, columns in enumerate(batches, first):
        torch.manual_seed(seeds.batch(hop_seed, number))
        losses.append([step(loss, moves, optimizer, columns) for (loss, moves), optimizer in zip(stages, optimizers)])
    return losses, [optimizer.state_dict() for optimizer in optimizers]


def step(loss, moves, optimizer, columns):
    """One stage's step; gives its loss."""
    result = loss(columns)
    gradients = torch.autograd.grad(result, moves, allow_unused=True)
    for tensor, gradient in zip(moves, gradients):
        tensor.grad = gradient
    optimizer.step()
    return result.item()
