#!/usr/bin/env python3
"""Writes text.npz: pieces of 64 bytes of this repository's own text, each with the language that it is in.

`x` has a row for each piece, a number for each byte; `y` has the words `markdown`, `python` and `rust`.
"""

import pathlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PATTERNS = {
    "markdown": ["README.md", "docs/*.md", "docs/*/*.md"],
    "python": ["python/sojourn/*.py", "examples/scripts/*.py", "scripts/*.py", "deploy/tests/*.py"],
    "rust": ["protocol/src/*.rs", "workgen/src/*.rs"],
}
LENGTH = 64
PIECES = 400


def pieces(patterns):
    """So many pieces, at equal distances in all of the files."""
    files = [file for pattern in patterns for file in sorted(ROOT.glob(pattern))]
    text = b"".join(file.read_bytes() for file in files)
    starts = np.linspace(0, len(text) - LENGTH, PIECES).astype(int)
    return [np.frombuffer(text, np.uint8, LENGTH, start) for start in starts]


def main():
    rows = [(piece, language) for language, patterns in PATTERNS.items() for piece in pieces(patterns)]
    x, y = zip(*rows)
    np.savez(HERE / "text.npz", x=np.stack(x), y=np.array(y))
    print(f"text.npz: {len(x)} rows")


if __name__ == "__main__":
    main()
