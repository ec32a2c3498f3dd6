"""The live board: a widget of `anywidget` that a thread keeps up to date until the job has ended.

A server is asked at most each second, and less often where an answer takes long, so that a board costs it little. All boards of a
job in a notebook are views of one widget. Where the job ends, HTML takes its place: a notebook that is opened again or exported
has no widget, and shows what came of the job.
"""

from __future__ import annotations

import importlib.util
import threading
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sojourn.job.waiting import Patience
from sojourn.notebook.board import FOLDER, STYLE, board, page
from sojourn.notebook.snapshot import Snapshot
from sojourn.server.errors import SojournError

if TYPE_CHECKING:
    from sojourn.job.job import Job

SCRIPT = FOLDER / "board.js"
MIN_PAUSE = 1.0
"""Seconds between two looks at a job."""
PAUSE_RATIO = 10
"""A pause is at least this many times as long as the look before it."""

_lock = threading.Lock()
_boards: dict[tuple[str, int], LiveBoard] = {}
"""The boards of this notebook, by the server's address and the job's number."""


def is_available() -> bool:
    """Is `anywidget` installed?"""
    return importlib.util.find_spec("anywidget") is not None


def live_board(job: Job) -> LiveBoard:
    """The live board of a job; the one that there is, or a new one."""
    key = (job.server.url, job.number)
    with _lock:
        if key not in _boards:
            _boards[key] = LiveBoard(job)
        return _boards[key]


class LiveBoard:
    """A job's widget, the outputs that show it, and the thread that asks how far the job is."""

    def __init__(self, job: Job) -> None:
        self.widget: Any = _widget_class()()
        self._job = job
        self._outputs: list[Any] = []
        self._thread: threading.Thread | None = None

    def display(self, snapshot: Snapshot) -> None:
        """Shows a snapshot of a job that has not ended in a new output, and follows the job in the background."""
        from IPython.display import display

        self.widget.html = board(snapshot, is_live=True)
        shown = self.widget._repr_mimebundle_()
        # Some versions give the data alone, others metadata beside it.
        data = shown[0] if isinstance(shown, tuple) else shown
        bundle = {**(data or {}), "text/plain": repr(self._job), "text/html": page(snapshot)}
        self._outputs.append(display(bundle, raw=True, display_id=True))
        if not (self._thread and self._thread.is_alive()):
            # A notebook's process that ends doesn't wait for it.
            self._thread = threading.Thread(target=self._follow, name=f"board of job {self._job.number}", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Waits until the board is no longer followed: the job has ended, or its server is gone for good."""
        if self._thread is not None:
            self._thread.join()

    def _follow(self) -> None:
        patience, took = Patience(), 0.0
        while self.widget.comm is not None:
            time.sleep(max(MIN_PAUSE, PAUSE_RATIO * took))
            asked = time.monotonic()
            try:
                snapshot = patience.ask(lambda: Snapshot.of(self._job))
            except SojournError:
                return  # the job was deleted, or the server is gone; the last board stays
            took = time.monotonic() - asked
            if snapshot is not None:
                self.widget.html = board(snapshot, is_live=True)
                if snapshot.status.has_ended:
                    self._end(snapshot)
                    return

    def _end(self, snapshot: Snapshot) -> None:
        """Puts HTML in the place of the widget in all outputs."""
        last = {"text/plain": repr(self._job), "text/html": page(snapshot)}
        outputs, self._outputs = self._outputs, []
        for output in outputs:
            output.update(last, raw=True)


@lru_cache(maxsize=1)
def _widget_class() -> Any:
    """The class of the widget, made where it is used first: `anywidget` is the user's."""
    import anywidget
    import traitlets

    members = {
        "__doc__": "A job's board, as HTML that Python makes.",
        "_esm": SCRIPT.read_text(encoding="utf-8"),
        "_css": STYLE.read_text(encoding="utf-8"),
        "html": traitlets.Unicode("").tag(sync=True),
    }
    return type("SojournBoard", (anywidget.AnyWidget,), members)
