"""Tasks that a function of ours has made of the user's code: how the exporter, in its own process, makes them again.

A file for the exporter has the user's code, and a line that calls the function. So a task needs no name in the user's script.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class Saved:
    """An argument that is written into a folder, and read from there by its path."""

    def path(self, folder: Path) -> str:
        """The path of a file or folder in `folder` with the argument; equal arguments have equal paths."""
        raise NotImplementedError


class Wrapped:
    """A call: `function` of the module `home` with `arguments`, which are code of the user's, saved, or plain values."""

    def __init__(self, home: str, function: str, arguments: Sequence[object]) -> None:
        self.home = home
        self.function = function
        self.arguments = arguments

    @property
    def code(self) -> type | None:
        """The user's class among the arguments, whose source travels."""
        return next((one for one in self.arguments if isinstance(one, type)), None)

    def call(self, folder: Path) -> str:
        """The call as Python's code; arguments that are saved are written into `folder`."""

        def written(one: object) -> str:
            if isinstance(one, type):
                return one.__name__
            return repr(one.path(folder) if isinstance(one, Saved) else one)

        return f"{self.home}.{self.function}({', '.join(map(written, self.arguments))})"
