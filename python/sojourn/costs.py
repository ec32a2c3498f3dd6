"""What a graph costs for one row, from the shapes that `torch.export` found."""

import math

import torch

aten = torch.ops.aten

CONVOLUTIONS = {"conv1d", "conv2d", "conv3d"}
TRANSPOSED = {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}
PRODUCTS = {"matmul", "mm", "bmm", "addmm", "baddbmm"}
# Products of weights and numbers for each unit of a recurrent layer.
GATES = {"lstm": 4, "gru": 3}


def flops_per_row(nodes):
    """Floating-point operations of one row: two for each multiply-add of the operators that have many.

    `nodes` are nodes of `torch.fx` with `meta["val"]`.
    """
    return sum(2 * multiply_adds(node) for node in nodes)


def widest(nodes):
    """The most numbers of one row that a node's value has."""
    return max((numbers(value) for node in nodes for value in tensors_of(node) if has_rows(value)), default=0)


def multiply_adds(node):
    """Multiply-adds of a node, with one row in the batch."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return 0
    kind = node.target._schema.name.removeprefix("aten::")
    if kind == "linear":
        return numbers(node.meta["val"]) * shape(node.args[1])[-1]
    if kind in CONVOLUTIONS:
        return numbers(node.meta["val"]) * math.prod(shape(node.args[1])[1:])
    if kind in TRANSPOSED:
        return numbers(node.args[0].meta["val"]) * math.prod(shape(node.args[1])[1:])
    if kind in PRODUCTS:
        left = node.args[-2] if kind in ("addmm", "baddbmm") else node.args[0]
        return numbers(node.meta["val"]) * shape(left)[-1]
    if kind == "scaled_dot_product_attention":
        query, key = shape(node.args[0]), shape(node.args[1])
        return 2 * math.prod(query) * key[-2]
    if kind in GATES:
        return recurrent(node)
    return 0


def recurrent(node):
    """Multiply-adds of an LSTM or GRU: each weight matrix once for each step."""
    x = shape(node.args[0])
    steps = x[0] * x[1]
    weights = [shape(weight) for weight in node.args[2] if len(shape(weight)) == 2]
    return steps * sum(math.prod(weight) for weight in weights)


def tensors_of(node):
    """The tensors that are a node's value."""
    value = node.meta.get("val")
    values = value if isinstance(value, (list, tuple)) else [value]
    return [value for value in values if isinstance(value, torch.Tensor)]


def has_rows(tensor):
    return any(isinstance(size, torch.SymInt) for size in tensor.shape)


def shape(value):
    """The shape of a node's tensor with one row in the batch."""
    tensor = value.meta["val"] if isinstance(value, torch.fx.Node) else value
    return [with_one_row(size) for size in tensor.shape]


def numbers(tensor):
    return math.prod(shape(tensor))


def with_one_row(size):
    """A size where the number of rows, its only unknown, is 1."""
    if isinstance(size, int):
        return size
    expression = size.node.expr
    return int(expression.xreplace({symbol: 1 for symbol in expression.free_symbols}))
