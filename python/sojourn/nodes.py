"""The nodes of a graph: what `torch.export` traced, as plain data."""

import math
import operator

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from sojourn.canonical import WORDS
from sojourn.refusal import SEE_PAGE, DATA_DEPENDENT, Refusal, place_in_text

aten = torch.ops.aten

UNKNOWN_NUMBERS = (torch.SymInt, torch.SymFloat, torch.SymBool)
NUMBERS = (
    "Don't take numbers out of tensors (.item(), float()), and with batch.rows use +, -, * and // alone, or compute with "
    "tensors: loss / batch.rows. " + SEE_PAGE
)
WHOLE_NUMBERS = {
    operator.add: "sym.add",
    operator.sub: "sym.sub",
    operator.mul: "sym.mul",
    operator.floordiv: "sym.floordiv",
    aten.sym_size.int: "sym.size",
}
# Checks that hold for every batch, since the shapes of rows never change.
ASSERTS = {
    "_assert_tensor_metadata",
    "_assert_async",
    "_assert_scalar",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
}
# What Python's operators are called, and the operators that they are.
SAME = {"aten.__and__.Tensor": "aten.bitwise_and.Tensor", "aten.__or__.Tensor": "aten.bitwise_or.Tensor"}
# They move their statistics though their schemas don't say so.
MOVE_BUFFERS = {"batch_norm", "instance_norm"}
# Everything is on the batch's device, and chance comes from the batch's seed.
NOT_SAID = {"device", "layout", "pin_memory", "generator", "non_blocking"}
MEMORY_FORMATS = {
    torch.contiguous_format: "contiguous",
    torch.channels_last: "channels_last",
    torch.preserve_format: "preserve",
}
REAL_WORDS = {math.inf: "inf", -math.inf: "-inf"}


