"""The tensors of a task: their names, roles and first numbers."""

import itertools

import torch

from sojourn.canonical import WORDS, tensor_bytes
from sojourn.nodes import moved_tensors, tensor_names
from sojourn.refusal import Refusal

LONGEST_NAME = 200
# The types of the buffers that checkpoints hold.
BUFFER_TYPES = (torch.float32, torch.int32, torch.int64)


class Model:
    """The tensors of a task by name, in the order of registration; a tied one once, under its first name."""

    def __init__(self, task, start):
        """`start` gives the `start` of a tensor after `setup`."""
        self._start = start
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
            if tensor.requires_grad and not is_finite(tensor):
                hint = "Fill it in setup: torch.empty has whatever was in memory."
                raise Refusal(f"The parameter {name} has numbers that aren't finite.", hint=hint)
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
            role = self._role(name, name in moved)
            if role != "constant" or name in used:
                described.append(self._entry(name, tensor, role))
        for name, tensor in self._constants.values():
            if name in used:
                described.append(self._entry(name, tensor, "constant"))
        return described

    def _role(self, name, moves):
        """The role of a tensor; `moves` says whether nodes change it, which buffers that no checkpoint can hold may not."""
        tensor = self.tensors[name]
        if tensor.requires_grad:
            return "parameter"
        fault = buffer_fault(tensor)
        if moves and fault:
            hint = "Checkpoints hold float32, int32 and int64, and finite numbers, such as torch.finfo(torch.float32).max."
            raise Refusal(f"The buffer {name}, which the loss changes, {fault}.", hint=hint)
        if not moves and (fault or name in self._temporary):
            return "constant"
        return "buffer"

    def _entry(self, name, tensor, role):
        entry = {"name": name, "dtype": WORDS[tensor.dtype], "shape": list(tensor.shape), "role": role}
        if role != "constant":
            entry["start"] = self._start(tensor)
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


def is_finite(tensor):
    return bool(torch.isfinite(tensor).all())


def buffer_fault(tensor):
    """Why a checkpoint can't hold a tensor as a buffer, or None."""
    if tensor.dtype not in BUFFER_TYPES:
        return f"is {tensor.dtype}"
    return None if is_finite(tensor) else "has numbers that aren't finite"


def place(tensor):
    """Where a tensor's numbers are in memory."""
    if tensor.numel() == 0:
        return id(tensor)
    return (tensor.untyped_storage()._cdata, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()))
