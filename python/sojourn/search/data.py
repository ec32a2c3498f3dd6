"""Data of a search: a path as it is, or what a user has in memory, written once into files that `sojourn submit` reads.

| data | is written as |
|---|---|
| `(X, y)`: arrays, tensors, or frames and series | NPZ with `x` and `y`; of frames a table |
| a DataFrame of pandas or polars, a table of pyarrow | Parquet, or CSV where pandas has no pyarrow |
| a dict of arrays, rows as dicts, a dataset of Hugging Face | columns by name (`sojourn.data.write`) |
| a Dataset of PyTorch | arrays where its items are pairs, else columns by name |

A file is called by the digest of what is in it, so that equal data is written, cut and uploaded once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

FOLDER = "data"
X, Y = "x", "y"
LABEL = "label"
"""The label's column of a frame and a series that has no name."""


class Written(NamedTuple):
    """What `[data] train` names, and the label that follows from the data's form where the user gave none."""

    path: str
    label: str | None = None


class Data:
    """Data with keys of the job file's `[data]` table: `Data("flowers.csv", label="species", columns={"drop": ["id"]})`.

    `train`, `valid` and `test` are what `Search` takes as `data`; `valid` and `test` may be shares of the rows too. `classes`,
    `values` and `ragged` are those of `sojourn.data.write`, for data that is written as columns by name. All other keywords are
    keys of `[data]`.
    """

    def __init__(
        self,
        train: object,
        *,
        valid: object = None,
        test: object = None,
        label: str | None = None,
        classes: Mapping[str, Sequence[object]] | None = None,
        values: Mapping[str, int] | None = None,
        ragged: Sequence[str] = (),
        **keys: object,
    ) -> None:
        self.train = train
        self.valid = valid
        self.test = test
        self.label = label
        self.keys = keys
        self._options = WriterOptions(classes or {}, values or {}, ragged)

    def table(self, folder: Path) -> dict[str, object]:
        """The `[data]` table; what is in memory is written into `folder`."""
        written = self._written(self.train, folder)
        table: dict[str, object] = {"train": written.path}
        label = self.label or written.label
        if label is not None:
            table["label"] = label
        for key, part in (("valid", self.valid), ("test", self.test)):
            if isinstance(part, (bool, int, float)):
                table[key] = part
            elif part is not None:
                table[key] = self._part(part, folder)
        return {**table, **self.keys}

    def _part(self, part: object, folder: Path) -> object:
        """The value of `valid` or `test` for data of its own; a table is taken as it is, but for its paths."""
        if isinstance(part, Mapping) and "data" in part:
            return {key: path_of(value) if key in ("data", "labels") else value for key, value in part.items()}
        return self._written(part, folder).path

    def _written(self, data: object, folder: Path) -> Written:
        return write(data, folder / FOLDER, self.label, self._options)


@dataclass(frozen=True)
class WriterOptions:
    """Options of `sojourn.data.write` for data that is written as columns by name."""

    classes: Mapping[str, Sequence[object]]
    values: Mapping[str, int]
    ragged: Sequence[str]


