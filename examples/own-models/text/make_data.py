#!/usr/bin/env python3
"""Writes the folder lines: lines of this repository's own text, each with the language that it is in.

`text` has a line's bytes, `language` is 0 for Markdown, 1 for Python and 2 for Rust.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "python"))  # elsewhere: pip install 'sojourn[data]'

from sojourn import data  # noqa: E402

PATTERNS = {
    "markdown": ["README.md", "docs/*.md", "docs/*/*.md"],
    "python": ["python/sojourn/*.py", "examples/scripts/*.py", "scripts/*.py", "deploy/tests/*.py"],
    "rust": ["protocol/src/*.rs", "workgen/src/*.rs"],
}
SHORTEST = 16
LINES = 800


def lines(patterns):
    """So many lines, at equal distances in all of the files."""
    files = [file for pattern in patterns for file in sorted(ROOT.glob(pattern))]
    found = [line for file in files for line in file.read_text(encoding="utf-8").splitlines() if len(line) >= SHORTEST]
    return [found[index * len(found) // LINES] for index in range(LINES)]


def main():
    rows = ({"text": line, "language": language} for language, patterns in PATTERNS.items() for line in lines(patterns))
    written = data.write(rows, HERE / "lines", classes={"language": list(PATTERNS)}, replace=True)
    print(f"lines: {written.rows} rows, the longest of {written.columns['text']['longest']} bytes")


if __name__ == "__main__":
    main()
