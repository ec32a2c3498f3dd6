#!/usr/bin/env python3
"""Writes bytes.npz: the pages of this repository in windows of 64 bytes, each with the byte that follows it.

`x` has a row for each window, a number for each byte; `y` has the bytes that follow.
"""

import pathlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
LENGTH = 64
STEP = 64


def main():
    files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    text = np.frombuffer(b"".join(file.read_bytes() for file in files), np.uint8)
    windows = np.lib.stride_tricks.sliding_window_view(text, LENGTH + 1)[::STEP]
    np.savez(HERE / "bytes.npz", x=windows[:, :-1], y=windows[:, -1])
    print(f"bytes.npz: {len(windows)} rows")


if __name__ == "__main__":
    main()
