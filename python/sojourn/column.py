"""One column of the data that `sojourn.data` writes: from values of Python, numpy or PyTorch to tensors of parts."""

import re
import unicodedata
from array import array

import numpy as np

from sojourn.parts import ends

LONGEST_NAME = 64
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
TAKEN_NAMES = ("rows", "classes")
# Characters of a class's word.
LONGEST_WORD = 256
# Unicode's categories of what a word can't have: control characters, halves of characters, ends of lines and paragraphs.
NO_CHARACTERS = {"Cc", "Cs", "Zl", "Zp"}
# Where a row of a sequence ends is written as a number of this size.
BYTES_OF_AN_END = 8
WORDS = {
    np.dtype(np.float64): "F64",
    np.dtype(np.float32): "F32",
    np.dtype(np.float16): "F16",
    np.dtype(np.int64): "I64",
    np.dtype(np.int32): "I32",
    np.dtype(np.int16): "I16",
    np.dtype(np.int8): "I8",
    np.dtype(np.uint8): "U8",
    np.dtype(np.bool_): "BOOL",
}
# Types that parts don't have, and the next larger ones.
WIDER = {
    np.dtype(np.uint16): np.dtype(np.int32),
    np.dtype(np.uint32): np.dtype(np.int64),
    np.dtype(np.uint64): np.dtype(np.int64),
}
NO_NUMBERS = {
    "c": "complex numbers: write real and imaginary parts as two columns",
    "U": "words: name them in `classes`, or give one str a row",
    "S": "words: name them in `classes`, or give one bytes a row",
    "T": "words: name them in `classes`, or give one str a row",
    "M": "times: write them as numbers",
    "m": "times: write them as numbers",
}


class Column:
    """The numbers of one column: those of the next part, and what all rows so far have in common."""

    def __init__(self, name, ragged, words, values):
        """`ragged`: are rows known to differ in length? `words` are those that become numbers, `values` bounds numbers."""
        self.name = name
        self.shape = None
        self.longest = None
        self._ragged = ragged
        self._shortest = None
        self._values = values
        self._words = None if words is None else {word: number for number, word in enumerate(words)}
        self._dtype = None
        # Whether a row is a sequence: such rows have lengths, and `shape` is that of one element.
        self._is_sequence = None
        self._pending = []
        self._chunks = []
        self._lengths = array("q")
        if words is not None and (isinstance(words, str) or not words or len(self._words) != len(words)):
            raise ValueError(f"classes lists the words of `{name}`, each once")
        self.classes = None if words is None else class_names(name, words)
        if values is not None and not 0 < values < 1 << 32:
            raise ValueError(f"`{name}` has {values} values: there are 1 to 4,294,967,295")

    @property
    def is_ragged(self):
        return self._ragged or self._shortest != self.longest

    def add(self, value, row):
        """Takes the value of a row; gives its bytes."""
        try:
            if self._words is not None:
                value = self._numbered(value)
            if isinstance(value, (str, bytes, bytearray)):
                self._ragged = True
            # An empty list says nothing of dtype and shape.
            numbers = None if isinstance(value, (list, tuple)) and not value else as_array(value)
            self._check(numbers)
        except ValueError as error:
            raise ValueError(f"row {row}: `{self.name}` {error}") from None
        if not self._is_sequence:
            self._pending.append(numbers.reshape(1))
            return numbers.nbytes
        length = 0 if numbers is None else len(numbers)
        self._lengths.append(length)
        self.longest = length if self.longest is None else max(self.longest, length)
        self._shortest = length if self._shortest is None else min(self._shortest, length)
        if length == 0:
            return BYTES_OF_AN_END
        self._pending.append(numbers)
        return numbers.nbytes + BYTES_OF_AN_END

    def _numbered(self, value):
        """Words, one or a sequence, as their numbers."""
        if isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) > 0:
            return np.array([self._numbered(word) for word in value], np.int64)
        try:
            return np.int64(self._words[value])
        except (KeyError, TypeError):
            raise ValueError(f"is {value!r}, which isn't one of its classes: {', '.join(map(str, self._words))}") from None

    def _check(self, numbers):
        """Refuses what isn't as in earlier rows, and numbers that can't be; the message goes on after the column's name."""
        is_sequence = numbers is None or numbers.ndim > 0
        if self._is_sequence is None:
            if self._ragged and not is_sequence:
                raise ValueError("is one number, which can't be ragged")
            self._is_sequence = is_sequence
        if is_sequence != self._is_sequence:
            raise ValueError("is a sequence in some rows and one number in others")
        if numbers is None:
            return
        element = numbers.shape[1:]
        if self._dtype is None:
            self._dtype, self.shape = numbers.dtype, element
        if numbers.dtype != self._dtype:
            found, before = WORDS[numbers.dtype], WORDS[self._dtype]
            raise ValueError(f"is {found}, and {before} in earlier rows: give all rows one type, as float(...) does")
        if element != self.shape:
            found, before = list(numbers.shape), ", ".join(["any", *map(str, self.shape)])
            raise ValueError(f"has the shape {found}, and [{before}] in earlier rows: only the first dimension may differ")
        if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
            raise ValueError("has a number that isn't finite (NaN is a missing value): leave the row out, or write another")
        if self._values is not None and numbers.size:
            if numbers.dtype.kind not in "iu":
                raise ValueError(f"is {WORDS[numbers.dtype]}, and values are of whole numbers")
            if numbers.min() < 0 or numbers.max() >= self._values:
                wrong = numbers.min() if numbers.min() < 0 else numbers.max()
                raise ValueError(f"has the number {wrong}: with {self._values} values they are 0 to {self._values - 1}")

    def pack(self):
        """Makes one array of the rows that are kept one by one."""
        if self._pending:
            self._chunks.append(np.concatenate(self._pending))
            self._pending = []

    def take(self):
        """The tensors of a part, by name, and none of its rows any more."""
        if self._dtype is None:
            hint = "give an empty row as an array that says its dtype: np.zeros(0, np.int64)"
            raise ValueError(f"`{self.name}` is an empty list in all rows so far: {hint}")
        self.pack()
        chunks, lengths = self._chunks, self._lengths
        self._chunks, self._lengths = [], array("q")
        word, elements = WORDS[self._dtype], sum(map(len, chunks))
        buffers = [chunk.tobytes() for chunk in chunks]
        if self.is_ragged:
            flat = (word, [elements, *self.shape], buffers)
            return {self.name: flat, f"{self.name}.ends": ends(np.cumsum(np.asarray(lengths)))}
        shape = [len(lengths), self.longest, *self.shape] if self._is_sequence else [elements]
        return {self.name: (word, shape, buffers)}

    def describe(self):
        """The column as `Written` has it."""
        shape = list(self.shape) if self.is_ragged or not self._is_sequence else [self.longest, *self.shape]
        described = {"dtype": WORDS[self._dtype], "shape": shape}
        if self.is_ragged:
            described["longest"] = self.longest
        if self._values is not None:
            described["values"] = self._values
        if self.classes is not None:
            described["classes"] = self.classes
        return described


