"""What a server says of jobs and trials, as typed rows. `raw` has the answer as it came, with all fields of the interface.

Epochs, trials and shards count from 0, as in the interface; `epochs` are how many were trained.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas

T = TypeVar("T")
ENDED = ("finished", "failed", "cancelled")


@dataclass(frozen=True)
class Status:
    """How far a job is. `state` is `running`, `paused`, `finished`, `failed` or `cancelled`.

    `value` is the best trial's value of `metric` so far, `seconds_left` an estimate, `waiting` why nothing goes on.
    """

    job: int
    name: str
    state: str
    metric: str
    trials: int
    trials_ended: int
    hops: int
    hops_expected: int
    value: float | None
    best_name: str | None
    waiting: str | None
    seconds_left: float | None
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def has_ended(self) -> bool:
        """Is there nothing left to train?"""
        return self.state in ENDED

    @classmethod
    def of(cls, view: Mapping[str, Any]) -> Status:
        best = view.get("best") or {}
        left = (view.get("time_left") or {}).get("expected")
        return cls(
            job=int(view["job"]),
            name=view["name"],
            state=view["state"],
            metric=view["metric"],
            trials=view["trials"],
            trials_ended=view["trials_finished"] + view["trials_failed"],
            hops=view["hops"],
            hops_expected=view["hops_expected"],
            value=best.get("value"),
            best_name=best.get("name"),
            waiting=view.get("waiting"),
            seconds_left=None if left is None else left / 1000,
            raw=view,
        )

    def __str__(self) -> str:
        best = f", best {self.value:.4f} ({self.best_name})" if self.value is not None else ""
        return (
            f"job {self.job} is {self.state}: {self.trials_ended} of {self.trials} trials ended, "
            f"{self.hops} of {self.hops_expected} hops{best}"
        )


@dataclass(frozen=True)
class Point:
    """An evaluated epoch of a trial. `metrics` has means over rows by name: `train/loss`, `valid/accuracy`, ..."""

    epoch: int
    metrics: Mapping[str, float]
    at: datetime | None
    """When the server learned it, in UTC."""

    @classmethod
    def of(cls, view: Mapping[str, Any]) -> Point:
        metrics: dict[str, float] = {}
        for split in ("train", "valid"):
            sums = view[split]
            rows = sums["rows"]
            if not rows:
                continue
            metrics[f"{split}/loss"] = sums["loss"] / rows
            for name, key in (("accuracy", "correct"), ("top-k", "top_k")):
                if sums.get(key) is not None:
                    metrics[f"{split}/{name}"] = sums[key] / rows
            if split == "valid" and sums.get("correct") is None and not sums.get("named"):
                metrics["valid/rmse"] = math.sqrt(max(sums["loss"] / rows, 0.0))
            metrics.update((f"{split}/{name}", value / rows) for name, value in (sums.get("named") or {}).items())
        if view.get("f1") is not None:
            metrics["valid/f1"] = view["f1"]
        metrics.update(
            (f"valid/{name}", value) for name, value in (view.get("own") or {}).items() if isinstance(value, (int, float))
        )
        at = view.get("at") or None
        return cls(view["epoch"], metrics, at and datetime.fromtimestamp(at / 1000, timezone.utc))


@dataclass(frozen=True)
class Trial:
    """A trial of a search.

    `values` has what it took where the search varies, by the last words of the settings' names. `phase` is `not_started`,
    `running`, `finished`, `pruned`, `failed` or `cancelled`; `reason` says why it ended early, or by which error. `value` is its
    best value of the job's metric, after the epoch `best_epoch`. `checkpoint` is the SHA-256 of its last checkpoint. `refit` is, of
    the final model of cross-validation, the first trial of its configuration: its value is the mean of the folds.
    """

    trial: int
    name: str
    phase: str
    values: Mapping[str, object]
    epochs: int
    value: float | None
    best_epoch: int | None
    metrics: Mapping[str, float]
    curve: tuple[Point, ...] = field(repr=False)
    checkpoint: str | None
    reason: str | None
    raw: Mapping[str, Any] = field(repr=False, compare=False)
    refit: int | None = None

    @classmethod
    def of(cls, view: Mapping[str, Any]) -> Trial:
        best = view.get("best") or {}
        curve = tuple(Point.of(point) for point in view["curve"])
        at_best = next((point for point in curve if point.epoch == best.get("epoch")), None)
        state = view["state"]
        failed = next(iter(state.values())) if isinstance(state, dict) else None
        error = failed.get("error") if isinstance(failed, dict) else failed
        return cls(
            trial=view["trial"],
            name=view.get("name") or view["arch"],
            phase=view.get("phase") or (state if isinstance(state, str) else "failed"),
            values=short_names(view["choices"]),
            epochs=view["epoch"],
            value=best.get("value"),
            best_epoch=best.get("epoch"),
            metrics=at_best.metrics if at_best else {},
            curve=curve,
            checkpoint=(view.get("checkpoint") or {}).get("sha256"),
            reason=error or view.get("stopped"),
            refit=view.get("refit"),
            raw=view,
        )


class Trials(list[Trial]):
    """The trials of a job, in the order of their numbers."""

    def configurations(self) -> list[list[Trial]]:
        """The trials by configuration: those of all folds together, in order, without the final model; without folds each alone."""
        found: list[list[Trial]] = []
        for trial in self:
            if trial.refit is not None:
                continue
            if trial.values.get("fold", 0) == 0:
                found.append([])
            found[-1].append(trial)
        return found

    def folds_of(self, trial: Trial) -> list[Trial]:
        """The trials that a trial is compared with as one: the folds of its configuration, or of that which it trains on all rows."""
        first = trial.trial if trial.refit is None else trial.refit
        return next(folds for folds in self.configurations() if any(one.trial == first for one in folds))

    def to_pandas(self) -> pandas.DataFrame:
        """A frame with a row for each trial: `trial`, `name`, `phase`, `epochs`, `value`, `best_epoch`, values and metrics.

        Raises `ModuleNotFoundError` without pandas.
        """
        import pandas

        rows = (
            {
                **{name: getattr(trial, name) for name in ("trial", "name", "phase", "epochs", "value", "best_epoch")},
                **{name: _cell(value) for name, value in trial.values.items()},
                **trial.metrics,
            }
            for trial in self
        )
        return pandas.DataFrame(list(rows))


@dataclass(frozen=True)
class CurveRow:
    """A value of a metric of a trial after an epoch."""

    trial: int
    epoch: int
    metric: str
    value: float


class Curves(list[CurveRow]):
    """The learning curves of a job in long form."""

    @classmethod
    def of(cls, trials: Iterable[Trial]) -> Curves:
        return cls(
            CurveRow(trial.trial, point.epoch, metric, value)
            for trial in trials
            for point in trial.curve
            for metric, value in point.metrics.items()
        )

    def to_pandas(self) -> pandas.DataFrame:
        """A frame with the columns `trial`, `epoch`, `metric`, `value`. Raises `ModuleNotFoundError` without pandas."""
        import pandas

        return pandas.DataFrame([vars(row) for row in self], columns=["trial", "epoch", "metric", "value"])


def short_names(choices: Mapping[str, T]) -> dict[str, T]:
    """Settings by the last word of their names, or by the whole name where two end alike."""
    short = [name.rpartition(".")[2] for name in choices]
    return {last if short.count(last) == 1 else name: value for last, (name, value) in zip(short, choices.items())}


def _cell(value: object) -> object:
    """A value as a cell of a table: lists as text, which can be compared and grouped."""
    return str(value) if isinstance(value, list) else value
