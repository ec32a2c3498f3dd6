#!/usr/bin/env python3
"""Measures fifteen lines in Python: `scripts/bench_python.py PROGRAMS [--epochs N] [--rounds N]`, where PROGRAMS has sojourn and sojourn-trainer.

The twelve trials of `benches/anchors`, cold, from the interpreter's start to the best model in a file; beside the same search by the
command line, and beside Optuna with two processes. The three are run by turns, and the middle of each one's times counts. The Python is
the one that SOJOURN_BENCH_PYTHON names; Optuna's turn needs torch and optuna there. Prints a JSON line for each figure.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # a checkout stays as it is
from fleet import ROOT, Fleet  # noqa: E402

ANCHORS = ROOT / "benches" / "anchors"
JOB = """name = "bench"
seed = 7

[data]
train = "{digits}"
label = "label"
shape = [1, 8, 8]
scale = "standard"
valid = 0.2
shards = 2

[[model]]
arch = "mlp"
hidden = [64]

[[model]]
arch = "cnn"
channels = [16, 32]

[training]
epochs = {epochs}
batch_size = 32
optimizer = {{ name = "adam", lr = {{ log_uniform = [1e-3, 1e-2], points = 6 }} }}

[search]
method = "grid"
metric = "valid/accuracy"
"""


def by_python(python, programs, epochs, file):
    """Seconds that a program of `benches/anchors` says it took."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SOJOURN_")}
    path = {"PYTHONPATH": str(ROOT / "python"), "PATH": f"{programs}:{kept.get('PATH', '')}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [python, ANCHORS / file, "--epochs", str(epochs)]
    done = subprocess.run(command, env={**kept, **path, "SOJOURN_GPUS": "none"}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"bench: {file} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])["seconds"]


def by_command(python, programs, epochs):
    """Seconds from the server's start to the best model in a file, by the command line."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = pathlib.Path(name)
        job = folder / "job.toml"
        job.write_text(JOB.format(digits=ROOT / "examples/digits/digits.csv", epochs=epochs), encoding="utf-8")
        begun = time.monotonic()
        with Fleet(programs, pathlib.Path(python), folder, ["--slots", "2"]) as fleet:
            fleet.sojourn("submit", job, "--wait")
            fleet.sojourn("export", "1", "--best", "-o", folder / "best.safetensors")
            return time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser(description="Measures fifteen lines in Python.")
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    programs, epochs = arguments.programs.resolve(), arguments.epochs
    python = os.environ.get("SOJOURN_BENCH_PYTHON")
    if python is None:
        sys.exit("bench: SOJOURN_BENCH_PYTHON names no Python with torch, optuna and numpy")
    turns = {
        "fifteen lines": lambda: by_python(python, programs, epochs, "with_sojourn.py"),
        "Optuna": lambda: by_python(python, programs, epochs, "with_optuna.py"),
        "the command line": lambda: by_command(python, programs, epochs),
    }
    took = {name: [] for name in turns}
    for _ in range(arguments.rounds):
        for name, turn in turns.items():
            took[name].append(turn())
            print(f"{name}: {took[name][-1]:.2f} s", file=sys.stderr)
    middle = {name: statistics.median(seconds) for name, seconds in took.items()}
    value = middle.pop("fifteen lines")
    title = f"fifteen lines in Python, 12 trials x {epochs} epochs, 2 processes, from the interpreter's start to the best model"
    for name, anchor in middle.items():
        figure = {"name": f"{title}; beside {name}", "value": round(value, 3), "unit": "s", "anchor": round(anchor, 3)}
        print(json.dumps({**figure, "ratio": round(value / anchor, 3)}), flush=True)


if __name__ == "__main__":
    main()
