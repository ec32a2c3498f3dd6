"""Jobs: what they have come to, their best models, and changes while they run."""

from sojourn.job.study import Asked, Study, ask_tell
from sojourn.job.best import Best
from sojourn.job.job import Job
from sojourn.job.views import CurveRow, Curves, Point, Status, Trial, Trials
from sojourn.job.waiting import follow

__all__ = ["Asked", "Best", "CurveRow", "Curves", "Job", "Point", "Status", "Study", "Trial", "Trials", "ask_tell", "follow"]
