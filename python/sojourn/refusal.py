"""Why a task can't be a graph, in words that say what to do."""

import re
import traceback
from pathlib import Path


class Refusal(Exception):
    """A task that can't be a graph: `message` says why, `hint` what to do, `file` and `line` where in the user's code.

    `detail` has the original text of PyTorch, where there is one.
    """

    def __init__(self, message, file=None, line=None, hint=None, detail=None):
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.hint = hint
        self.detail = detail

    def to_json(self):
        return {
            "message": self.message,
            "file": self.file,
            "line": self.line,
            "hint": self.hint,
            "detail": self.detail,
        }

    def __str__(self):
        where = f"{self.file}:{self.line}: " if self.file else ""
        return f"{where}{self.message}" + (f" {self.hint}" if self.hint else "")


SEE_PAGE = "docs/own-models.md says what a graph can have."

# Message and hint.
DATA_DEPENDENT = (
    "A branch, a Python number or a size depends on the numbers in a tensor.",
    "Don't use .item(), int(), float(), `if tensor:` or boolean indexing; torch.where and masks do the same inside of a graph. "
    + SEE_PAGE,
)

# Folders into which libraries are installed.
LIBRARIES = {"site-packages", "dist-packages"}

# How PyTorch calls a size that isn't known, which is always the number of rows.
UNKNOWN_SIZE = r"\bs\d+\b"

# What PyTorch says, what it means, and what to do about it. The first that is found counts.
MEANINGS = [
    (
        r"Constraints violated|specialized .*constant|not all values of|ConstraintViolation|"
        r"but your code specialized it|marked as dynamic",
        "The graph would only fit a certain number of rows.",
        "Take the number of rows from batch.rows or batch.x.shape[0], never from len(), and don't branch on it or write "
        "it down as a number.",
    ),
    (
        r"data-dependent|data dependent|DataDependent|Could not guard|Could not extract specialized integer|unbacked|"
        r"_local_scalar_dense|aten\.nonzero|aten\.equal",
        *DATA_DEPENDENT,
    ),
    (
        r"\.numpy\(\)|tolist|__array__|can't convert .*[Ff]ake|Cannot convert .*numpy",
        "The task takes a tensor's numbers out of PyTorch.",
        "Compute with PyTorch's functions alone. " + SEE_PAGE,
    ),
    (
        r"were assigned during export|attribute.*assigned",
        "The task stores a tensor in an attribute while it computes.",
        "Register what is kept from batch to batch with register_buffer in setup, and change it in place.",
    ),
    (
        r"torch\._C\.Generator",
        "The task draws random numbers from a generator of its own.",
        "Leave the generator out: chance comes from the batch's seed.",
    ),
    (
        r"0D or 1D target tensor expected|target with class probabilities, got",
        "The target of the loss isn't one class a row.",
        "Give a column of the shape [rows]. A word that sojourn.data.write numbers by classes= is one; without, it is its bytes.",
    ),
]


def explain(error, folder, doing):
    """A `Refusal` for an exception of the user's code, or of PyTorch about it. `doing` says what failed."""
    file, line = place(error, folder)
    refusal = refusal_among_causes(error)
    if refusal:
        refusal.file, refusal.line = refusal.file or file, refusal.line or line
        return refusal
    text = f"{type(error).__name__}: {error}"
    if file is None:
        file, line = place_in_text(text, folder)
    for pattern, message, hint in MEANINGS:
        if re.search(pattern, text):
            return Refusal(message, file, line, hint, text)
    first = (str(error).strip().splitlines() or ["no message"])[0]
    first = re.sub(UNKNOWN_SIZE, "rows", first)[:300]
    return Refusal(f"{doing} failed: {type(error).__name__}: {first}", file, line, None, text)


def refusal_among_causes(error):
    while error is not None and not isinstance(error, Refusal):
        error = error.__cause__ or error.__context__
    return error


def place(error, folder):
    """File and line of the innermost frame of an exception, or of its causes, within `folder`."""
    while error is not None:
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if within(frame.filename, folder):
                return frame.filename, frame.lineno
        error = error.__cause__ or error.__context__
    return None, None


def place_in_text(text, folder):
    """File and line of the last frame within `folder` that a printed stack trace names."""
    frames = re.findall(r'File "([^"]+)", line (\d+)', text or "")
    for file, line in reversed(frames):
        if within(file, folder):
            return file, int(line)
    return None, None


def within(file, folder):
    """Is a file the user's own: in `folder`, and not a library that is installed there?"""
    if folder is None or file is None:
        return False
    path = Path(file).resolve()
    return Path(folder).resolve() in path.parents and not LIBRARIES & set(path.parts)
