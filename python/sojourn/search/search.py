"""A search: a job file as an object, which is checked, submitted and waited for."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sojourn.job import Job, follow
from sojourn.job.views import short_names
from sojourn.search import toml
from sojourn.search.draft import Draft
from sojourn.search.job_file import JobFile
from sojourn.search.models import Model, TaskCode, model_of
from sojourn.search.space import Dimension, dimensions_of
from sojourn.server import program
from sojourn.server.embedded import FOLDER
from sojourn.server.errors import CommandFailed, InvalidSearch
from sojourn.server.server import Server, current


class Search:
    """A search over models and settings, with the keys of a [job file](docs/job-file.md).

        search = sojourn.Search(
            Net, data=(X, y), valid=0.2,
            space={"width": sojourn.choice(16, 32), "lr": sojourn.log_uniform(1e-4, 1e-2)},
            epochs=10, trials=24, method="tpe", stopping="asha", metric="valid/accuracy")
        job = search.run()

    Nothing is checked here: `validate`, `submit` and `run` have the program `sojourn` check all of it, and say the Python line
    that gave a wrong value.
    """

    def __init__(
        self,
        model: TaskCode | Model | str | Sequence[TaskCode | Model | str],
        data: object,
        *,
        epochs: int,
        valid: object = None,
        test: object = None,
        label: str | None = None,
        space: Mapping[str, object] | None = None,
        trials: int | None = None,
        method: str | Mapping[str, object] | None = None,
        stopping: str | Mapping[str, object] | None = None,
        metric: str | None = None,
        goal: str | None = None,
        target: float | None = None,
        wall_time: str | None = None,
        repeat: int | None = None,
        folds: int | None = None,
        refit: bool | None = None,
        constraints: Sequence[str] | None = None,
        batch_size: int | Dimension | str | None = None,
        optimizer: str | Mapping[str, object] | Dimension | None = None,
        schedule: str | Mapping[str, object] | None = None,
        loss: str | None = None,
        name: str | None = None,
        seed: int | Dimension | None = None,
        training: Mapping[str, object] | None = None,
        search: Mapping[str, object] | None = None,
        metrics: Mapping[str, object] | None = None,
        placement: Mapping[str, object] | None = None,
        folder: str | os.PathLike[str] = FOLDER,
    ) -> None:
        """A search of one model, or of several in a list.

        - `model`: a `Task`'s class, a function that returns a Keras model, `sojourn.mlp(hidden=[64])`, `sojourn.graph(Net, ...)`,
          an entry `"model.py:Net"`, or the file of an exported model to start from.
        - `data`: a path or URL, `(X, y)`, a DataFrame, a dict of arrays, a data set, or `sojourn.Data(...)` with more keys of
          `[data]`. X has the shape `[rows, ...]`, y `[rows]`. `valid` and `test` are shares of the rows, or data.
        - `space`: settings by name; each is a dimension, or a value for all trials. `lr`, `batch_size` and the like go where the
          job file has them, all other names to the models; `model.lr` and `optimizer.lr` tell two of one name apart.
        - `folds`: each configuration is trained so many times, each time without another part of the rows, on which it is evaluated;
          configurations are compared by the mean. `valid` is left out then. With `refit=True` the best configuration is trained on all
          rows in the end.
        - `training`, `search`, `metrics`, `placement`: keys of these tables that have no argument of their own.
        - `folder`: where data, models and job files are written.

        All others are the job file's keys of the same names.
        """
        models = model if isinstance(model, (list, tuple)) else [model]
        draft = Draft([model_of(one) for one in models], data, type(self).__name__)
        draft.set_keys(
            {
                "name": name,
                "seed": seed,
                "training.epochs": epochs,
                "training.batch_size": batch_size,
                "training.optimizer": optimizer,
                "training.schedule": schedule,
                "training.loss": loss,
                "search.trials": trials,
                "search.method": method,
                "search.stopping": stopping,
                "search.metric": metric,
                "search.goal": goal,
                "search.target": target,
                "search.wall_time": wall_time,
                "search.repeat": repeat,
                "search.folds": folds,
                "search.refit": refit,
                "search.constraints": constraints,
            }
        )
        draft.set_table("training", training)
        draft.set_table("search", search)
        draft.set_table("metrics", metrics)
        draft.set_table("placement", placement)
        draft.set_data({"valid": valid, "test": test, "label": label})
        draft.set_space(space)
        self._folder = Path(folder).absolute()
        self._origin: Draft | JobFile = draft

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], *, folder: str | os.PathLike[str] = FOLDER) -> Search:
        """The search of a job file. Relative paths in it are relative to the file, as for the command.

        Raises `OSError` where there is no such file, and `ValueError` where it isn't TOML.
        """
        search = cls.__new__(cls)
        search._folder = Path(folder).absolute()
        search._origin = JobFile.read(Path(path).absolute())
        return search

    @property
    def _job_file(self) -> JobFile:
        """The job file, made once: data is written, code has its entry."""
        if isinstance(self._origin, Draft):
            self._origin = self._origin.finish(self._folder)
        return self._origin

    def dimensions(self) -> dict[str, Dimension]:
        """The dimensions of the search by the last words of their names, or by the whole name where two end alike.

        Of models in a list that vary the same setting, the first one's dimension is given.
        """
        found: dict[str, Dimension] = {}
        for name, dimension in dimensions_of(self._job_file.tables):
            found.setdefault(name, dimension)
        return short_names(found)

    def with_method(self, method: str) -> Search:
        """The same search with this method where it says none."""
        search = copy.copy(self)
        search._origin = self._job_file.with_method(method)
        return search

    def to_toml(self) -> str:
        """The job file's text. Data that is in memory, and code of models, is written into the search's folder first."""
        return toml.write(self._job_file.tables)

    def validate(self) -> dict[str, Any]:
        """Checks the search and its data, as `sojourn validate` does; what would run, as its JSON.

        Raises `InvalidSearch` with the problems, each with the Python line that gave the value.
        """
        job_file = self._job_file
        command = ["validate", str(job_file.write(self._folder))]
        report: dict[str, Any] = program.run(command, job_file.environment(), accepted=(0, program.INVALID))
        if not report["valid"]:
            raise InvalidSearch([job_file.problem(problem) for problem in report["problems"]])
        return report

    def submit(self, *, on: Server | None = None, again: bool = False, note: str | None = None) -> Job:
        """Submits the search to a server, `on` or the one that is found (see `sojourn.connect`), and returns its job.

        An identical job that the server has already is the one that is returned, unless `again` is true. Raises
        `InvalidSearch`, `CommandFailed`, `Unreachable`.
        """
        job_file = self._job_file
        file = job_file.write(self._folder)
        server = on or current()
        options = ["--again"] * again + (["--note", note] if note is not None else [])
        try:
            report = server.run("submit", str(file), *options, environment=job_file.environment())
        except CommandFailed as failed:
            if failed.exit_code == program.INVALID:
                self.validate()
            raise
        return Job(server, int(report["job"]), job_file.codes)

    def run(self, *, on: Server | None = None, again: bool = False, progress: bool = True, on_interrupt: str = "leave") -> Job:
        """Submits the search and waits for its end; the job.

        Progress goes to standard error. Ctrl-C leaves the job running and says so, a second one within a second cancels it;
        with `on_interrupt="cancel"` the first one does. A job that was submitted before goes on, or is there with its results.

        Raises `JobFailed` where no trial finished, and what `submit` raises.
        """
        if on_interrupt not in ("leave", "cancel"):
            raise ValueError(f'on_interrupt is "leave" or "cancel", and not {on_interrupt!r}')
        job = self.submit(on=on, again=again)
        follow(job, progress=progress, cancels=on_interrupt == "cancel")
        return job

    def __repr__(self) -> str:
        name = self._origin.name if isinstance(self._origin, Draft) else self._origin.tables.get("name")
        return f"<sojourn search {name} in {self._folder}>"
