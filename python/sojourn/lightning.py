"""Modules of Lightning as tasks: `sojourn.lightning.task(Digits)` is a model of a search.

    class Digits(lightning.LightningModule):
        def __init__(self, width=16): ...
        def forward(self, x): ...

        def training_step(self, batch, batch_idx):
            x, y = batch
            return F.cross_entropy(self(x), y)

        def validation_step(self, batch, batch_idx):
            x, y = batch
            logits = self(x)
            self.log("val_loss", F.cross_entropy(logits, y))
            self.log("val_acc", (logits.argmax(1) == y).float().mean())

The module is made by `Digits(width=...)` with those values of the trial that it takes. A batch is the pair `(x, y)`, or a dict of
tensors where the data have columns by name. Values that `validation_step` logs, means over the rows of a batch, are metrics by their
names without `val_`; `acc` is `accuracy`. The optimiser is the job's, and `configure_optimizers` is left aside. Modules that optimise
by hand, or have hooks between the steps, are refused: a graph has the steps alone.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

from sojourn.description import Column
from sojourn.refusal import Refusal
from sojourn.torch import Batch, Task
from sojourn.wrapped import Wrapped

HOOKS = "backward optimizer_step configure_gradient_clipping on_before_backward on_after_backward on_before_optimizer_step".split()
HOOKS += "on_train_batch_start on_train_batch_end on_train_epoch_start on_before_batch_transfer on_after_batch_transfer".split()
"""Methods that change a step of training, or its batch."""
PREFIX = re.compile(r"^(val|valid|validation|train|test)[_/.-]")
NO_NAME = re.compile(r"[^A-Za-z0-9_.-]")
RENAMED = {"acc": "accuracy"}


def task(module: type[Any]) -> type[Task]:
    """The task's class of a LightningModule's class.

    Raises `TypeError` for anything else. A module that can't be a graph is refused when it is exported, with a line of its code.
    """
    bases = [one for one in getattr(module, "__mro__", ()) if one.__name__ == "LightningModule"]
    if not bases:
        raise TypeError(f"sojourn.lightning.task takes a class derived from LightningModule, and not {module!r}")

    class LightningTask(_LightningTask):
        wrapped = Wrapped(__name__, "task", [module])
        kind, parent = module, bases[0]

    LightningTask.__name__ = LightningTask.__qualname__ = module.__name__
    return LightningTask


class _LightningTask(Task):
    """A task around a module; `net` is the module, `kind` its class, `parent` Lightning's own class."""

    wrapped: Wrapped
    kind: type[Any]
    parent: type[Any]

    def setup(self, c: Any, data: Any) -> None:
        for hook in HOOKS:
            if getattr(self.kind, hook, None) is not getattr(self.parent, hook, None):
                hint = "Leave it out, or write a sojourn.torch.Task; clipping of gradients is `clip_norm` of the job."
                raise Refusal(f"{self.kind.__name__} has a {hook}, which a graph doesn't run.", hint=hint)
        self.net = self.kind(**_values(self.kind, c))
        if not getattr(self.net, "automatic_optimization", True):
            hint = "Several losses are `stages` of a sojourn.torch.Task."
            raise Refusal(f"{self.kind.__name__} optimises by hand: automatic_optimization is False.", hint=hint)
        self.names = None if hasattr(data, "classes") else [name for name, one in vars(data).items() if isinstance(one, Column)]

    def loss(self, batch: Batch) -> torch.Tensor:
        with self._logged():
            return _loss_of(self._step("training_step", batch), {})

    def evaluate(self, batch: Batch) -> dict[str, torch.Tensor]:
        overridden = self.kind.validation_step is not self.parent.validation_step
        with self._logged() as logged:
            returned = self._step("validation_step" if overridden else "training_step", batch)
        found = {_name(name): _tensor(name, value) for name, value in logged.items()} if overridden else {}
        return {**{name: value * batch.rows for name, value in found.items()}, "loss": _loss_of(returned, found) * batch.rows}

    def predict(self, batch: Batch) -> Any:
        with self._logged():
            plain = self.kind.predict_step is self.parent.predict_step
            return self.net(self._given(batch)) if plain else _called(self.net.predict_step, self._given(batch))

    def _step(self, name: str, batch: Batch) -> Any:
        return _called(getattr(self.net, name), (batch.x, batch.y) if self.names is None else self._given(batch))

    def _given(self, batch: Batch) -> Any:
        return batch.x if self.names is None else {name: getattr(batch, name) for name in self.names}

    @contextlib.contextmanager
    def _logged(self) -> Iterator[dict[str, Any]]:
        """Keeps what the module logs, which needs no trainer then."""
        logged: dict[str, Any] = {}

        self.net.log = lambda name, value, *_, **__: logged.update({name: value})
        self.net.log_dict = lambda values, *_, **__: logged.update(values)
        try:
            yield logged
        finally:
            del self.net.log, self.net.log_dict


def _values(kind: type[Any], c: Any) -> dict[str, Any]:
    """The values of a trial that a module takes. A value that it can't be without is asked for, which says what there is."""
    taken = inspect.signature(kind).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in taken):
        return dict(c)
    named = [one for one in taken if one.kind is not one.VAR_POSITIONAL]
    return {one.name: c[one.name] for one in named if one.name in c or one.default is one.empty}


def _called(step: Callable[..., Any], batch: Any) -> Any:
    """The result of a step; the number of the batch, which it may leave out, is always 0."""
    return step(batch, 0) if len(inspect.signature(step).parameters) > 1 else step(batch)


def _loss_of(returned: Any, logged: dict[str, torch.Tensor]) -> torch.Tensor:
    loss = logged.get("loss", returned.get("loss") if isinstance(returned, dict) else returned)
    if not isinstance(loss, torch.Tensor):
        raise Refusal("The step gives no loss.", hint="Return it, or log it as val_loss: a tensor of one number.")
    return loss


def _name(logged: str) -> str:
    """The name of a metric: `accuracy` for `val_acc` and `val/acc`."""
    name = NO_NAME.sub("_", PREFIX.sub("", logged))
    return RENAMED.get(name, name)


def _tensor(name: str, value: Any) -> torch.Tensor:
    if isinstance(value, (int, float)):
        return torch.full((), float(value))
    if not isinstance(value, torch.Tensor):
        hint = "Log a tensor of the step, such as (logits.argmax(1) == y).float().mean()."
        raise Refusal(f"The module logs {name} as {type(value).__name__}, which keeps a state of its own.", hint=hint)
    return value.float()
