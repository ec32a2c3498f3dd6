"""A search: a job file as an object, which is checked, submitted and waited for."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sojourn.job import Job, follow
from sojourn.job.views import short_names
from sojourn.search import code, toml
from sojourn.search.data import Data, path_of
from sojourn.search.models import Model, TaskCode, model_of
from sojourn.search.places import Place, arguments_of_call, caller
from sojourn.search.space import Dimension, as_dimension, dimensions_of, table_of
from sojourn.server import program
from sojourn.server.errors import CommandFailed, InvalidSearch, Problem
from sojourn.server.embedded import FOLDER
from sojourn.server.server import Server, current

PATHS = ("train", "valid", "test", "tokenizer", "labels")
"""Keys of `[data]` that name files."""


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
        - `training`, `search`, `metrics`, `placement`: keys of these tables that have no argument of their own.
        - `folder`: where data, models and job files are written.

        All others are the job file's keys of the same names.
        """
        self._folder = Path(folder).absolute()
        self._place = caller()
        self._models = [model_of(one) for one in (model if isinstance(model, (list, tuple)) else [model])]
        self._data = copy.copy(data) if isinstance(data, Data) else Data(data)
        self._tables: dict[str, Any] = {"data": {}, "training": {}, "search": {}}
        self._places: dict[str, Place] = {}
        self._source = arguments_of_call(self._place, type(self).__name__)
        keys: dict[str, object] = {
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
            "search.constraints": constraints,
        }
        for key, given in keys.items():
            if given is not None:
                self._set(key.split("."), given, self._source.get(key.rpartition(".")[2]))
        tables = {"training": training, "search": search, "metrics": metrics, "placement": placement}
        for table, values in tables.items():
            for key, entry in (values or {}).items():
                self._set([table, key], entry, self._source.get(f"{table}.{key}", self._source.get(table)))
        for key, part in {"valid": valid, "test": test, "label": label}.items():
            if part is not None:
                setattr(self._data, key, part)
        for key in ("data", "valid", "test", "label"):
            if key in self._source:
                self._places["data" if key == "data" else f"data.{key}"] = self._source[key]
        self._take_space(space or {})
        self._resolved: dict[str, Any] | None = None

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], *, folder: str | os.PathLike[str] = FOLDER) -> Search:
        """The search of a job file. Relative paths in it are relative to the file, as for the command.

        Raises `OSError` where there is no such file, and `ValueError` where it isn't TOML.
        """
        file = Path(path).absolute()
        tables = toml.read(file)
        search = cls.__new__(cls)
        search._folder = Path(folder).absolute()
        search._place = Place(str(file), 1)
        search._models = []
        search._places = {}
        search._source = {}
        search._resolved = _with_absolute_paths(tables, file.parent)
        return search

    def dimensions(self) -> dict[str, Dimension]:
        """What the search varies, by the last word of the settings' names, or by the whole name where two end alike.

        Of models in a list that vary the same setting, the first one's dimension is given.
        """
        found: dict[str, Dimension] = {}
        for name, dimension in dimensions_of(self._job()):
            found.setdefault(name, dimension)
        return short_names(found)

    def with_method(self, method: str) -> Search:
        """The same search with this method where it says none."""
        if self._job().get("search", {}).get("method") is not None:
            return self
        search = copy.copy(self)
        tables = self._job()
        search._resolved = {**tables, "search": {**tables.get("search", {}), "method": method}}
        return search

    def to_toml(self) -> str:
        """The job file's text. Data that is in memory, and code of models, is written into the search's folder first."""
        return toml.write(self._job())

    def validate(self) -> dict[str, Any]:
        """Checks the search and its data, as `sojourn validate` does; what would run, as its JSON.

        Raises `InvalidSearch` with the problems, each with the Python line that gave the value.
        """
        file = self._write()
        report: dict[str, Any] = self._run(["validate", str(file)], accepted=(0, program.INVALID))
        if not report["valid"]:
            raise InvalidSearch([self._problem(problem, file) for problem in report["problems"]])
        return report

    def submit(self, *, on: Server | None = None, again: bool = False, note: str | None = None) -> Job:
        """Submits the search to a server, `on` or the one that is found (see `sojourn.connect`), and returns its job.

        An identical job that the server has already is the one that is returned, unless `again` is true. Raises
        `InvalidSearch`, `CommandFailed`, `Unreachable`.
        """
        server = on or current()
        file = self._write()
        options = ["--again"] * again + (["--note", note] if note is not None else [])
        try:
            report = server.run("submit", str(file), *options, environment=self._environment())
        except CommandFailed as failed:
            if failed.exit_code == program.INVALID:
                self.validate()
            raise
        return Job(server, int(report["job"]), {str(entry): model for entry, model in self._codes().items()})

    def run(
        self, *, on: Server | None = None, again: bool = False, progress: bool = True, on_interrupt: str = "leave"
    ) -> Job:
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
        return f"<sojourn search {self._tables.get('name') or _name_of(self._models)} in {self._folder}>"

    def _set(self, path: Sequence[str], value: object, place: Place | None) -> None:
        """Sets a key of a table, and keeps where its value comes from. A word for a table is the table's `name`."""
        value = as_dimension(value)
        own = value.place if isinstance(value, (Dimension, Model)) else None
        place = own or place or self._place
        table = self._tables
        for key in path[:-1]:
            inner = table.setdefault(key, {})
            if not isinstance(inner, dict):
                inner = table[key] = {"name": inner}
            table = inner
        before = table.get(path[-1])
        if isinstance(before, dict) and not isinstance(value, Mapping):
            before["name"] = value
        elif isinstance(before, dict) and isinstance(value, Mapping):
            before.update(value)
        else:
            table[path[-1]] = dict(value) if isinstance(value, Mapping) else value
        if place is not None:
            self._places[".".join(path)] = place

    def _take_space(self, space: Mapping[str, object]) -> None:
        """Gives each setting of a space to its table; those of models to every model's."""
        tables = [dict(model.table) for model in self._models]
        for name, value in space.items():
            value = as_dimension(value)
            path, key = table_of(name)
            place = self._source.get(f"space.{name}", self._source.get("space"))
            if path == ("model",):
                for index, table in enumerate(tables):
                    table[key] = value
                    own = value.place if isinstance(value, Dimension) else None
                    found = own or place or self._place
                    if found is not None:
                        self._places[f"model[{index}].{key}"] = found
            else:
                self._set([*path, key], value, place)
        self._model_tables = tables

    def _job(self) -> dict[str, Any]:
        """The tables of the job file, made once: data is written, code has its entry."""
        if self._resolved is None:
            models = []
            for model, table in zip(self._models, self._model_tables):
                entry = {} if model.code is None else {"entry": code.entry_of(model.code, self._folder)}
                models.append({key: plain(as_dimension(value)) for key, value in {**table, **entry}.items()})
            tables = {key: plain(value) for key, value in self._tables.items() if value}
            optimizer = tables.get("training", {}).get("optimizer")
            if isinstance(optimizer, dict) and "name" not in optimizer:
                tables["training"]["optimizer"] = {"name": "adam", **optimizer}
            data = {**self._data.table(self._folder), **tables.pop("data", {})}
            name = tables.pop("name", None) or _name_of(self._models)
            seed = {"seed": tables.pop("seed")} if "seed" in tables else {}
            data = {key: plain(value) for key, value in data.items()}
            self._resolved = {"name": name, **seed, "data": _located(data), "model": models, **tables}
        return self._resolved

    def _codes(self) -> dict[str, TaskCode]:
        """The classes and functions of the models, by their entries."""
        tables = self._job().get("model", [])
        return {table["entry"]: model.code for table, model in zip(tables, self._models) if model.code is not None}

    def _environment(self) -> dict[str, str]:
        """What the exporter needs of this process: where it imports from."""
        entries = [table["entry"] for table in self._job().get("model", []) if isinstance(table.get("entry"), str)]
        if not entries:
            return {}
        beside = [str(Path(entry.partition(":")[0]).parent) for entry in entries]
        return {"PYTHONPATH": os.pathsep.join(dict.fromkeys([*beside, code.search_path()]))}

    def _write(self) -> Path:
        """The job file, called by the digest of its text."""
        text = self.to_toml()
        folder = self._folder / "jobs"
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError), open(self._folder / ".gitignore", "x", encoding="utf-8") as ignored:
            ignored.write("*\n")
        file = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.toml"
        if not file.exists():
            partial = file.with_name(f".{os.getpid()}-{file.name}")
            partial.write_text(text, encoding="utf-8")
            partial.replace(file)
        return file

    def _run(self, arguments: list[str], accepted: tuple[int, ...]) -> Any:
        return program.run(arguments, self._environment(), accepted)

    def _problem(self, problem: Mapping[str, Any], file: Path) -> Problem:
        """A problem of the job file, with the Python line that caused it in place of the file's."""
        key = problem.get("key")
        place = self._place_of(key) if key else None
        message = str(problem["message"]).replace(f"{file}: ", "")
        for entry, model in self._codes().items():
            message = message.replace(entry.rpartition(":")[0], code.file_of(model) or entry)
        place = place or self._place
        return Problem(message, key, *(place or (None, None)))

    def _place_of(self, key: str) -> Place | None:
        """The place of a key, or of the innermost table around it that has one: that of `training.optimizer.lr`, for example."""
        if key.startswith("model["):
            index = int(key[len("model[") : key.index("]")])
            of_model = self._models[index].place if index < len(self._models) else None
            return self._places.get(key) or of_model
        words = key.split(".")
        for length in range(len(words), 0, -1):
            found = self._places.get(".".join(words[:length]))
            if found is not None:
                return found
        return None


