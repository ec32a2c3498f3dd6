"""The best model of a job: its values, and what can be done with it on this machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sojourn.job.predictor import Predictor
from sojourn.job.views import Trial

if TYPE_CHECKING:
    from sojourn.job.job import Job
    from sojourn.torch import Task


class Best:
    """A trial at its best epoch.

    `trial` is its number, `values` has its settings where the search varies, `metrics` the means over rows by name,
    `value` that of the job's metric, and `epoch` the epoch, counted from 0. The final model of cross-validation has the means of its folds.
    """

    def __init__(self, job: Job, trial: Trial, metrics: Mapping[str, float] | None = None) -> None:
        """Raises `ValueError` for a trial without an evaluated epoch."""
        if trial.value is None or trial.best_epoch is None:
            raise ValueError(f"trial {trial.trial} has no evaluated epoch")
        self._job = job
        self._trial = trial
        self.trial = trial.trial
        self.name = trial.name
        self.values = trial.values
        self.metrics = trial.metrics if metrics is None else metrics
        self.value: float = trial.value
        self.epoch: int = trial.best_epoch

    def __repr__(self) -> str:
        return f"<trial {self.trial} of job {self._job.number}: {self.name}, {self.value:.4f} after epoch {self.epoch + 1}>"

    def export(self, path: str | os.PathLike[str], *, last: bool = False, row_digests: bool = True, unverified: bool = False) -> dict[str, Any]:
        """Writes the model, its scaling and its description as safetensors, as `sojourn export --trial` does.

        `last` takes the trial's last checkpoint instead of the best. `row_digests` has digests by which rows of the training data are known again. Raises `CommandFailed`, also where
        unverified results are in the model's lineage and `unverified` isn't true.
        """
        flags = ["--last"] * last + ["--no-row-digests"] * (not row_digests) + ["--unverified"] * unverified
        command = ("export", str(self._job.number), "--trial", str(self.trial), "-o", os.fspath(path), *flags)
        answer: dict[str, Any] = self._job.server.run(*command)
        return answer

    @cached_property
    def predictor(self) -> Predictor:
        """The model as it is exported, which predicts without the server and can be pickled."""
        with tempfile.TemporaryDirectory(prefix="sojourn-") as folder:
            file = Path(folder) / "model.safetensors"
            self.export(file)
            return Predictor(file.read_bytes())

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The classes of the training data, `[classes]`; empty where there are none."""
        return self.predictor.classes

    def predict(self, data: object) -> npt.NDArray[Any]:
        """Predictions for rows, by the trainer on this machine; PyTorch isn't needed.

        `data` is an array `[rows, ...]`, a frame, a dict of columns or a path, in the form of the training data. The answer has
        a prediction for each row, `[rows]`: a class as in the training data, or a number; of models over columns by name
        all outputs, `[rows, outputs]`. Raises `CommandFailed`.
        """
        return self.predictor.predict(data)

    def predict_proba(self, data: object) -> npt.NDArray[np.float64]:
        """The probability of each class for each row, `[rows, classes]`, in the order of `classes`.

        Raises `ValueError` where labels are numbers.
        """
        return self.predictor.predict_proba(data)

    def model(self, code: Callable[..., object] | None = None) -> Task:
        """The user's own module with the trained weights, in evaluation mode. Needs PyTorch.

        `code` is the `Task`'s class; it may be left out where the job was submitted by this script. A model whose data was scaled
        (`scale="standard"`) expects rows that are scaled by the tensors `scaling.mean` and `scaling.std` of the exported file.
        Raises `ValueError` for models that aren't the user's own.
        """
        from sojourn.job.weights import load

        return load(self._job, self._trial, code, self.export)
