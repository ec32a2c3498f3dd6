"""Writes data with columns by name, for tasks that take `batch.image` and `batch.tokens`. It needs numpy and no PyTorch.

    from sojourn import data

    rows = ({"text": mail.text, "label": mail.kind} for mail in mails)
    data.write(rows, "mails", classes={"label": ["ham", "spam"]})

The folder gets parts, `part-00000.safetensors` and so on, and is what `[data] train = "mails"` names.
docs/data-and-shards.md describes them.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from sojourn.column import LONGEST_NAME, Column, check_name
from sojourn.parts import read_tensors, with_ends_of, write_tensors

PART_BYTES = 64 << 20
MOST_PARTS = 100_000
MOST_COLUMNS = 64
PARTIAL = ".partial"
PART = re.compile(r"part-\d{5}\.safetensors(\.partial)?")
# Rows that are kept one by one before they become one array.
ROWS_OF_A_CHUNK = 4096
# Of the words of all classes in a part's header, of which 1 MiB is read.
MOST_CLASSES_BYTES = 1_000_000


class Written(NamedTuple):
    """What was written: `columns` has `dtype` and `shape` of a row by name, `longest` where rows differ in length, `values`, and
    the words of `classes`.

    Where rows differ in length, `shape` is that of one element.
    """

    rows: int
    parts: int
    columns: dict


def write(rows, folder, *, ragged=(), classes=None, values=None, part_bytes=PART_BYTES, replace=False):
    """Writes rows, dicts by column name, as parts into a folder, and gives a `Written`.

    `rows` is any iterable, read once; no more than about a part is held in memory. Each row has the same names: letters, digits
    and `_`, at most 64. Each column has one dtype and shape, but sequences may differ in their first dimension.

    Arrays, scalars of numpy and tensors keep their dtype; unsigned numbers of 16 bits or more become the next larger signed
    ones. Numbers of Python are `int64`, `float32` or `bool`. A `str` is the sequence of its bytes in UTF-8, a `bytes` too.

    - `ragged`: names of columns whose rows may differ in length, where they happen not to do so here. Others are found.
    - `classes`: `{"label": ["ham", "spam"]}` writes 0 for ham and 1 for spam, as `int64`. Parts keep each word as `str(word)`.
      A label that is a `str` needs it: otherwise it is text, a sequence of bytes.
    - `values`: `{"tokens": 5000}` says that whole numbers are below 5000, whichever occur.
    - `part_bytes`: the size from which a part is full.
    - `replace`: takes the place of parts that are there.

    Equal rows give equal bytes. Rows, counted from 0, and columns that can't be are refused by `ValueError`; nothing then
    remains of what was written. Raises `FileExistsError` where parts are there and `replace` isn't given.
    """
    folder = Path(folder)
    if isinstance(ragged, str):
        raise ValueError(f"ragged names columns in a list: [{ragged!r}]")
    if part_bytes < 1:
        raise ValueError("part_bytes is at least 1")
    there = files_of(folder)
    old = [file for file in there if file.suffix != PARTIAL]
    if old and not replace:
        raise FileExistsError(f"{folder} has parts already: replace=True takes their place")
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    # Those of a call that was killed.
    for file in set(there) - set(old):
        file.unlink()
    classes = {name: words if isinstance(words, str) else list(words) for name, words in (classes or {}).items()}
    writer = Writer(folder, set(ragged), classes, values or {}, part_bytes)
    try:
        for row in rows:
            writer.add(row)
        written = writer.finish()
        for file in old:
            file.unlink()
        for file in writer.parts:
            file.replace(file.with_suffix(""))
    except BaseException:
        for file in writer.parts:
            file.unlink(missing_ok=True)
        if is_new:
            folder.rmdir()
        raise
    return written


def files_of(folder):
    """The parts in a folder, finished or not, by name."""
    return sorted(file for file in folder.iterdir() if PART.fullmatch(file.name)) if folder.is_dir() else []


class Writer:
    """Gathers rows and writes them as parts, which are called `.partial` as long as they aren't all there.

    `parts` has their files.
    """

    def __init__(self, folder, ragged, classes, values, part_bytes):
        self.folder = folder
        self.parts = []
        self.rows = 0
        self._ragged = ragged
        self._classes = classes
        self._values = {**values, **{name: len(words) for name, words in classes.items()}}
        self._part_bytes = part_bytes
        self._columns = None
        # The words of classes, by column.
        self._words = {}
        self._in_part = 0
        self._bytes = 0
        # For each part, the columns that have ends there.
        self._with_ends = []

    def add(self, row):
        if not isinstance(row, Mapping):
            hint = 'of pandas df.to_dict("records"), of pyarrow table.to_pylist()'
            raise ValueError(f"row {self.rows} is a {type(row).__name__} instead of a dict of its columns: {hint}")
        if self._columns is None:
            self._columns = self._columns_of(row)
        if row.keys() != self._columns.keys():
            self._refuse_names(row)
        for name, column in self._columns.items():
            self._bytes += column.add(row[name], self.rows)
        self.rows += 1
        self._in_part += 1
        if self._in_part % ROWS_OF_A_CHUNK == 0:
            for column in self._columns.values():
                column.pack()
        if self._bytes >= self._part_bytes:
            self._write_part()

    def _columns_of(self, row):
        """The columns that the first row has, by name."""
        for name in row:
            check_name(name)
        if not 0 < len(row) <= MOST_COLUMNS:
            raise ValueError(f"row 0 has {len(row)} columns: there are 1 to {MOST_COLUMNS}")
        for what, named in (("ragged", self._ragged), ("classes", self._classes), ("values", self._values)):
            for name in named:
                if name not in row:
                    raise ValueError(f"{what} names `{name}`, and row 0 has {', '.join(sorted(row))}")
        columns = {
            name: Column(name, name in self._ragged, self._classes.get(name), self._values.get(name)) for name in sorted(row)
        }
        self._words = {name: column.classes for name, column in columns.items() if column.classes is not None}
        size = len(json.dumps(compact(self._words)))
        if size > MOST_CLASSES_BYTES:
            hint = "write their numbers, and how many there are as `values`"
            raise ValueError(f"the words of classes have {size:,} bytes, more than {MOST_CLASSES_BYTES:,}: {hint}")
        return columns

    def _refuse_names(self, row):
        missing = ", ".join(f"`{name}`" for name in self._columns if name not in row)
        more = ", ".join(f"`{name}`" for name in row if name not in self._columns)
        found = [f"lacks {missing}"] * bool(missing) + [f"has {more} too"] * bool(more)
        raise ValueError(f"row {self.rows} {' and '.join(found)}: all rows have the same columns")

    def _write_part(self):
        """Writes the rows that are held as the next part."""
        if len(self.parts) == MOST_PARTS:
            raise ValueError(f"there would be more than {MOST_PARTS:,} parts: raise part_bytes")
        file = self.folder / f"part-{len(self.parts):05}.safetensors{PARTIAL}"
        self.parts.append(file)
        self._with_ends.append({name for name, column in self._columns.items() if column.is_ragged})
        tensors = {}
        for column in self._columns.values():
            tensors |= column.take()
        write_tensors(file, tensors, self._metadata())
        self._in_part = self._bytes = 0

    def finish(self):
        """Writes what remains; gives parts with equal lengths their ends where later ones turned out to differ."""
        if self.rows == 0:
            raise ValueError("there are no rows")
        if self._in_part:
            self._write_part()
        ragged = {name for name, column in self._columns.items() if column.is_ragged}
        self._check(ragged)
        for file, with_ends in zip(self.parts, self._with_ends):
            if ragged != with_ends:
                tensors = read_tensors(file)
                for name in ragged - with_ends:
                    tensors |= with_ends_of(name, *tensors[name])
                write_tensors(file, tensors, self._metadata())
        return Written(self.rows, len(self.parts), {name: column.describe() for name, column in self._columns.items()})

    def _check(self, ragged):
        """Refuses columns that can't be together, now that it is known which of them are ragged."""
        if len(self._columns) + len(ragged) > MOST_COLUMNS:
            counted = f"{len(self._columns)} columns and {len(ragged)} of their lengths"
            raise ValueError(f"there are {counted}: more than {MOST_COLUMNS}")
        for name in ragged:
            if f"{name}_length" in self._columns:
                raise ValueError(f"a batch has the lengths of `{name}` as `{name}_length`: no column may be called so")
            if len(name) + len("_length") > LONGEST_NAME:
                raise ValueError(f"`{name}_length`, the lengths of a column, would have more than {LONGEST_NAME} bytes")
        for name, column in self._columns.items():
            if column.longest == 0 or 0 in column.shape:
                raise ValueError(f"`{name}` has no numbers in any row")

    def _metadata(self):
        metadata = {"sojourn.columns": "1"}
        if self._values:
            metadata["values"] = compact(self._values)
        if self._words:
            metadata["classes"] = compact(self._words)
        return metadata


def compact(value):
    """JSON for a part's metadata: keys in order, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
