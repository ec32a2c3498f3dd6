"""A job at one moment, as its board shows it: asked for once, so that all parts of a board belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from sojourn.job.views import Status, Trial
from sojourn.server.errors import Refused

if TYPE_CHECKING:
    from sojourn.job.job import Job

WORKING = "live"
"""The state of a host that answers."""


@dataclass(frozen=True)
class Host:
    """A machine that answers: `busy` of its `slots` train."""

    name: str
    busy: int
    slots: int

    @classmethod
    def of(cls, view: Mapping[str, Any]) -> Host:
        return cls(str(view["name"]), len(view["leases"]), int(view["slots"]))


@dataclass(frozen=True)
class Snapshot:
    """`trials` are in the order of their numbers; `hosts` is None where the token may not list them."""

    status: Status
    trials: Sequence[Trial]
    hosts: Sequence[Host] | None
    is_higher_better: bool
    taken_at: datetime

    @classmethod
    def of(cls, job: Job) -> Snapshot:
        """The job as it is now. Raises `Refused` and `Unreachable`."""
        detail = job.detail()
        try:
            hosts = [Host.of(view) for view in job.server.hosts() if view["state"] == WORKING]
        except Refused:
            hosts = None
        status = Status.of(detail["summary"])
        is_higher_better = detail["spec"]["search"].get("goal") == "max"
        return cls(status, job.trials(), hosts, is_higher_better, datetime.now(timezone.utc))

    def ranked(self) -> list[Trial]:
        """The trials with a value, the best first; then the others by number."""
        sign = -1.0 if self.is_higher_better else 1.0
        return sorted(
            self.trials, key=lambda trial: (trial.value is None, sign * trial.value if trial.value is not None else 0.0, trial.trial)
        )
