"""The best model of a job: its values, and what can be done with it on this machine."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sojourn.job.views import Trial

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.job.job import Job
    from sojourn.torch import Task


class Best:
    """A trial at its best epoch.

    `trial` is its number, `values` has its settings where the search varies, `metrics` the means over rows by name,
    `value` that of the job's metric, and `epoch` the epoch, counted from 0.
    """

    def __init__(self, job: Job, trial: Trial) -> None:
        """`trial` has an evaluated epoch."""
        if trial.value is None or trial.best_epoch is None:
            raise ValueError(f"trial {trial.trial} has no evaluated epoch")
        self._job = job
        self._trial = trial
        self.trial = trial.trial
        self.name = trial.name
        self.values = trial.values
        self.metrics = trial.metrics
        self.value: float = trial.value
        self.epoch: int = trial.best_epoch

    def __repr__(self) -> str:
        return f"<trial {self.trial} of job {self._job.number}: {self.name}, {self.value:.4f} after epoch {self.epoch + 1}>"

    def export(self, path: str | os.PathLike[str], *, row_digests: bool = True, unverified: bool = False) -> dict[str, Any]:
        """Writes the model, its scaling and its description as safetensors, as `sojourn export --trial` does.

        `row_digests` has digests by which rows of the training data are known again. Raises `CommandFailed`, also where
        unverified results are in the model's lineage and `unverified` isn't true.
        """
        flags = ["--no-row-digests"] * (not row_digests) + ["--unverified"] * unverified
        command = ("export", str(self._job.number), "--trial", str(self.trial), "-o", os.fspath(path), *flags)
        answer: dict[str, Any] = self._job.server.run(*command)
        return answer

    def predict(self, data: object) -> npt.NDArray[Any]:
        """Predictions for rows, by the trainer on this machine; PyTorch isn't needed.

        `data` is an array `[rows, ...]`, a frame, a dict of columns or a path, in the form of the training data. The answer has
        a prediction for each row, `[rows]`: a class as in the training data, or a number; of models over columns by name
        all outputs, `[rows, outputs]`. Raises `CommandFailed`.
        """
        names, rows = self._predicted(data)
        if "prediction" in names:
            return _typed([row[names.index("prediction")] for row in rows])
        return np.array([row[1:] for row in rows], dtype=float)

    def predict_proba(self, data: object) -> npt.NDArray[np.float64]:
        """The probability of each class for each row, `[rows, classes]`, in the order of `classes`. Raises `ValueError` for numbers."""
        names, rows = self._predicted(data)
        first = names.index("prediction") + 1 if "prediction" in names else len(names)
        if first == len(names):
            raise ValueError("the model predicts no classes")
        return np.array([row[first : first + len(self.classes)] for row in rows], dtype=float)

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The classes of the training data, `[classes]`; empty where labels are numbers or columns have names."""
        labels = self._job.detail()["data"]["labels"]
        found = labels.get("classes", []) if isinstance(labels, dict) else []
        return _typed(list(found))

    def _predicted(self, data: object) -> tuple[list[str], list[list[str]]]:
        """The header and the rows of what `sojourn predict` writes."""
        from sojourn.search.data import WriterOptions, array, write

        with tempfile.TemporaryDirectory(prefix="sojourn-") as name:
            folder = Path(name)
            model, table = folder / "model.safetensors", folder / "predictions.csv"
            self.export(model)
            if isinstance(data, (str, os.PathLike, Mapping)) or hasattr(data, "columns"):
                path = write(data, folder, None, WriterOptions({}, {}, ())).path
            else:
                path = str(folder / "rows.npz")
                np.savez(path, allow_pickle=False, **{self._features(): array(data)})
            self._job.server.run("predict", str(model), path, "-o", str(table))
            with open(table, newline="", encoding="utf-8") as file:
                header, *rows = csv.reader(file)
        return header, rows

    def _features(self) -> str:
        """The name of the array of features that the model was trained on."""
        source = self._job.detail()["spec"]["data"]
        return str(source.get("features") or "x")

    def model(self, code: Callable[..., object] | None = None) -> Task:
        """The user's own module with the trained weights, in evaluation mode. Needs PyTorch.

        `code` is the `Task`'s class; it may be left out where the job was submitted by this script. A model whose data was scaled
        (`scale="standard"`) expects rows that are scaled by the tensors `scaling.mean` and `scaling.std` of the exported file.
        Raises `ValueError` for models that aren't the user's own.
        """
        from sojourn.job.weights import load

        return load(self._job, self._trial, code, self.export)


def _typed(words: list[str]) -> npt.NDArray[Any]:
    """Words as an array: whole numbers or numbers, where all of them are that."""
    for kind in (int, float):
        try:
            return np.array([kind(word) for word in words])
        except ValueError:
            continue
    return np.array(words)