class NodeList:
    """The nodes of one graph, made from a program of `torch.export`.

    `inputs` has an argument (`{"t": ..}`, `{"c": ..}`) for each of the program's inputs, `folder` the user's code.
    """

    def __init__(self, program, inputs, folder):
        self.nodes = []
        self.sources = []
        self._effects = []
        self._folder = folder
        outputs = self._trace(program.graph_module, inputs, no_grad=False)
        self.outputs = self._without_dead_nodes(outputs)

    def _trace(self, module, inputs, no_grad):
        """Adds the nodes of a module of `torch.fx`, and gives the arguments that it puts out."""
        inputs, values = iter(inputs), {}
        for node in module.graph.nodes:
            if node.op == "placeholder":
                values[node] = next(inputs)
            elif node.op == "get_attr":
                values[node] = getattr(module, node.target)
            elif node.op == "output":
                return [self._argument(value, values, node) for value in node.args[0]]
            else:
                values[node] = self._call(node, values, no_grad)
        raise AssertionError("torch.fx gives every graph an output")

    def _call(self, node, values, no_grad):
        """Adds what a node of `torch.fx` calls, and gives the argument by which others refer to it."""
        target = node.target
        if target is torch.ops.higher_order.wrap_with_set_grad_enabled:
            enabled, body, *inputs = node.args
            inputs = [self._argument(value, values, node) for value in inputs]
            return self._trace(values[body], inputs, no_grad=not enabled)
        if target is operator.getitem:
            return self._item(values[node.args[0]], node.args[1])
        if target in WHOLE_NUMBERS:
            return self._whole_number(node, values)
        if short_name(target) in ASSERTS or only_asserted(node):
            return None
        if free_unbacked_symbols(node.meta.get("val")):
            raise self._refusal(node, *DATA_DEPENDENT)
        if isinstance(node.meta.get("val"), UNKNOWN_NUMBERS):
            message = f"{name_of(target)} gives a number of Python that differs from batch to batch."
            raise self._refusal(node, message, NUMBERS)
        if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
            raise self._refusal(node, f"A graph can't have {name_of(target)}.", SEE_PAGE)
        return self._operator(node, values, no_grad)

    def _item(self, value, index):
        """One of several values."""
        return value[index] if isinstance(value, list) else {**value, "i": index}

    def _whole_number(self, node, values):
        known = node.meta.get("val")
        if isinstance(known, int):
            return known
        arguments = [self._argument(value, values, node) for value in node.args]
        return self._add({"op": WHOLE_NUMBERS[node.target], "args": arguments}, node, has_effect=False)

    def _operator(self, node, values, no_grad):
        target, name = node.target, name_of(node.target)
        short = short_name(target)
        arguments = [self._argument(value, values, node) for value in node.args]
        named = {key: self._argument(value, values, node) for key, value in node.kwargs.items() if says(key, value)}
        if node.kwargs.get("generator") is not None:
            hint = "Leave the generator out: chance comes from the batch's seed."
            raise self._refusal(node, f"{name} has a random generator of its own.", hint)
        if short == "alias":
            return arguments[0]
        if short == "broadcast_tensors" and len({str(source.meta["val"].shape) for source in node.args[0]}) == 1:
            # Losses such as mse_loss ask for a common shape, which their tensors have.
            return arguments[0]
        name = SAME.get(name, name)
        if short == "lift_fresh_copy":
            name = "aten.clone.default"
        if short == "detach_" and is_fresh_copy(node.args[0]):
            return arguments[0]
        if name in ("aten.to.device", "aten.to.dtype_layout"):
            name, arguments, named = to_dtype(node, arguments, named)
        spoken = {"op": name, "args": arguments}
        if named:
            spoken["kwargs"] = dict(sorted(named.items()))
        if no_grad:
            spoken["no_grad"] = True
        return self._add(spoken, node, changes_something(target))

    def _add(self, spoken, node, has_effect):
        self.nodes.append(spoken)
        self.sources.append(node)
        self._effects.append(has_effect)
        return {"n": len(self.nodes) - 1}

    def _argument(self, value, values, node):
        """An argument as the format says it."""
        if isinstance(value, torch.fx.Node):
            return values[value]
        if isinstance(value, (list, tuple)):
            return [self._argument(part, values, node) for part in value]
        if isinstance(value, torch.dtype):
            if value not in WORDS:
                raise self._refusal(node, f"A graph can't have tensors of type {value}.", SEE_PAGE)
            return {"dtype": WORDS[value]}
        if isinstance(value, torch.memory_format):
            if value not in MEMORY_FORMATS:
                raise self._refusal(node, f"A graph can't have {value}.", "Use channels_last for images.")
            return {"memory": MEMORY_FORMATS[value]}
        if isinstance(value, (torch.device, torch.layout)):
            return None
        if isinstance(value, str):
            return {"text": value}
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": REAL_WORDS.get(value, "nan")}
        if value is None or isinstance(value, (bool, int, float)):
            return value
        raise self._refusal(node, f"A graph can't have {value!r} as an argument.", SEE_PAGE)

    def _without_dead_nodes(self, outputs):
        """Drops nodes that nothing needs and that change nothing; gives the outputs under their new numbers."""
        alive = set(references(outputs))
        for number in reversed(range(len(self.nodes))):
            if number in alive or self._effects[number]:
                alive.add(number)
                alive.update(references(self.nodes[number]))
        kept = sorted(alive)
        numbers = {old: new for new, old in enumerate(kept)}
        self.nodes = [renumbered(self.nodes[old], numbers) for old in kept]
        self.sources = [self.sources[old] for old in kept]
        return renumbered(outputs, numbers)

    def check_operators(self, allowed):
        """Refuses an operator that isn't among `allowed`, names as in nodes."""
        for spoken, node in zip(self.nodes, self.sources):
            if spoken["op"] not in allowed and not spoken["op"].startswith("sym."):
                message = f"A graph can't have the operator {spoken['op']}."
                raise self._refusal(node, message, "docs/models/operators.md lists those that it can have. " + SEE_PAGE)

    def _refusal(self, node, message, hint):
        return Refusal(message, *self.place_of(node), hint, node.meta.get("stack_trace"))

    def place_of(self, node):
        """File and line of the user's code that a node comes from."""
        return place_in_text(node.meta.get("stack_trace"), self._folder)


