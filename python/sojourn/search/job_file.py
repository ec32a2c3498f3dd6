"""A job file: its tables, and what is known of where they come from. Written by `Draft`, or read from TOML."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sojourn.search import code, toml
from sojourn.search.models import TaskCode
from sojourn.search.places import Place
from sojourn.server.errors import Problem

DATA_PATHS = ("train", "valid", "test", "tokenizer", "labels")
"""Keys of `[data]` that name files."""
SPLIT_PATHS = ("data", "labels")
MODEL_PATHS = ("entry", "init")
FOLDER = "jobs"


@dataclass(frozen=True)
class JobFile:
    """The tables of a job file, in plain values. All paths in them are absolute.

    `codes` has classes and functions of models by their entries. `places` has lines of Python by the keys that they gave, such as
    `training.optimizer.lr` and `model[0].hidden`; `place` is the line of the search itself.
    """

    tables: Mapping[str, Any]
    codes: Mapping[str, TaskCode] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)
    place: Place | None = None

    @classmethod
    def read(cls, path: Path) -> JobFile:
        """The job file of a path, to which relative paths in it are relative. Raises what `toml.read` raises."""
        tables = toml.read(path)
        folder = path.parent

        def located(table: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
            return {key: _absolute(value, folder) if key in keys else value for key, value in table.items()}

        found = dict(tables)
        if "data" in tables:
            data = located(tables["data"], DATA_PATHS)
            splits = {key: located(data[key], SPLIT_PATHS) for key in ("valid", "test") if isinstance(data.get(key), dict)}
            found["data"] = {**data, **splits}
        if "model" in tables:
            found["model"] = [located(model, MODEL_PATHS) for model in tables["model"]]
        return cls(found, place=Place(str(path), 1))

    @property
    def models(self) -> Sequence[Mapping[str, Any]]:
        """The `[[model]]` tables."""
        models: Sequence[Mapping[str, Any]] = self.tables.get("model", [])
        return models

    def with_method(self, method: str) -> JobFile:
        """The same with this method of the search, where it says none."""
        search = {"method": method, **self.tables.get("search", {})}
        return replace(self, tables={**self.tables, "search": search})

    def write(self, folder: Path) -> Path:
        """The path of the file in a folder, where it is called by the digest of its text."""
        text = toml.write(self.tables)
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError), open(folder / ".gitignore", "x", encoding="utf-8") as ignored:
            ignored.write("*\n")
        file = folder / FOLDER / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.toml"
        if not file.exists():
            partial = file.with_name(f".{os.getpid()}-{file.name}")
            partial.write_text(text, encoding="utf-8")
            partial.replace(file)
        return file

    def environment(self) -> dict[str, str]:
        """The variables that the exporter needs: where this process, and each model's file, imports from."""
        entries = [model["entry"] for model in self.models if isinstance(model.get("entry"), str)]
        if not entries:
            return {}
        beside = [str(Path(entry.partition(":")[0]).parent) for entry in entries]
        return {"PYTHONPATH": os.pathsep.join(dict.fromkeys([*beside, code.search_path()]))}

    def problem(self, problem: Mapping[str, Any]) -> Problem:
        """A problem of `sojourn validate` with the line of Python that caused it."""
        key, message = problem.get("key"), str(problem["message"])
        for entry, model in self.codes.items():
            message = message.replace(entry.rpartition(":")[0], code.file_of(model) or entry)
        file, line = (self._place_of(key) if key else None) or self.place or (None, None)
        return Problem(message, key, file, line)

    def _place_of(self, key: str) -> Place | None:
        """The place of a key, or of the innermost one around it that has one."""
        words = key.split(".")
        for length in range(len(words), 0, -1):
            found = self.places.get(".".join(words[:length]))
            if found is not None:
                return found
        return None


def _absolute(path: Any, folder: Path) -> Any:
    """A path of a job file in this folder; URLs and shares of rows are as they are."""
    if not isinstance(path, str) or "://" in path:
        return path
    return str(folder / Path(path).expanduser())
