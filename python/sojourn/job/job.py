"""A job of a server: what it has come to, and what can be changed while it runs and after it has ended.

Calls have the names of the command line's. What the server does goes over HTTP; what the command does on this machine (export,
predictions, replays, reports) is done by the program `sojourn`.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from statistics import fmean
from typing import TYPE_CHECKING, Any

from sojourn.job.best import Best
from sojourn.job.views import Curves, Status, Trial, Trials
from sojourn.job.waiting import Patience, pauses
from sojourn.server.errors import SojournError

if TYPE_CHECKING:
    from sojourn.job.later import LaterJob
    from sojourn.server.server import Server

EVENTS_OF_A_CALL = 1000
SPLITS = ("test", "valid")
MICROS, MILLIS = 1_000_000, 1000
"""Millionths of a US dollar, and milliseconds: the interface's units."""


class Job:
    """A job on a server; made by `Search.submit`, `Search.run` and `Server.job`.

    All calls raise `Refused` with the server's words, and `Unreachable` where no server answers.
    """

    def __init__(self, server: Server, number: int, codes: Mapping[str, Callable[..., object]] | None = None) -> None:
        """`codes` has the classes of models that this script submitted, by their entries."""
        self.server = server
        self.number = number
        self.codes = dict(codes or {})

    def __repr__(self) -> str:
        return f"<job {self.number} on {self.server.url}>"

    def _repr_html_(self) -> str:
        """The board of the job as HTML, with progress, curves, leader board and hosts of this moment."""
        from sojourn.notebook import html

        return html(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """The same for a notebook, with the text for what shows no HTML."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _ipython_display_(self) -> None:
        """Shows the live board. Raises `NotImplementedError`, by which IPython takes the forms above, where there is none."""
        from sojourn.notebook import display_live

        if not display_live(self):
            raise NotImplementedError("the board of this job isn't live")

    @property
    def aio(self) -> LaterJob:
        """The same calls for `asyncio`: `await job.aio.wait()`, `async for status in job.aio.watch()`."""
        from sojourn.job.later import LaterJob

        return LaterJob(self)

    # What there is.

    @property
    def status(self) -> Status:
        """How far the job is, asked for anew."""
        return Status.of(self.detail()["summary"])

    def detail(self) -> dict[str, Any]:
        """The job with all that was submitted, as `GET /v1/jobs/JOB` has it."""
        answer: dict[str, Any] = self.server.api.get(self._path())
        return answer

    def trials(self) -> Trials:
        """All trials with their learning curves."""
        return Trials(Trial.of(view) for view in self.server.api.get(self._path("trials")))

    def curves(self) -> Curves:
        """The learning curves of all trials: a row for each trial, epoch and metric."""
        return Curves.of(self.trials())

    @property
    def best(self) -> Best:
        """The best trial at its best epoch. Raises `SojournError` before an epoch of any trial was evaluated."""
        best = self.detail()["summary"].get("best")
        if best is None:
            raise SojournError(f"job {self.number} has no evaluated epoch yet")
        return self.trial(best["trial"])

    def trial(self, trial: int) -> Best:
        """Another trial at its best epoch, to predict with or to export. Raises `SojournError` where none was evaluated."""
        trials = self.trials()
        found = next((one for one in trials if one.trial == trial), None)
        if found is None or found.value is None:
            raise SojournError(f"trial {trial} of job {self.number} has no evaluated epoch")
        if found.refit is None:
            return Best(self, found)
        of_folds = [fold.metrics for fold in trials.folds_of(found)]
        return Best(self, found, {name: fmean(of[name] for of in of_folds) for name in of_folds[0]})

    def events(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """The job's history, in order, as `sojourn events --json` prints it; behind the journal's position `after`."""
        while True:
            page = self.server.api.get(self._path("events"), after=after, limit=EVENTS_OF_A_CALL)
            yield from page
            if len(page) < EVENTS_OF_A_CALL:
                return
            after = page[-1]["position"]

    def search(self) -> dict[str, Any]:
        """How far the search is, with the metric of each trial after each epoch: `sojourn search JOB --json`."""
        answer: dict[str, Any] = self.server.api.get(self._path("search"))
        return answer

    # Waiting.

    def watch(self, timeout: float | None = None) -> Iterator[Status]:
        """Each status in which something has changed, until the job has ended; the last one is that of its end.

        A server that is away is asked again for ten minutes. Raises `TimeoutError` after `timeout` seconds.
        """
        patience, before = Patience(), None
        for pause in pauses(timeout):
            status = patience.ask(lambda: self.status)
            if status is not None and status != before:
                before = status
                yield status
            if status is not None and status.has_ended:
                return
            time.sleep(pause)

    def wait(self, timeout: float | None = None) -> Status:
        """Waits until the job has ended, whatever came of it. Raises `TimeoutError` after `timeout` seconds."""
        *_, last = self.watch(timeout)
        return last

    # The whole job.

    def pause(self, *, now: bool = False) -> Status:
        """Nothing of the job is handed out until `resume`. `now` ends what runs too, after its batch."""
        return self._changed("pause", {"now": now})

    def resume(self) -> Status:
        """A paused job goes on."""
        return self._changed("resume")

    def cancel(self) -> Status:
        """Ends the job; its results stay. `extend(epochs=..., reopen=True)` has it go on."""
        return self._changed("cancel")

    def extend(
        self, epochs: int | None = None, *, trials: int | None = None, trial: int | None = None, reopen: bool = False
    ) -> Status:
        """Trains on to `epochs` in all, of `trial` alone where that is given; tries `trials` combinations in all."""
        if trials is not None:
            self.change(trials=trials)
        if epochs is not None:
            return self._changed("extend", {"epochs": epochs, "trial": trial, "reopen": reopen})
        return self.status

    def set(
        self,
        *,
        priority: int | None = None,
        share: int | None = None,
        max_hosts: int | None = None,
        budget: float | None = None,
        deadline: float | None = None,
        note: str | None = None,
    ) -> Status:
        """Changes a running job's placement (docs/job-file.md#placement), and any job's note.

        `budget` is in US dollars, the most that bought machines may cost for the job in all; 0 takes it away. `deadline` is in
        seconds from the job's submission, at least 60; 0 takes it away. `max_hosts` 0 is as many as there are.
        """
        placement = {
            "priority": priority,
            "share": share,
            "max_hosts": max_hosts,
            "budget": None if budget is None else round(budget * MICROS),
            "deadline": None if deadline is None else round(deadline * MILLIS),
        }
        given = {key: value for key, value in placement.items() if value is not None}
        if note is not None:
            self._changed("note", {"note": note})
        return self._changed("placement", given) if given else self.status

    def share(self, lifetime: float | None = None, *, label: str = "") -> str:
        """Makes a link to the job's page for whoever has no token; its address, which isn't given again.

        The link is good for `lifetime` seconds, at most 366 days, or until it is revoked. `label` is its name, for people.
        """
        request = {"label": label, "lifetime": None if lifetime is None else round(lifetime * MILLIS)}
        given = {key: value for key, value in request.items() if value is not None}
        return f"{self.server.url}/share#{self.server.api.post(self._path('shares'), given)['secret']}"

    def delete(self, *, preview: bool = False) -> dict[str, Any]:
        """Deletes a job that has ended, with its models; what goes. With `preview` nothing is deleted."""
        answer: dict[str, Any] = self.server.api.post("jobs/delete", {"jobs": [self.number], "preview": preview})
        return answer

    # Trials of the search.

    def change(self, **request: object) -> list[int]:
        """Changes the search: all that is asked for, or nothing; the trials that were added.

        The parts of a request are those of docs/search.md#reading-and-changing: `add`, `stop`, `go_on`, `retry`,
        `priorities`, `trials`, `end`, `why`. The call may be made again without effect: it carries a nonce.
        """
        given = {key: value for key, value in request.items() if value is not None}
        answer = self.server.api.post(self._path("search"), {"nonce": uuid.uuid4().hex, **given})
        return [int(trial) for trial in answer["added"]]

    def end(self, *, why: str | None = None) -> None:
        """Tries no more combinations: the job ends with the trials that it has."""
        self.change(end=True, why=why)

    def stop(self, trial: int, *, why: str | None = None) -> None:
        """Ends a trial with what it has."""
        self.change(stop=[trial], why=why)

    def revive(self, trial: int, *, why: str | None = None) -> None:
        """Lets a trial go on to its last epoch: one that was stopped, or that the search holds back."""
        epochs = next((view["epochs"] for view in self.server.api.get(self._path("trials")) if view["trial"] == trial), None)
        if epochs is None:
            raise SojournError(f"job {self.number} has no trial {trial}")
        self.change(go_on=[{"trial": trial, "epochs": epochs}], why=why)

    def retry(self, trial: int, *, values: Mapping[str, object] | None = None, why: str | None = None) -> int:
        """Runs a failed trial again from its beginning, or a new one with other `values`; the number of the trial that runs."""
        added = self.change(retry=[{"trial": trial, "values": dict(values or {})}], why=why)
        return added[0] if added else trial

    def clone(self, trial: int, *, values: Mapping[str, object] | None = None, why: str | None = None) -> int:
        """Adds a trial that goes on from a trial's weights and optimiser state, with other `values`; its number."""
        return self.change(add=[{"from": trial, "values": dict(values or {})}], why=why)[0]

    def prioritise(self, trial: int, priority: int = 1) -> None:
        """Puts a trial before the others of its job, whose priority is 0: -100 to 100."""
        self.change(priorities=[{"trial": trial, "priority": priority}])

    def widen(self, dimensions: Mapping[str, object], *, why: str | None = None) -> None:
        """Takes further combinations from these dimensions: `{"lr": sojourn.log_uniform(1e-5, 1e-1)}`. Raises `CommandFailed`."""
        from sojourn.search import toml
        from sojourn.search.draft import plain

        lines = [toml.pair(key, plain(value)) for key, value in dimensions.items()]
        flags = [word for line in lines for word in ("--widen", line)]
        self.server.run("search", str(self.number), *flags, *(["--why", why] if why is not None else []))

    def rollback(
        self,
        trial: int | None = None,
        epochs: int | None = None,
        *,
        host: int | None = None,
        preview: bool = False,
        reopen: bool = False,
    ) -> list[dict[str, Any]]:
        """Takes a trial back to where it had trained `epochs`, or all with results in doubt of a `host`; what is lost.

        Nobody is asked: `preview` says what would be lost. Raises `ValueError` where neither or both are given.
        """
        options = {"preview": preview, "reopen": reopen}
        if (trial is None) == (host is None) or (trial is None) != (epochs is None):
            raise ValueError("give a trial and its epochs, or a host")
        subject: dict[str, object] = (
            {"host": {"host": host, "options": options}}
            if host is not None
            else {"trial": {"trial": trial, "epochs": epochs, "options": options}}
        )
        answer: list[dict[str, Any]] = self.server.api.post(self._path("rollback"), subject)
        return answer

    # Models.

    def evaluate(self, trial: int | None = None, *, split: str | None = None, timeout: float | None = None) -> dict[str, Any]:
        """Evaluates a trial's best checkpoint, by default the best trial's, and waits: `metrics`, `by_class`, `arrays`.

        `split` is `test` or `valid`; by default `test`, and `valid` where the job has no test data. Raises `SojournError` where
        the evaluation fails, and `TimeoutError` after `timeout` seconds.
        """
        if split is not None and split not in SPLITS:
            raise ValueError(f"split is one of {', '.join(SPLITS)}, and not {split!r}")
        number = self.best.trial if trial is None else trial
        split = split or ("test" if self.detail()["data"].get("test") else "valid")
        for pause in pauses(timeout):
            state = self.server.api.post(self._path("trials", number, "evaluate"), {"split": split})["state"]
            if isinstance(state, dict) and "done" in state:
                done: dict[str, Any] = state["done"]
                return done
            if isinstance(state, dict) and "failed" in state:
                raise SojournError(f"the evaluation of trial {number} failed: {state['failed']['error']}")
            time.sleep(pause)
        raise AssertionError("`pauses` ends by an exception alone")

    def predict(self, data: object) -> Any:
        """Predictions of the best model; see `Best.predict`."""
        return self.best.predict(data)

    def export(
        self,
        *,
        csv: str | os.PathLike[str] | None = None,
        parquet: str | os.PathLike[str] | None = None,
        tensorboard: str | os.PathLike[str] | None = None,
        mlflow: str | None = None,
    ) -> dict[str, Any]:
        """Writes tables of the trials into folders, event files for TensorBoard, or runs into a server of MLflow.

        A model is exported by `job.best.export(path)`. Raises `CommandFailed`, and `ValueError` where nothing is asked for.
        """
        places = {"--csv": csv, "--parquet": parquet, "--tensorboard": tensorboard, "--mlflow": mlflow}
        flags = [word for flag, place in places.items() if place is not None for word in (flag, os.fspath(place))]
        if not flags:
            raise ValueError("say where to: csv=, parquet=, tensorboard= or mlflow=")
        answer: dict[str, Any] = self.server.run("export", str(self.number), *flags)
        return answer

    def replay(self, trial: int | None = None) -> dict[str, Any]:
        """Trains a trial again on this machine, by default the best, and compares every checkpoint.

        `verdict` of the answer is `identical`, `different` or `not-judgeable`, as `sojourn replay --json` prints it.
        """
        number = self.best.trial if trial is None else trial
        answer: dict[str, Any] = self.server.run("replay", str(self.number), "--trial", str(number), accepted=(0, 1))
        return answer

    def report(self, path: str | os.PathLike[str], *, replay: int = 0) -> dict[str, Any]:
        """Writes what came of the job into an HTML file.

        `replay` trains so many of the best trials again, and the file says the verdicts. Raises `CommandFailed`.
        """
        flags = ["--replay", str(replay)] if replay else []
        answer: dict[str, Any] = self.server.run("report", str(self.number), "-o", os.fspath(path), *flags)
        return answer

    def _path(self, *parts: object) -> str:
        return "/".join(["jobs", str(self.number), *map(str, parts)])

    def _changed(self, what: str, body: Mapping[str, object] | None = None) -> Status:
        given = None if body is None else {key: value for key, value in body.items() if value is not None}
        return Status.of(self.server.api.post(self._path(what), given))
