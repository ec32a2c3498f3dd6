"""How a model's tensors begin: recipes that give every trial numbers of its own from its seed.

`setup` runs under `StartRecorder`, which sees the operators that fill tensors. A tensor whose whole memory was filled at
random, and then only scaled or shifted as a whole, has a recipe; so has one whose numbers are all equal. Anything else is
`given`: its numbers go into the file.
"""

import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from sojourn.canonical import tensor_bytes

aten = torch.ops.aten

# A bound this near to 1/sqrt(k), relatively, is that.
FAN_IN_TOLERANCE = 1e-9
# No draw of a normal distribution is further from its mean, in deviations.
FARTHEST_DEVIATIONS = 10.0


class StartRecorder(TorchDispatchMode):
    """Notes for each tensor's memory by which distribution it was filled: `("uniform", low, high)` or `("normal", mean,
    deviation)`."""

    def __init__(self):
        super().__init__()
        # By the address of the memory: the memory itself, kept so that its address isn't used again, and the distribution.
        self._filled = {}

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        arguments = named_arguments(operator, args, kwargs)
        before = {name: self.distribution(value) for name, value in arguments.items() if isinstance(value, torch.Tensor)}
        result = operator(*args, **kwargs)
        distribution = distribution_after(operator, arguments, before)
        for written in written_tensors(operator, arguments):
            self._note(written, distribution)
        if distribution and isinstance(result, torch.Tensor):
            self._note(result, distribution)
        return result

    def distribution(self, tensor):
        """The distribution of all numbers of a tensor, or None."""
        if not has_memory(tensor) or not is_whole(tensor):
            return None
        _, distribution = self._filled.get(tensor.untyped_storage()._cdata, (None, None))
        return distribution

    def _note(self, tensor, distribution):
        if not has_memory(tensor):
            return
        storage = tensor.untyped_storage()
        self._filled[storage._cdata] = (storage, distribution if is_whole(tensor) else None)

    def start(self, tensor):
        """The `start` of a tensor of the model: a recipe, or `"given"`."""
        distribution = self.distribution(tensor)
        if distribution and tensor.dtype == torch.float32 and is_plausible(tensor, distribution):
            return recipe(distribution)
        return constant(tensor) or "given"


def given(tensor):
    """The `start` of any tensor of the model where no recipes are wanted. One without numbers has none in the file."""
    return "given" if tensor.numel() else "zeros"


def named_arguments(operator, args, kwargs):
    names = [argument.name for argument in operator._schema.arguments]
    return {**dict(zip(names, args)), **kwargs}


def written_tensors(operator, arguments):
    """The arguments that an operator writes to, lists of them spread out."""
    written = []
    for argument in operator._schema.arguments:
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = arguments.get(argument.name)
            written += value if isinstance(value, (list, tuple)) else [value]
    return [value for value in written if isinstance(value, torch.Tensor)]


def distribution_after(operator, arguments, before):
    """The distribution of what an operator gives or writes, or None where it isn't known."""
    name = operator._schema.name.removeprefix("aten::")
    if name == "uniform_":
        return ("uniform", float(arguments.get("from", 0.0)), float(arguments.get("to", 1.0)))
    if name == "normal_" or (name == "normal" and operator._overloadname == "float_float"):
        return ("normal", float(arguments.get("mean", 0.0)), float(arguments.get("std", 1.0)))
    if name in ("rand", "rand_like"):
        return ("uniform", 0.0, 1.0)
    if name in ("randn", "randn_like"):
        return ("normal", 0.0, 1.0)
    if name in ("clone", "lift_fresh_copy", "_to_copy"):
        return before.get("self")
    if name == "copy_":
        return before.get("src") if arguments["self"].shape == arguments["src"].shape else None
    return scaled(name.removesuffix("_"), arguments, before.get("self"))


def scaled(name, arguments, distribution):
    """The distribution after an operator that multiplies or shifts by one number."""
    other = arguments.get("other")
    if distribution is None or arguments.get("alpha", 1) != 1:
        return None
    if name == "neg":
        return affine(distribution, -1.0, 0.0)
    if not isinstance(other, (int, float)):
        return None
    if name in ("mul", "multiply"):
        return affine(distribution, other, 0.0)
    if name in ("div", "divide", "true_divide") and other != 0 and "rounding_mode" not in arguments:
        return affine(distribution, 1.0 / other, 0.0)
    if name == "add":
        return affine(distribution, 1.0, other)
    if name in ("sub", "subtract"):
        return affine(distribution, 1.0, -other)
    return None


def affine(distribution, factor, shift):
    kind, first, second = distribution
    if kind == "normal":
        return (kind, first * factor + shift, abs(second * factor))
    low, high = sorted([first * factor + shift, second * factor + shift])
    return (kind, low, high)


def has_memory(tensor):
    return tensor.layout == torch.strided and tensor.device.type == "cpu"


def is_whole(tensor):
    """Is it all of its memory, each place once?"""
    whole = tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()
    return whole and tensor.numel() > 0 and tensor.is_contiguous()


def is_plausible(tensor, distribution):
    """Could the numbers come from there? Not where something wrote to the memory unseen."""
    kind, first, second = distribution
    if kind == "normal":
        margin = FARTHEST_DEVIATIONS * second
        first, second = first - margin, first + margin
    slack = 1e-6 * max(abs(first), abs(second))
    return bool(first - slack <= tensor.min() and tensor.max() <= second + slack)


def recipe(distribution):
    kind, first, second = distribution
    if kind == "uniform" and first == -second and second > 0:
        fan_in = round(1.0 / second**2)
        if fan_in >= 1 and abs(second * math.sqrt(fan_in) - 1.0) < FAN_IN_TOLERANCE:
            return {"fan_in": fan_in}
    return {kind: [first, second]}


def constant(tensor):
    """The recipe of a tensor whose numbers are all equal, or None."""
    if tensor.numel() == 0:
        return "zeros"
    data, size = tensor_bytes(tensor), tensor.element_size()
    if data != data[:size] * tensor.numel():
        return None
    number = tensor.detach().flatten()[0].item()
    if not any(data):
        return "zeros"
    if number == 1:
        return "ones"
    if isinstance(number, float) and math.isfinite(number):
        return {"constant": number}
    return None
