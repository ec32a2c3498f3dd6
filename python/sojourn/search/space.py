"""Dimensions of a search, and which table of the job file each setting of a space belongs to.

The forms, and what they mean, are those of a job file's dimensions (docs/job-file.md#dimensions). `sojourn validate` checks them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sojourn.search.places import Place, caller

FORMS = ("choice", "uniform", "log_uniform", "int", "log_int", "normal")
"""The keys by which a table is a dimension."""
TRAINING = ("batch_size", "clip_norm", "label_smoothing", "precision", "sampling")
OPTIMIZER = ("lr", "momentum", "beta1", "beta2", "eps", "weight_decay")
SCHEDULE = ("warmup", "every", "gamma", "floor")
AUGMENT = ("crop", "flip")
TABLES = {
    "data": ("data",),
    "model": ("model",),
    "training": ("training",),
    "optimizer": ("training", "optimizer"),
    "schedule": ("training", "schedule"),
    "augment": ("training", "augment"),
}
"""The tables by the first word of a setting's name: `optimizer.lr`, `model.lr`."""


@dataclass(frozen=True)
class Dimension:
    """A setting of which each trial has a value of its own, as the job file's inline table has it.

    `place` is the line of Python that made the dimension.
    """

    table: Mapping[str, object]
    place: Place | None = field(default=None, compare=False)


def choice(*values: object, when: Mapping[str, object] | None = None, otherwise: object = None) -> Dimension:
    """One of several values: numbers, words, truth values, or lists, each of which is taken whole.

    `when` gives the dimension to trials whose other settings have certain values, `{"optimizer": "sgd"}`; the others have the
    value `otherwise`. All dimensions take both.
    """
    return _dimension({"choice": list(values)}, when, otherwise)


def uniform(
    low: float,
    high: float,
    *,
    step: float | None = None,
    points: int | None = None,
    when: Mapping[str, object] | None = None,
    otherwise: object = None,
) -> Dimension:
    """A number from `low` to `high`, both included.

    `step` leaves only whole steps from `low` on; a grid takes `points` values.
    """
    return _dimension({"uniform": [low, high], "step": step, "points": points}, when, otherwise)


def log_uniform(
    low: float,
    high: float,
    *,
    step: float | None = None,
    points: int | None = None,
    when: Mapping[str, object] | None = None,
    otherwise: object = None,
) -> Dimension:
    """A number from `low` to `high`, uniform in its logarithm; as `uniform` otherwise."""
    return _dimension({"log_uniform": [low, high], "step": step, "points": points}, when, otherwise)


def int_uniform(
    low: int,
    high: int,
    *,
    step: int | None = None,
    points: int | None = None,
    when: Mapping[str, object] | None = None,
    otherwise: object = None,
) -> Dimension:
    """A whole number from `low` to `high`, both included; the form `int` of a job file."""
    return _dimension({"int": [low, high], "step": step, "points": points}, when, otherwise)


def log_int(
    low: int,
    high: int,
    *,
    step: int | None = None,
    points: int | None = None,
    when: Mapping[str, object] | None = None,
    otherwise: object = None,
) -> Dimension:
    """A whole number from `low` to `high`, uniform in its logarithm."""
    return _dimension({"log_int": [low, high], "step": step, "points": points}, when, otherwise)


def normal(
    mean: float,
    deviation: float,
    *,
    truncate: tuple[float, float] | None = None,
    when: Mapping[str, object] | None = None,
    otherwise: object = None,
) -> Dimension:
    """A normal number, drawn between the ends of `truncate`, which all settings but those of your own models need."""
    bounds = None if truncate is None else list(truncate)
    return _dimension({"normal": [mean, deviation], "truncate": bounds}, when, otherwise)


def formula(text: str, *, when: Mapping[str, object] | None = None, otherwise: object = None) -> Dimension:
    """A number that follows from other settings of the trial: `formula("0.1 * batch_size / 256")`. No dimension by itself."""
    return _dimension({"formula": text}, when, otherwise)


def _dimension(form: Mapping[str, object], when: Mapping[str, object] | None, otherwise: object) -> Dimension:
    table = {**form, "when": dict(when) if when is not None else None, "otherwise": otherwise}
    return Dimension({key: value for key, value in table.items() if value is not None}, caller())


def dimensions_of(tables: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, Dimension]]:
    """The dimensions of a job file's tables, with their names: `training.optimizer.lr`, `model.hidden`, `seed`."""
    for key, value in tables.items():
        for table in value if isinstance(value, list) else [value]:
            if isinstance(table, Mapping):
                if any(form in table for form in FORMS):
                    yield prefix + key, Dimension(table)
                else:
                    yield from dimensions_of(table, f"{prefix}{key}.")


def as_dimension(value: object) -> object:
    """The same value, or the dimension that a value of Optuna's or Ray's spaces is here."""
    package = type(value).__module__.partition(".")[0]
    if package in ("optuna", "ray"):
        from sojourn.adapters.spaces import dimension_of

        return dimension_of(value)
    return value


def table_of(name: str) -> tuple[Sequence[str], str]:
    """The table that a setting of a space is of, as its path, and the key there.

    A name with a point says the table: `model.lr` and `optimizer.lr`. Other names are those of `[training]` and its tables,
    `seed`, and `window` of text; whatever else there is belongs to the models.
    """
    first, point, key = name.partition(".")
    if point and first in TABLES:
        return TABLES[first], key
    if name == "optimizer":
        return TABLES["optimizer"], "name"
    if name == "seed":
        return (), name
    if name == "window":
        return TABLES["data"], name
    for table, names in (("training", TRAINING), ("optimizer", OPTIMIZER), ("schedule", SCHEDULE), ("augment", AUGMENT)):
        if name in names:
            return TABLES[table], name
    return TABLES["model"], name
