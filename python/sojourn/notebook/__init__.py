"""Jobs in notebooks: the board that a job is as the last line of a cell.

With `anywidget` the board of a job that goes on is live. All others, and those of exported notebooks, are HTML of one moment.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sojourn.notebook import live
from sojourn.notebook.board import page, problem
from sojourn.notebook.snapshot import Snapshot
from sojourn.server.errors import SojournError

if TYPE_CHECKING:
    from sojourn.job.job import Job

__all__ = ["display_live", "html"]


def html(job: Job) -> str:
    """The board of a job as it is now, or a sentence where the server gives no answer."""
    try:
        return page(Snapshot.of(job))
    except SojournError as error:
        return problem(repr(job), str(error))


def display_live(job: Job) -> bool:
    """Shows the live board of a job below the cell that runs.

    False, and nothing is shown, where this is no notebook, `anywidget` is missing, the job has ended, or no server answers.
    """
    if not (_has_kernel() and live.is_available()):
        return False
    try:
        snapshot = Snapshot.of(job)
    except SojournError:
        return False
    if snapshot.status.has_ended:
        return False
    live.live_board(job).display(snapshot)
    return True


def _has_kernel() -> bool:
    """Does this process run a notebook's cells?"""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