def short_name(target):
    """`conv2d` for `aten.conv2d.default`; what isn't an operator has its name."""
    return target._schema.name.removeprefix("aten::") if isinstance(target, torch._ops.OpOverload) else name_of(target)


def only_asserted(node):
    """Is a node a condition that nothing but checks ask for?"""
    is_condition = isinstance(node.meta.get("val"), torch.SymBool)
    return is_condition and all(short_name(user.target) in ASSERTS for user in node.users)


def is_fresh_copy(node):
    return node.target is aten.lift_fresh_copy.default


def to_dtype(node, arguments, named):
    """`to.device` or `to.dtype_layout` as `to.dtype`, which says no device: name, arguments, named arguments."""
    if node.target is aten.to.device:
        rest = arguments[2:]
    else:
        rest = [named["dtype"]] if "dtype" in named else []
    dtype, *rest = rest or [{"dtype": WORDS[node.args[0].meta["val"].dtype]}]
    named = {key: value for key, value in named.items() if key != "dtype"}
    return "aten.to.dtype", [arguments[0], dtype, *rest], named


def says(key, value):
    """Does this argument go into the node?"""
    return key not in NOT_SAID and value is not None


def changes_something(target):
    """Does an operator change its arguments, or draw from the stream of chance?"""
    return (
        target._schema.is_mutable
        or torch.Tag.nondeterministic_seeded in target.tags
        or short_name(target) in MOVE_BUFFERS
    )


def name_of(target):
    """A node's operator as `torch.export` names it: `aten.conv2d.default`."""
    return str(target) if isinstance(target, torch._ops.OpOverload) else getattr(target, "__name__", str(target))


def references(value):
    """The numbers of the nodes that an argument, a list or a node refers to."""
    if isinstance(value, dict):
        if isinstance(value.get("n"), int):
            yield value["n"]
        else:
            yield from references(list(value.values()))
    elif isinstance(value, list):
        for part in value:
            yield from references(part)


def tensor_names(value):
    """The names of the model's tensors that an argument, a list or a node refers to."""
    if isinstance(value, dict):
        if isinstance(value.get("t"), str):
            yield value["t"]
        else:
            yield from tensor_names(list(value.values()))
    elif isinstance(value, list):
        for part in value:
            yield from tensor_names(part)


def renumbered(value, numbers):
    """The same with other numbers of nodes."""
    if isinstance(value, dict):
        if isinstance(value.get("n"), int):
            return {**value, "n": numbers[value["n"]]}
        return {key: renumbered(part, numbers) for key, part in value.items()}
    if isinstance(value, list):
        return [renumbered(part, numbers) for part in value]
    return value


def moved_tensors(nodes):
    """The names of the tensors that nodes of a list change."""
    for spoken, source in zip(nodes.nodes, nodes.sources):
        if spoken["op"].startswith(("aten.batch_norm.", "aten.instance_norm.")):
            statistics, by_batch = spoken["args"][3:5], spoken["args"][5]
            if by_batch:
                yield from tensor_names(statistics)
        else:
            yield from tensor_names(written_arguments(spoken, source.target))


def written_arguments(spoken, target):
    """The arguments of a node that its operator writes to."""
    if not isinstance(target, torch._ops.OpOverload) or not target._schema.is_mutable:
        return []
    named = {**dict(zip([argument.name for argument in target._schema.arguments], spoken["args"])), **spoken.get("kwargs", {})}
    written = [argument.name for argument in target._schema.arguments if argument.is_write]
    return [named[name] for name in written if name in named]
