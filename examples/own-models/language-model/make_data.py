#!/usr/bin/env python3
"""Writes corpus.txt: the pages of this repository, one behind another."""

import pathlib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]


def main():
    files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    text = b"".join(file.read_bytes() for file in files)
    (HERE / "corpus.txt").write_bytes(text)
    print(f"corpus.txt: {len(text)} bytes")


if __name__ == "__main__":
    main()
