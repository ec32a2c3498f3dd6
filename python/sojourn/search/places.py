"""Where in the user's Python the values of a search were given, for messages about them."""

from __future__ import annotations

import ast
import linecache
import sys
from types import FrameType
from typing import NamedTuple


PACKAGE = "sojourn."


class Place(NamedTuple):
    """A line of the user's code: `file` as Python names it, `line` from 1."""

    file: str
    line: int


def caller() -> Place | None:
    """The line of the user's code that is being run: that of the innermost frame outside of this package."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(PACKAGE):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno) if frame else None


def arguments_of_call(place: Place | None, function: str) -> dict[str, Place]:
    """The lines of the arguments of a call of `function` that `place` is in, by their names.

    Keys of a dict that is written out as an argument have lines too, as `space.lr`. Empty where the source isn't there, as in
    `python -c`, or where the call isn't found.
    """
    if place is None:
        return {}
    try:
        tree = ast.parse("".join(linecache.getlines(place.file)))
    except (SyntaxError, ValueError):
        return {}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node.func) == function]
    around = [call for call in calls if call.lineno <= place.line <= (call.end_lineno or call.lineno)]
    if not around:
        return {}
    found: dict[str, Place] = {}
    for keyword in max(around, key=lambda call: call.lineno).keywords:
        if keyword.arg is None:
            continue
        found[keyword.arg] = Place(place.file, keyword.value.lineno)
        if isinstance(keyword.value, ast.Dict):
            for key in keyword.value.keys:
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    found[f"{keyword.arg}.{key.value}"] = Place(place.file, key.lineno)
    return found


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
