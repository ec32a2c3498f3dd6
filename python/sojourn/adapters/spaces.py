"""Search spaces of Optuna and Ray Tune as dimensions, and dimensions as Optuna's distributions.

`Search(space=...)` reads values of both by itself. What has no form in a job file is refused, with what comes nearest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sojourn.search.space import Dimension, choice, int_uniform, log_int, log_uniform, normal, uniform

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

DEFAULT_STEP = 1


def from_optuna(space: Mapping[str, Any]) -> dict[str, Dimension]:
    """A space of `optuna.distributions` as one for `Search`. Raises `ValueError` for a distribution that has no form here."""
    return {name: dimension_of(distribution) for name, distribution in space.items()}


def from_ray(space: Mapping[str, Any]) -> dict[str, object]:
    """A `param_space` of Ray Tune as one for `Search`: nested tables become names with points, constants stay.

    Raises `ValueError` for a domain that has no form here, such as `sample_from`.
    """
    found: dict[str, object] = {}
    for name, value in space.items():
        if isinstance(value, Mapping) and set(value) == {"grid_search"}:
            found[name] = choice(*value["grid_search"])
        elif isinstance(value, Mapping):
            found.update((f"{name}.{inner}", one) for inner, one in from_ray(value).items())
        else:
            found[name] = dimension_of(value) if type(value).__module__.startswith("ray.") else value
    return found


def to_optuna(space: Mapping[str, object]) -> dict[str, BaseDistribution]:
    """Dimensions as Optuna's distributions; lists as JSON, which `values_of` reads. Constants are left out.

    Raises `ValueError` for dimensions that Optuna has no distribution for: `normal`, `formula`, and those with `when`.
    """
    return {name: _distribution(name, value.table) for name, value in space.items() if isinstance(value, Dimension)}


def values_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """The values of an Optuna trial's parameters, for `Study.ask`: lists that `to_optuna` wrote as JSON are lists again."""
    return {
        name: json.loads(value) if isinstance(value, str) and value.startswith("[") else value for name, value in params.items()
    }


def params_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """An Optuna trial's parameters for values of a trial of Sojourn: the inverse of `values_of`."""
    return {name: json.dumps(value) if isinstance(value, list) else value for name, value in values.items()}


def dimension_of(value: Any) -> Dimension:
    """The dimension of one distribution of Optuna or domain of Ray Tune. Raises `ValueError` where there is none."""
    name = type(value).__name__
    if type(value).__module__.startswith("optuna."):
        if name == "CategoricalDistribution":
            return choice(*value.choices)
        if name == "FloatDistribution":
            return log_uniform(value.low, value.high) if value.log else uniform(value.low, value.high, step=value.step)
        if name == "IntDistribution":
            step = value.step if value.step != DEFAULT_STEP else None
            return log_int(value.low, value.high) if value.log else int_uniform(value.low, value.high, step=step)
    if name == "Categorical":
        return choice(*value.categories)
    if name in ("Float", "Integer"):
        return _of_ray_range(value, name == "Integer")
    raise ValueError(
        f"{value!r} has no form in a job file: sojourn.choice, uniform, log_uniform, int_uniform, log_int and normal do"
    )


def _of_ray_range(value: Any, is_whole: bool) -> Dimension:
    """A range of Ray Tune; the upper end of its whole numbers is left out, as `range` does."""
    sampler = value.get_sampler()
    step = getattr(sampler, "q", None)
    inner = sampler.get_sampler() if step is not None else sampler
    kind = type(inner).__name__.strip("_").lower()
    if kind.startswith("normal"):
        return normal(inner.mean, inner.sd)
    is_log = kind.startswith("loguniform")
    if is_whole:
        # A quantised range has its upper end.
        high = value.upper if step is not None else value.upper - 1
        return (log_int if is_log else int_uniform)(value.lower, high, step=step if step != DEFAULT_STEP else None)
    return (log_uniform if is_log else uniform)(value.lower, value.upper, step=step)


def _distribution(name: str, table: Mapping[str, Any]) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if "when" not in table:
        step = table.get("step")
        if "choice" in table:
            return CategoricalDistribution([json.dumps(one) if isinstance(one, list) else one for one in table["choice"]])
        form = next((form for form in ("uniform", "log_uniform", "int", "log_int") if form in table), None)
        if form is not None:
            low, high = table[form]
            if form.endswith("uniform"):
                return FloatDistribution(low, high, log=form.startswith("log"), step=step)
            return IntDistribution(low, high, log=form.startswith("log"), step=step or 1)
    raise ValueError(f"Optuna has no distribution for `{name}`, which is {dict(table)}")
