"""A search whose combinations come from this process: an optimiser of Optuna or Nevergrad, or a loop of one's own.

    study = sojourn.ask_tell(search, trials=24)
    while study.wait():                                     # until a trial has ended, or there is room for one
        study.tell(lambda ended: sampler.tell(ended.key, ended.value))
        for _ in range(study.room):
            trial = sampler.ask(distributions)
            study.ask(trial.params, key=trial)

The server keeps all trials. A process that is killed and started again finds them: `key` is None for trials of before.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sojourn.job.job import Job
from sojourn.job.views import short_names
from sojourn.job.waiting import Patience, pauses
from sojourn.server.errors import Refused

if TYPE_CHECKING:
    from sojourn.search.search import Search
    from sojourn.server.server import Server

UNDER_WAY = ("running", "waiting")
CONFLICT = 409


@dataclass(frozen=True)
class Asked:
    """A trial of a study. `key` is what `Study.ask` was given with it, `values` its settings by their short names.

    `curve` has the job's metric after each epoch, None where that is no finite number; `value` the best of it. `state` is
    `running`, `waiting` for a decision, `finished` (also one that was stopped), `failed` or `cancelled`.
    """

    trial: int
    key: Any = field(compare=False)
    values: Mapping[str, Any]
    state: str
    epochs: int
    curve: tuple[float | None, ...]
    value: float | None

    @property
    def has_ended(self) -> bool:
        """Does the trial train no more?"""
        return self.state not in UNDER_WAY


class Study:
    """A job that trains what this process asks for. Made by `sojourn.ask_tell`; `job` is the job."""

    def __init__(self, job: Job, trials: int | None = None) -> None:
        """`trials` is how many combinations there are to be in all; by default as many as the job allows."""
        self.job = job
        self._trials = trials
        self._keys: dict[int, Any] = {}
        self._told: set[int] = set()
        self._look()

    @property
    def room(self) -> int:
        """How many trials may be asked for now, so that two for each slot are under way and no more than there are to be."""
        view = self._view
        if not (view["open"] and view["running"]):
            return 0
        return max(min(int(view["room"]), self._left()), 0)

    @property
    def direction(self) -> str:
        """`maximize` or `minimize`, as Optuna calls it: what is better of the job's metric."""
        return "maximize" if self.job.detail()["spec"]["search"]["goal"] == "max" else "minimize"

    def trials(self) -> list[Asked]:
        """All trials as they are now, by number, those of earlier processes too."""
        self._look()
        return self._seen()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until there is room for a trial, or one has ended that was not told yet; False once there is nothing to come.

        An optimiser that has no further values calls `end`: as long as there is room, this returns at once. Raises
        `TimeoutError` after `timeout` seconds.
        """
        for trials in self.watch(timeout):
            if self.room or any(trial.has_ended and trial.trial not in self._told for trial in trials):
                return True
        return False

    def watch(self, timeout: float | None = None) -> Iterator[list[Asked]]:
        """All trials, each time that one has a further epoch or there is room for one, until the job has ended.

        Raises `TimeoutError` after `timeout` seconds.
        """
        before: list[Asked] | None = None
        patience = Patience()
        for pause in pauses(timeout):
            view = patience.ask(self.job.search)
            if view is None:
                time.sleep(pause)
                continue
            self._view = view
            trials, running = self._seen(), self._view["running"]
            if trials != before or self.room:
                before = trials
                yield trials
            if not running:
                return
            if self._view["open"] and self._left() <= 0:
                self.end()
            time.sleep(pause)

    def ask(self, values: Mapping[str, object], *, key: object = None, clone: int | None = None, why: str | None = None) -> int:
        """Asks for a trial with these values, by the names of settings (`lr`, `optimizer.lr`); its number.

        `key` is what `tell` gives back with its result. With `clone` it goes on from that trial's weights, and `values` are
        those that differ. Raises `Refused`: 409 where a trial has the same combination already, 400 for values that the space
        doesn't have.
        """
        trial = {"values": dict(values), **({} if clone is None else {"from": clone})}
        is_last = self._left() == 1
        (number, *_) = self.job.change(add=[trial], end=is_last or None, why=why)
        self._view["suggested"] += 1
        self._view["room"] -= 1
        self._view["open"] = not is_last
        self._keys[number] = key
        return number

    def tell(self, result: Callable[[Asked], object]) -> None:
        """Calls `result` with each trial that has ended and wasn't told yet, in the order of their numbers."""
        for trial in self._seen():
            if trial.has_ended and trial.trial not in self._told:
                self._told.add(trial.trial)
                result(trial)

    def stop(self, trial: int, *, why: str | None = None) -> bool:
        """Ends a trial with what it has, as a pruner wants it; False where it has ended by itself since."""
        try:
            self.job.stop(trial, why=why)
        except Refused as refused:
            if refused.status != CONFLICT:
                raise
            return False
        return True

    def end(self) -> None:
        """No further trials: the job ends with those that it has."""
        try:
            self.job.change(end=True)
        except Refused as refused:
            if refused.status != CONFLICT:  # it was ended before
                raise
        self._view["open"] = False

    def _look(self) -> None:
        self._view = self.job.search()

    def _left(self) -> int:
        wanted = self._view["wanted"] if self._trials is None else min(self._trials, self._view["wanted"])
        return int(wanted) - int(self._view["suggested"])

    def _seen(self) -> list[Asked]:
        return [self._asked(view) for view in self._view["trials"]]

    def _asked(self, view: Mapping[str, Any]) -> Asked:
        return Asked(
            trial=view["trial"],
            key=self._keys.get(view["trial"]),
            values=short_names(view["choices"]),
            state=view["state"],
            epochs=view["epochs"],
            curve=tuple(view["values"]),
            value=view.get("best"),
        )


def ask_tell(search: Search | Job | str | os.PathLike[str], *, trials: int | None = None, on: Server | None = None) -> Study:
    """Submits a search whose combinations come from this process.

    `search` is a `Search`, the path of a job file, or a job that was submitted. Where it says no `method`, that is `ask-tell`.
    `trials` is how many combinations there are to be in all. A search that was submitted before goes on with its trials.
    """
    if isinstance(search, Job):
        return Study(search, trials)
    from sojourn.search import Search

    driven = search if isinstance(search, Search) else Search.from_toml(search)
    return Study(driven.with_method("ask-tell").submit(on=on), trials)
