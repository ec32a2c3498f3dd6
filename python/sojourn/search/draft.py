"""A search as its arguments give it, before data and code are written into files."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sojourn.search import code
from sojourn.search.data import Data, path_of
from sojourn.search.job_file import DATA_PATHS, JobFile
from sojourn.search.models import Model
from sojourn.search.places import Place, arguments_of_call, caller
from sojourn.search.space import Dimension, as_dimension, table_of

DEFAULT_OPTIMIZER = "adam"
MAX_NAME = 100


class Draft:
    """The tables of a search, with the line of Python behind each key."""

    def __init__(self, models: Sequence[Model], data: object, function: str) -> None:
        """`function` is how the user's code calls what makes this: its arguments' lines are looked up there."""
        self._models = [dict(model.table) for model in models]
        self._codes = [model.code for model in models]
        self._data = copy.copy(data) if isinstance(data, Data) else Data(data)
        self._tables: dict[str, Any] = {"data": {}, "training": {}, "search": {}}
        self._place = caller()
        self._source = arguments_of_call(self._place, function)
        self._places: dict[str, Place] = {}
        for index, model in enumerate(models):
            self._keep_place(f"model[{index}]", model.place)
        self._keep_place("data", self._source.get("data"))

    @property
    def name(self) -> str:
        """The search's name: the user's, or those of the models."""
        named = self._tables.get("name")
        if named is not None:
            return str(named)
        names = [getattr(code, "__name__", None) or table.get("arch") for code, table in zip(self._codes, self._models)]
        return "-".join(dict.fromkeys(str(name or "model").lower() for name in names))[:MAX_NAME]

    def set_keys(self, keys: Mapping[str, object]) -> None:
        """Sets keys that have arguments of their own: `training.epochs` is the argument `epochs`. None is left out."""
        for key, value in keys.items():
            if value is not None:
                self._set(key.split("."), value, self._source.get(key.rpartition(".")[2]))

    def set_table(self, table: str, keys: Mapping[str, object] | None) -> None:
        """Sets keys of a table, which are those of an argument with the table's name."""
        for key, value in (keys or {}).items():
            self._set([table, key], value, self._source.get(f"{table}.{key}", self._source.get(table)))

    def set_data(self, parts: Mapping[str, Any]) -> None:
        """Sets `valid`, `test` and `label` of the data. None is left out."""
        for key, part in parts.items():
            if part is not None:
                setattr(self._data, key, part)
                self._keep_place(f"data.{key}", self._source.get(key))

    def set_space(self, space: Mapping[str, object] | None) -> None:
        """Gives each setting of a space to its table; those of models to every model's."""
        for name, value in (space or {}).items():
            path, key = table_of(name)
            place = self._source.get(f"space.{name}", self._source.get("space"))
            if path != ("model",):
                self._set([*path, key], value, place)
                continue
            for index, table in enumerate(self._models):
                table[key] = value
                self._keep_place(f"model[{index}].{key}", _place_of(value) or place)

    def finish(self, folder: Path) -> JobFile:
        """The job file. Data that is in memory, and code that travels, is written into a folder."""
        entries = [None if code_ is None else code.entry_of(code_, folder) for code_ in self._codes]
        models = [
            _plain_table({**table, **({} if entry is None else {"entry": entry})}) for table, entry in zip(self._models, entries)
        ]
        tables = {key: plain(value) for key, value in self._tables.items() if value}
        optimizer = tables.get("training", {}).get("optimizer")
        if isinstance(optimizer, dict) and "name" not in optimizer:
            tables["training"]["optimizer"] = {"name": DEFAULT_OPTIMIZER, **optimizer}
        data = _plain_table({**self._data.table(folder), **tables.pop("data", {})})
        located = {key: path_of(value) if key in DATA_PATHS and isinstance(value, str) else value for key, value in data.items()}
        tables = {"name": self.name, **tables, "data": located, "model": models}
        codes = {entry: code_ for entry, code_ in zip(entries, self._codes) if entry is not None and code_ is not None}
        return JobFile(tables, codes, self._places, self._place)

    def _set(self, path: Sequence[str], value: object, place: Place | None) -> None:
        """Sets a key of a table. A word for what is a table, too, is the table's `name`."""
        value = as_dimension(value)
        self._keep_place(".".join(path), _place_of(value) or place)
        table = self._tables
        for key in path[:-1]:
            inner = table.setdefault(key, {})
            if not isinstance(inner, dict):
                inner = table[key] = {"name": inner}
            table = inner
        before = table.get(path[-1])
        new = dict(value) if isinstance(value, Mapping) else value
        if isinstance(before, dict):
            before.update(new if isinstance(new, dict) else {"name": new})
        else:
            table[path[-1]] = new

    def _keep_place(self, key: str, place: Place | None) -> None:
        found = place or self._place
        if found is not None:
            self._places[key] = found


def plain(value: object) -> Any:
    """A value as TOML has it: dimensions as their tables, in lists and dicts too."""
    value = as_dimension(value)
    if isinstance(value, Dimension):
        return _plain_table(value.table)
    if isinstance(value, Mapping):
        return _plain_table(value)
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value


def _plain_table(table: Mapping[str, object]) -> dict[str, Any]:
    return {str(key): plain(value) for key, value in table.items()}


def _place_of(value: object) -> Place | None:
    return value.place if isinstance(value, Dimension) else None
