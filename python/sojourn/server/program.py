"""The program `sojourn`, for what it does on this machine: reading data, exporting models, predicting, training again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Mapping, Sequence
from typing import IO, Any

from sojourn.server.errors import CommandFailed, SojournError

PROGRAM_VARIABLE = "SOJOURN"
"""The environment variable that names another program than the one of this package's wheel."""
PYTHON_VARIABLE = "SOJOURN_PYTHON"
INVALID = 2
"""The exit code where the call was wrong."""
UNREACHABLE = 3
"""The exit code where no server could be reached."""
_ERROR = "error: "


def program() -> str:
    """The path of the program: the one that `SOJOURN` names, the one beside this Python, or the one on `PATH`.

    Raises `SojournError` where there is none.
    """
    named = os.environ.get(PROGRAM_VARIABLE)
    if named:
        return named
    beside = os.path.join(sysconfig.get_path("scripts"), "sojourn")
    found = beside if os.access(beside, os.X_OK) else shutil.which("sojourn")
    if found is None:
        raise SojournError(
            "there is no program `sojourn`: `pip install 'sojourn[trainer]'` brings it, or put the folder of a build on PATH"
        )
    return found


def run(arguments: Sequence[str], environment: Mapping[str, str | None] | None = None, accepted: Sequence[int] = (0,)) -> Any:
    """The JSON that `sojourn ARGUMENTS --json` prints; None where it prints nothing.

    `environment` is added to this process's; a variable that is None there is taken out. Remarks of the program go to this
    process's standard error. An exit code that isn't among those `accepted` raises `CommandFailed` with the program's errors.
    """
    command = [program(), *arguments, "--json"]
    variables = {**os.environ, PYTHON_VARIABLE: _python(), **(environment or {})}
    process = subprocess.Popen(
        command,
        env={name: value for name, value in variables.items() if value is not None},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    with process:
        assert process.stdout is not None and process.stderr is not None
        errors: list[str] = []
        # Both streams are read at once: a child that fills one would wait for ever.
        reader = threading.Thread(target=_sort_out, args=(process.stderr, errors), daemon=True)
        reader.start()
        answer = process.stdout.read()
        reader.join()
    if process.returncode not in accepted:
        raise CommandFailed(arguments[0], process.returncode, errors)
    return json.loads(answer) if answer.strip() else None


def _python() -> str:
    """The Python that exports models: this one, unless the user has named another."""
    return os.environ.get(PYTHON_VARIABLE) or sys.executable


def _sort_out(stream: IO[str], errors: list[str]) -> None:
    """Shows the remarks of a program as they come, and gathers its errors, each with the lines that belong to it."""
    for line in stream:
        if line.startswith(_ERROR):
            errors.append(line[len(_ERROR) :].rstrip())
        elif errors:
            errors[-1] += "\n" + line.rstrip()
        elif line.strip():
            print(line.rstrip(), file=sys.stderr)
