"""What can go wrong between a script and its server, as exceptions.

SojournError
  Refused          the server refused a request: `status`, `kind` and `message` are its own
  Unreachable      no server answered, after as many attempts as the command makes
  CommandFailed    the program `sojourn` ended with an error: `exit_code` and `messages`
  InvalidSearch    `sojourn validate` found problems: `problems`, each with the Python line that caused it
  JobFailed        a job ended without a model
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class SojournError(Exception):
    """The base of all exceptions of this package's searches and jobs."""


class Refused(SojournError):
    """The server refused a request.

    `status` is the HTTP status, `kind` the server's word for programs (`not-found`, `conflict`, ...), `message` its text.
    """

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(f"{message} ({kind}, {status})")
        self.status = status
        self.kind = kind
        self.message = message


class Unreachable(SojournError):
    """No server answers at `url`. `reason` says how the last attempt ended."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"no server answers at {url} ({reason})")
        self.url = url
        self.reason = reason


class CommandFailed(SojournError):
    """The program `sojourn` failed.

    `exit_code`: 1 the work failed, 2 the call was wrong, 3 the server could not be reached. `messages` are its errors.
    """

    def __init__(self, command: str, exit_code: int, messages: Sequence[str]) -> None:
        super().__init__("\n".join(messages) or f"`sojourn {command}` ended with exit code {exit_code}")
        self.command = command
        self.exit_code = exit_code
        self.messages = list(messages)


class JobFailed(SojournError):
    """A job ended without a model: `state` is `failed` or `cancelled`."""

    def __init__(self, job: int, state: str, reasons: Sequence[str]) -> None:
        super().__init__("\n".join([f"job {job} is {state}", *reasons]))
        self.job = job
        self.state = state
        self.reasons = list(reasons)


@dataclass(frozen=True)
class Problem:
    """A problem of a search, in the words of `sojourn validate`.

    `key` is the job file's key, such as `training.epochs`. `file` and `line` are where the Python code gave it. Each is None
    where it isn't known.
    """

    message: str
    key: str | None = None
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.file else self.message


class InvalidSearch(SojournError):
    """A search that `sojourn validate` refuses, with all `problems`."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = list(problems)
