"""An exported model that predicts on this machine, by the trainer: neither a server nor PyTorch is needed."""

from __future__ import annotations

import csv
import json
import os
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sojourn.server import program

ARRAY = "x"
PROBABILITIES = 2
"""Columns of a table of predictions before those of the classes' probabilities: the row's number, and the prediction."""


class Predictor:
    """A model as `sojourn export` writes it, with its scaling and its description.

    `classes` are those of the training data, `[classes]`: numbers where all of them are that. Empty where labels
    are numbers, or the data has columns by name.
    """

    def __init__(self, model: bytes) -> None:
        """`model` is the content of the file. Raises `ValueError` for other files."""
        self._model = model
        try:
            (size,) = struct.unpack_from("<Q", model)
            metadata = json.loads(model[8 : 8 + size])["__metadata__"]
            description: dict[str, Any] = json.loads(metadata["sojourn"])
        except (struct.error, ValueError, KeyError) as error:
            raise ValueError("this is no model that `sojourn export` has written") from error
        labels = description.get("labels")
        self._features: list[str] = description.get("features") or []
        self._has_columns = not isinstance(labels, dict) and labels != "number"
        self.classes = typed(labels["classes"]) if isinstance(labels, dict) else np.array([])

    def predict(self, data: object) -> npt.NDArray[Any]:
        """A prediction for each row, `[rows]`; of a model over columns by name all outputs, `[rows, outputs]`.

        Raises `CommandFailed` for data that doesn't fit the model.
        """
        header, rows = self._table(data)
        if len(self.classes):
            classes: npt.NDArray[Any] = self.classes[_numbers(rows, PROBABILITIES, len(self.classes)).argmax(axis=1)]
            return classes
        if self._has_columns:
            first = header.index("output_0") if "output_0" in header else PROBABILITIES
            return _numbers(rows, first, len(header) - first)
        return _numbers(rows, 1, 1)[:, 0]

    def predict_proba(self, data: object) -> npt.NDArray[np.float64]:
        """The probability of each class, in the order of `classes`, `[rows, classes]`.

        Raises `ValueError` where there are none, and `CommandFailed` for data that doesn't fit the model.
        """
        if not len(self.classes):
            raise ValueError("the model predicts no classes")
        return _numbers(self._table(data)[1], PROBABILITIES, len(self.classes))

    def _table(self, data: object) -> tuple[list[str], list[list[str]]]:
        """The header and the rows of what `sojourn predict` writes."""
        with tempfile.TemporaryDirectory(prefix="sojourn-") as name:
            folder = Path(name)
            (folder / "model.safetensors").write_bytes(self._model)
            command = ["predict", str(folder / "model.safetensors"), *self._written(data, folder), "-o", str(folder / "rows.csv")]
            program.run(command)
            with open(folder / "rows.csv", newline="", encoding="utf-8") as file:
                header, *rows = csv.reader(file)
        return header, rows

    def _written(self, data: object, folder: Path) -> list[str]:
        """The arguments that name the rows; what is in memory is written into a folder."""
        from sojourn.search.data import WriterOptions, array, write

        if isinstance(data, (str, os.PathLike, Mapping)) or hasattr(data, "columns") or self._has_columns:
            return [write(data, folder, None, WriterOptions({}, {}, ())).path]
        rows = array(data)
        if not self._features:
            np.savez(folder / "data.npz", allow_pickle=False, **{ARRAY: rows})
            return [str(folder / "data.npz"), "--features", ARRAY]
        # A model of a table finds its columns by their names. Rows may have the shape that its data was given.
        with open(folder / "data.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self._features)
            writer.writerows(rows.reshape(len(rows), -1).tolist())
        return [str(folder / "data.csv")]


def typed(words: list[str]) -> npt.NDArray[Any]:
    """Words as an array: whole numbers or numbers, where all of them are that."""
    for kind in (int, float):
        try:
            return np.array([kind(word) for word in words])
        except ValueError:
            continue
    return np.array(words)


def _numbers(rows: list[list[str]], first: int, count: int) -> npt.NDArray[np.float64]:
    return np.array([row[first : first + count] for row in rows], dtype=np.float64).reshape(len(rows), count)
