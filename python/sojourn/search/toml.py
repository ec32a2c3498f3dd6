"""TOML in and out. Python 3.10 reads none by itself: there `tomli` is needed to read, and nothing to write."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def read(path: Path) -> dict[str, Any]:
    """The tables of a file. Raises `ModuleNotFoundError` on Python 3.10 without `tomli`."""
    if sys.version_info >= (3, 11):
        import tomllib as reader
    else:
        try:
            import tomli as reader
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("Python 3.10 reads TOML with `pip install tomli`; later versions need nothing") from error
    with open(path, "rb") as file:
        tables: dict[str, Any] = reader.load(file)
    return tables


def write(tables: Mapping[str, object]) -> str:
    """The text of nested tables: scalars first, then a `[table]` for each dict and a `[[table]]` for each of a list of dicts.

    Dicts within these are written inline. Values are numbers, words, truth values, lists and dicts, of Python or numpy. Raises
    `TypeError` for others, with the key.
    """
    return "\n".join(_lines(tables)) + "\n"


def pair(key: str, value: object, where: str | None = None) -> str:
    """The line `key = value`. Raises `TypeError`, which names the value by `where`, for one that TOML can't hold."""
    return f"{_key(key)} = {_value(value, where or key)}"


def _lines(tables: Mapping[str, object]) -> Iterator[str]:
    for key, value in tables.items():
        if not isinstance(value, Mapping) and not _is_list_of_tables(value):
            yield pair(key, value)
    for key, value in tables.items():
        if isinstance(value, Mapping):
            yield from ("", f"[{_key(key)}]", *_pairs(value, key))
        elif _is_list_of_tables(value):
            assert isinstance(value, list)
            for table in value:
                yield from ("", f"[[{_key(key)}]]", *_pairs(table, key))


def _is_list_of_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)


def _pairs(table: Mapping[str, object], within: str) -> list[str]:
    return [pair(key, value, f"{within}.{key}") for key, value in table.items()]


def _key(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else _text(key)


def _value(value: Any, where: str) -> str:
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()  # a number of numpy or PyTorch
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return f"{{ {', '.join(_pairs(value, where))} }}" if value else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(one, where) for one in value)}]"
    raise TypeError(f"`{where}` is a {type(value).__name__}, which a job file can't hold")


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
