"""Models of a search: `[[model]]` tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sojourn.search.places import Place, caller
from sojourn.search.space import Dimension

TaskCode = Callable[..., object]
"""A class derived from `sojourn.torch.Task`, or a function that returns a compiled Keras model."""


@dataclass(frozen=True)
class Model:
    """A `[[model]]` table; `code` is the class or function of a model of one's own. `place` is the line that made it."""

    table: dict[str, object]
    code: TaskCode | None = None
    place: Place | None = field(default=None, compare=False)


def mlp(hidden: Sequence[int] | Dimension, **keys: object) -> Model:
    """Fully connected layers with ReLU: `hidden` has their sizes, without the last.

    Keys are those of the job file: `dropout`, `batch_norm`, `init`. Each may be a dimension, `hidden=choice([64], [128, 64])`.
    """
    return Model({"arch": "mlp", "hidden": hidden, **keys}, place=caller())


def cnn(channels: Sequence[int] | Dimension, **keys: object) -> Model:
    """3x3 convolutions with ReLU and 2x2 pooling: `channels` has their channels.

    Keys are those of the job file: `hidden`, `pool`, `pool_every`, `batch_norm`, `dropout`, `init`.
    """
    return Model({"arch": "cnn", "channels": channels, **keys}, place=caller())


def resnet(depth: int | Dimension, **keys: object) -> Model:
    """A pre-activation residual network of `depth` 9n + 2. Keys are those of the job file: `width`, `init`."""
    return Model({"arch": "resnet", "depth": depth, **keys}, place=caller())


def graph(code: TaskCode | str, **keys: object) -> Model:
    """A model of your own with keys of its own, which its code reads as `c.NAME`.

    `code` is a class derived from `sojourn.torch.Task`, a function that returns a compiled Keras model, or an entry such as
    `"model.py:Net"`, relative to the working folder.
    """
    if isinstance(code, str):
        return Model({"arch": "graph", "entry": _entry(code), **keys}, place=caller())
    return Model({"arch": "graph", **keys}, code, caller())


def model_of(value: object) -> Model:
    """The model that an argument of `Search` is: one of these, a class or function, or an exported model's file.

    Raises `TypeError` for anything else.
    """
    if isinstance(value, Model):
        return value
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        if isinstance(text, str):
            return Model({"init": str(Path(text).absolute())}) if text.endswith(".safetensors") else graph(text)
    if callable(value):
        return graph(value)
    raise TypeError(f"a model is a class, a function, sojourn.mlp(...) or the like, and not a {type(value).__name__}")


def _entry(entry: str) -> str:
    file, colon, name = entry.partition(":")
    return f"{Path(file).expanduser().absolute()}{colon}{name}"