def class_names(column, words):
    """The words of a column's classes as parts have them, `str(word)` in their order.

    Raises `ValueError` for two that are the same then, for long ones, and for those that don't fit into a line.
    """
    called = {}
    for word in words:
        text = str(word)
        if len(text) > LONGEST_WORD:
            shown = text[:40] + "..."
            raise ValueError(f"a class of `{column}` is {shown!r}, which has {len(text)} characters: at most {LONGEST_WORD}")
        if any(unicodedata.category(character) in NO_CHARACTERS for character in text):
            raise ValueError(f"a class of `{column}` is {text!r}, which has a control character")
        if text in called:
            raise ValueError(f"the classes {called[text]!r} and {word!r} of `{column}` are both called {text!r}")
        called[text] = word
    return list(called)


def check_name(name):
    """Refuses names that a column can't have."""
    if not isinstance(name, str) or not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        hint = f"names have letters, digits and _, begin with a letter, and have at most {LONGEST_NAME} bytes"
        raise ValueError(f"a column can't be called {name!r}: {hint}")
    if name in TAKEN_NAMES:
        raise ValueError(f"a column can't be called `{name}`: a batch has something else under that name")


def as_array(value):
    """A value as an array of its own memory, of a type that parts have."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, (bytes, bytearray)):
        return np.frombuffer(bytes(value), np.uint8)
    if value is None or (isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value)):
        raise ValueError("is missing: leave the row out, or write a number")
    numbers = numpy_of(value)
    native = numbers.dtype.newbyteorder("=")
    dtype = WIDER.get(native, native)
    if native == np.float64 and not hasattr(first_number(value), "dtype"):
        dtype = np.dtype(np.float32)
    if native == np.uint64 and numbers.size and numbers.max() > np.iinfo(np.int64).max:
        raise ValueError(f"has the number {numbers.max()}, which is above {np.iinfo(np.int64).max}, the largest of I64")
    if dtype not in WORDS:
        raise ValueError(f"has {NO_NUMBERS.get(native.kind) or no_number(numbers)}")
    # A number that is too large becomes infinite, which is refused like one that was.
    with np.errstate(over="ignore"):
        return np.array(numbers, dtype, order="C")


def numpy_of(value):
    """What numpy makes an array of: of a tensor its numbers."""
    try:
        value = value.detach().cpu().numpy() if hasattr(value, "detach") else value
        return np.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:
        if "inhomogeneous" in str(error):
            raise ValueError("has lists of different lengths inside: only the first dimension may differ") from None
        raise ValueError(f"can't be an array ({error})") from None


def first_number(value):
    """The first number of nested lists."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value


def no_number(numbers):
    """What an array has that isn't numbers."""
    if numbers.dtype.kind != "O":
        return f"the dtype {numbers.dtype}, which parts don't have: use astype"
    for part in numbers.flat:
        if part is None:
            return "a missing number: leave the row out, or write a number"
        if not isinstance(part, (bool, int, float)):
            return f"a {type(part).__name__}, which isn't a number"
    return "a whole number that I64 can't have"