def plain(value: object) -> Any:
    """A value as TOML has it: dimensions as their tables, in lists and dicts too."""
    if isinstance(value, Dimension):
        return {key: plain(one) for key, one in value.table.items()}
    if isinstance(value, Mapping):
        return {str(key): plain(as_dimension(one)) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value


def _located(data: dict[str, Any]) -> dict[str, Any]:
    """A `[data]` table with absolute paths."""
    return {key: path_of(value) if key in PATHS and isinstance(value, str) else value for key, value in data.items()}


def _with_absolute_paths(tables: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The tables of a job file that may lie anywhere."""

    def located(path: Any) -> Any:
        if not isinstance(path, str) or "://" in path:
            return path
        return str(folder / Path(path).expanduser())

    def of(table: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
        return {key: located(value) if key in keys else value for key, value in table.items()}

    data = of(tables.get("data", {}), PATHS)
    for part in ("valid", "test"):
        if isinstance(data.get(part), dict):
            data[part] = of(data[part], ("data", "labels"))
    models = [of(model, ("entry", "init")) for model in tables.get("model", [])]
    return {**tables, **({"data": data} if data else {}), **({"model": models} if models else {})}


def _name_of(models: Sequence[Model]) -> str:
    """A name for people: those of the models."""
    names = [getattr(model.code, "__name__", None) or model.table.get("arch") or "model" for model in models]
    return "-".join(dict.fromkeys(str(name).lower() for name in names))[:100]
