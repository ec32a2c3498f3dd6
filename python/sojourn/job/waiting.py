"""Waiting for a job: how often it is asked for, what is shown meanwhile, and what Ctrl-C does."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from sojourn.job.views import Status
from sojourn.server.errors import JobFailed, Unreachable

if TYPE_CHECKING:
    from sojourn.job.job import Job

T = TypeVar("T")
MIN_PAUSE = 0.05
MAX_PAUSE = 0.5
PAUSE_RATIO = 40
"""A pause between two questions is this part of the time waited so far, so that the end of a short job is seen soon."""
UNREACHABLE_TIMEOUT = 600.0
"""Seconds for which the server may be away before the wait fails."""
WAITING_SHOWN_AFTER = 5.0
"""Seconds for which a job must stand still before the reason is shown: a client of this machine takes two to begin."""
SECOND_INTERRUPT = 1.0
"""Seconds in which a second Ctrl-C cancels the job."""


def pauses(timeout: float | None = None) -> Iterator[float]:
    """Seconds to pause before each further question. Raises `TimeoutError` when `timeout` seconds are over."""
    begun = time.monotonic()
    while True:
        waited = time.monotonic() - begun
        pause = min(max(waited / PAUSE_RATIO, MIN_PAUSE), MAX_PAUSE)
        if timeout is not None:
            if waited >= timeout:
                raise TimeoutError(f"the job has not ended within {timeout:g} s")
            pause = min(pause, timeout - waited)
        yield pause


class Patience:
    """Lets a server be away for a while: it may be started again."""

    def __init__(self) -> None:
        self._since: float | None = None

    def ask(self, question: Callable[[], T]) -> T | None:
        """The answer; None while the server is away. Raises `Unreachable` once it has been away for ten minutes."""
        try:
            answer = question()
        except Unreachable:
            now = time.monotonic()
            self._since = self._since or now
            if now - self._since > UNREACHABLE_TIMEOUT:
                raise
            return None
        self._since = None
        return answer


class Progress:
    """A job's progress on standard error: one line that is written over on a terminal, else a line for each best value."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._shown = ""
        self._value: float | None = None
        self._moved_at = time.monotonic()
        self._said: str | None = None

    def show(self, status: Status) -> None:
        now = time.monotonic()
        if status.waiting is None:
            self._moved_at, self._said = now, None
        elif status.waiting != self._said and now - self._moved_at > WAITING_SHOWN_AFTER:
            self._said = status.waiting
            self._line(f"job {status.job} waits: {status.waiting}")
        text = str(status)
        if status.seconds_left is not None and not status.has_ended:
            text += f", about {status.seconds_left:.0f} s left"
        if self._is_terminal:
            sys.stderr.write("\r\x1b[K" + text)
            sys.stderr.flush()
            self._shown = text
        elif status.value != self._value or status.has_ended:
            self._value = status.value
            print(text, file=sys.stderr)

    def _line(self, text: str) -> None:
        self.end()
        print(text, file=sys.stderr)

    def end(self) -> None:
        """Leaves the last line as it is."""
        if self._shown:
            print(file=sys.stderr)
            self._shown = ""


def follow(job: Job, *, progress: bool, cancels: bool) -> None:
    """Waits until a job has ended. Ctrl-C leaves it, or with `cancels` ends it, says so, and is raised again.

    In a notebook `progress` is the live board, where `anywidget` is installed.

    Raises `JobFailed` where the job has no model.
    """
    shown = Progress() if progress and not _has_board(job) else None
    status = job.status
    try:
        for status in job.watch():
            if shown:
                shown.show(status)
    except KeyboardInterrupt:
        if shown:
            shown.end()
        _interrupted(job, cancels)
        raise
    finally:
        if shown:
            shown.end()
    if status.state != "finished":
        failed = [trial for trial in job.trials() if trial.reason]
        reasons = [f"trial {trial.trial}: {trial.reason}" for trial in failed[:5]]
        raise JobFailed(job.number, status.state, reasons)


def _has_board(job: Job) -> bool:
    """Shows the live board where this is a notebook; was that so?"""
    if "IPython" not in sys.modules:
        return False
    from sojourn.notebook import display_live

    return display_live(job)


def _interrupted(job: Job, cancels: bool) -> None:
    if not cancels:
        try:
            print(f"leaving job {job.number}; Ctrl-C once more cancels it", file=sys.stderr)
            time.sleep(SECOND_INTERRUPT)
        except KeyboardInterrupt:
            cancels = True
    if cancels:
        job.cancel()
        print(f"job {job.number} is cancelled", file=sys.stderr)
    elif job.server.outlives_script:
        print(f"job {job.number} goes on; `sojourn cancel {job.number}` ends it", file=sys.stderr)
    else:
        print(f"job {job.number} goes on while {job.server} runs, and when the script is started again", file=sys.stderr)