def path_of(value: object) -> str:
    """A path or URL as a job file that lies elsewhere names it: paths are absolute."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    return text if "://" in text else str(Path(text).expanduser().absolute())


def write(data: object, folder: Path, label: str | None, options: WriterOptions) -> Written:
    """Writes data into a folder, where it isn't there already.

    Raises `TypeError` for what isn't among the forms above, and `ValueError` where `sojourn.data.write` refuses the rows.
    """
    if isinstance(data, (str, os.PathLike)):
        return Written(path_of(data))
    if isinstance(data, tuple) and len(data) == 2:
        return _pair(data[0], data[1], folder, label)
    if _is_frame(data):
        return Written(_frame(data, folder))
    if isinstance(data, Mapping):
        return _rows(_rows_of_columns(data), folder, options)
    if hasattr(data, "column_names") and hasattr(data, "features"):
        return _rows(iter(_iterable(data)), folder, _with_class_labels(data, options))
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") or isinstance(data, Iterable):
        return _items(data, folder, options)
    raise TypeError(f"data is a path, (X, y), a DataFrame, a dict of arrays or a dataset, and not a {type(data).__name__}")


def _pair(x: object, y: object, folder: Path, label: str | None) -> Written:
    if _is_frame(x):
        name = label or getattr(y, "name", None) or LABEL
        return Written(_frame(_with_column(x, str(name), y), folder), str(name))
    return Written(_arrays({X: array(x), Y: array(y)}, folder), label)


def array(value: Any) -> npt.NDArray[Any]:
    """A numpy array of an array, a tensor, a series or a list. Objects become words, or numbers where all are that.

    Raises `TypeError` where numbers and other things are mixed.
    """
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    elif hasattr(value, "to_numpy"):
        value = value.to_numpy()
    made = np.asarray(value)
    if made.dtype == object:
        kinds = {str if isinstance(one, str) else float for one in made.ravel()}
        if len(kinds) > 1:
            raise TypeError("an array has words and numbers: give it one kind, x.astype(str) or x.astype(float)")
        made = made.astype(str if kinds == {str} else float)
    return made


def _arrays(arrays: Mapping[str, npt.NDArray[Any]], folder: Path) -> str:
    """The path of an NPZ file with these arrays."""
    digest = hashlib.sha256()
    for name, values in arrays.items():
        digest.update(f"{name} {values.dtype.str} {values.shape}\n".encode())
        digest.update(np.ascontiguousarray(values).data.cast("B") if values.size else b"")
    path = _path(folder, digest.hexdigest(), ".npz")
    if not path.exists():
        partial = _partial(path)
        with open(partial, "wb") as file:
            np.savez(file, allow_pickle=False, **dict(arrays))
        partial.replace(path)
    return str(path)


def _is_frame(data: object) -> bool:
    """Is this a table of pandas, polars or pyarrow? None of them is imported for it."""
    kind = type(data)
    return kind.__name__ in ("DataFrame", "Table") and kind.__module__.partition(".")[0] in ("pandas", "polars", "pyarrow")


def _frame(data: Any, folder: Path) -> str:
    """The path of a file with the rows of a frame, without its index."""
    package = type(data).__module__.partition(".")[0]
    suffix = ".csv" if package == "pandas" and not _has_pyarrow() else ".parquet"
    folder.mkdir(parents=True, exist_ok=True)
    partial = _partial(folder / f"frame{suffix}")
    if package == "polars":
        data.write_parquet(partial)
    elif package == "pyarrow":
        from pyarrow import parquet

        parquet.write_table(data, partial)
    elif suffix == ".csv":
        data.to_csv(partial, index=False)
    else:
        data.to_parquet(partial, index=False)
    with open(partial, "rb") as file:
        digest = _digest_of(iter(lambda: file.read(1 << 20), b""))
    path = _path(folder, digest, suffix)
    partial.replace(path)
    return str(path)


def _has_pyarrow() -> bool:
    try:
        import pyarrow  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


def _with_column(frame: Any, name: str, values: Any) -> Any:
    """A frame with the labels as one more column."""
    package = type(frame).__module__.partition(".")[0]
    if package == "pandas":
        return frame.assign(**{name: array(values)})
    if package == "polars":
        import polars

        return frame.with_columns(polars.Series(name, values))
    return frame.append_column(name, [array(values)])


def _rows_of_columns(columns: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"columns have different numbers of rows: {lengths}")
    names = list(columns)
    for row in zip(*(columns[name] for name in names)):
        yield dict(zip(names, row))


def _iterable(data: Any) -> Iterable[Any]:
    """The items of a data set, which may have numbers alone."""
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        return (data[index] for index in range(len(data)))
    items: Iterable[Any] = data
    return items


def _items(data: Any, folder: Path, options: WriterOptions) -> Written:
    """Rows of a data set, or of any iterable: pairs become arrays, dicts columns by name."""
    items = iter(_iterable(data))
    first = next(items, None)
    if isinstance(first, Mapping):
        return _rows(_all(first, items), folder, options)
    if not isinstance(first, (tuple, list)) or len(first) != 2:
        found = "nothing" if first is None else f"a {type(first).__name__}"
        raise TypeError(f"rows are pairs (x, y) or dicts by column, and the first is {found}")
    pairs = [(array(x), array(y)) for x, y in _all(first, items)]
    x, y = np.stack([one for one, _ in pairs]), np.stack([one for _, one in pairs])
    return Written(_arrays({X: x, Y: y}, folder))


def _all(first: Any, others: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from others


def _with_class_labels(data: Any, options: WriterOptions) -> WriterOptions:
    """The options with how many classes the columns have that are a `ClassLabel` of Hugging Face."""
    found = {name: int(kind.num_classes) for name, kind in data.features.items() if hasattr(kind, "num_classes")}
    others = {name: count for name, count in found.items() if name not in options.classes}
    return WriterOptions(options.classes, {**others, **options.values}, options.ragged)


def _rows(rows: Iterator[Mapping[str, object]], folder: Path, options: WriterOptions) -> Written:
    """A folder of parts with these rows."""
    from sojourn import data as writer

    folder.mkdir(parents=True, exist_ok=True)
    partial = _partial(folder / "rows")
    shutil.rmtree(partial, ignore_errors=True)
    classes = {name: list(words) for name, words in options.classes.items()}
    writer.write(rows, partial, ragged=options.ragged, classes=classes, values=dict(options.values))
    parts = sorted(partial.iterdir())
    path = folder / _digest_of(part.read_bytes() for part in parts)[:32]
    if path.exists():
        shutil.rmtree(partial)
    else:
        partial.replace(path)
    return Written(str(path))


def _digest_of(chunks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def _path(folder: Path, digest: str, suffix: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{digest[:32]}{suffix}"


def _partial(path: Path) -> Path:
    """Where a file is written before it is whole; no other process writes there."""
    return path.with_name(f".{os.getpid()}-{path.name}")
