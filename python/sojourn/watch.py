"""Watches a task while `torch.export` traces it: for lines of the user's code, and for what a graph would lose in silence."""

import contextlib
import random
import sys
import traceback

import sympy
import torch
from torch.fx.proxy import TracerBase

from sojourn.refusal import SEE_PAGE, Refusal, within

OWN_GRADIENT = "The task has an autograd function or a gradient hook of its own."


@contextlib.contextmanager
def watched(folder):
    """While it lasts, nodes are traced with the lines of `folder`, and what a graph can't keep raises `Refusal`."""

    def length(tensor):
        if tensor.dim() > 0 and isinstance(tensor.shape[0], torch.SymInt):
            raise Refusal("len() of a batch gives one certain number of rows.", hint="Use batch.rows or batch.x.shape[0].")
        return original_length(tensor)

    def own_gradient(*_args, **_kwargs):
        hint = "A graph's gradients are those of PyTorch's operators. " + SEE_PAGE
        raise Refusal(OWN_GRADIENT, hint=hint)

    def users_frames(_tracer, frames):
        return traceback.StackSummary.from_list([frame for frame in frames if within(frame.filename, folder)])

    original_length = torch.Tensor.__len__
    with (
        replaced(torch.Tensor, "__len__", length),
        replaced(torch.Tensor, "register_hook", own_gradient),
        replaced(torch.autograd.Function, "apply", own_gradient),
        replaced(TracerBase, "_filter_traceback_frames", users_frames),
        without_fast_attention(),
    ):
        yield


@contextlib.contextmanager
def replaced(owner, name, function):
    original = owner.__dict__[name] if name in owner.__dict__ else None
    setattr(owner, name, function)
    try:
        yield
    finally:
        if original is None:
            delattr(owner, name)
        else:
            setattr(owner, name, original)


@contextlib.contextmanager
def without_fast_attention():
    """Attention by its layers' operators, not by one fused operator that exists for evaluation alone."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


class PlacedGuards(list):
    """The conditions on sizes that a program relies on; `place` is where the user's code fixed the number of rows."""

    def __init__(self, guards, folder):
        super().__init__(guards)
        self._folder = folder
        self.place = (None, None)

    def append(self, guard):
        super().append(guard)
        if self.place == (None, None) and guard.expr.atoms(sympy.Integer):
            self.place = current_place(self._folder)


def watch_rows(rows, folder):
    """Notes where conditions on `rows`, a number that isn't known yet, arise; gives what notes them."""
    shapes = rows.node.shape_env
    shapes.guards = PlacedGuards(shapes.guards, folder)
    return shapes.guards


def current_place(folder):
    """File and line of the innermost call that is now within `folder`."""
    for frame in reversed(traceback.extract_stack()):
        if within(frame.filename, folder):
            return frame.filename, frame.lineno
    return None, None


def python_state(task):
    """The numbers and words of Python that a task's modules hold, and the states of Python's random numbers."""
    state = {"random": random.getstate()}
    if "numpy" in sys.modules:
        _, keys, *rest = sys.modules["numpy"].random.get_state()
        state["numpy.random"] = (keys.tobytes(), *rest)
    for prefix, module in task.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, (bool, int, float, str)):
                state[f"{prefix}.{name}".lstrip(".")] = value
    return state


def check_python_state(before, after, method):
    """Refuses what changed: the next batch would be computed otherwise, and a graph wouldn't."""
    for name in after:
        if before.get(name) == after[name]:
            continue
        if name in ("random", "numpy.random"):
            hint = "Draw them with PyTorch, such as torch.rand(())."
            raise Refusal(f"{method} draws random numbers with {name}; a graph would always have the same ones.", hint=hint)
        hint = "Keep it in a tensor: register_buffer in setup, and add_ to it."
        raise Refusal(f"{method} changes the attribute {name}, a value of Python, which a graph doesn't keep.", hint=hint)
