"""The search that the anchors run: twelve small models on the digits, as one would write it in PyTorch.

Six times an mlp 64-64-10 and six times a cnn 16-32, each with six learning rates, Adam, batches of 32,
an evaluation after each epoch; one thread a process. `plain.py`, `with_optuna.py` and `with_ray.py` only
say who runs which trial.
"""

import argparse
import json
import os
import time
from pathlib import Path

BATCH = 32
RATES = [1e-3 * 10 ** (step / 5) for step in range(6)]
TRIALS = [(arch, rate) for arch in ("mlp", "cnn") for rate in RATES]
DATA = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.csv"


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--data", type=Path, default=DATA)
    return parser.parse_args()


def since_start():
    """Seconds since this process was started, the interpreter's own start included."""
    with open("/proc/self/stat") as stat:
        started = int(stat.read().rpartition(")")[2].split()[19])
    with open("/proc/uptime") as uptime:
        return float(uptime.read().split()[0]) - started / os.sysconf("SC_CLK_TCK")


def report(name, best):
    """Prints the one line: how long all of it took, and the best accuracy, to see that it learnt."""
    print(json.dumps({"name": name, "seconds": round(since_start(), 3), "best": round(best, 4)}))


def load(path):
    """The rows, standardised per feature over those to train on: (x, y) twice, to train and to check."""
    import numpy
    import torch

    table = numpy.loadtxt(path, delimiter=",", skiprows=1, dtype=numpy.float32)
    order = numpy.random.default_rng(7).permutation(len(table))
    table, cut = table[order], len(table) // 5
    x, y = torch.from_numpy(table[:, :-1]), torch.from_numpy(table[:, -1]).long()
    mean, deviation = x[cut:].mean(0), x[cut:].std(0)
    x = (x - mean) / torch.where(deviation > 0, deviation, torch.ones(()))
    return (x[cut:], y[cut:]), (x[:cut], y[:cut])


def network(arch):
    from torch import nn

    if arch == "mlp":
        return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 10),
    )


def train(data, arch, rate, epochs, after_epoch=lambda accuracy: None):
    """Trains one trial; gives its best accuracy."""
    import torch

    (x, y), (valid_x, valid_y) = data
    torch.manual_seed(7)
    model = network(arch)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    best = 0.0
    for _ in range(epochs):
        model.train()
        order = torch.randperm(len(x))
        losses = hits = 0
        for pick in order.split(BATCH):
            outputs = model(x[pick])
            loss = torch.nn.functional.cross_entropy(outputs, y[pick])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses += loss.item() * len(pick)
            hits += (outputs.argmax(1) == y[pick]).sum().item()
        model.eval()
        with torch.no_grad():
            accuracy = (model(valid_x).argmax(1) == valid_y).float().mean().item()
        best = max(best, accuracy)
        after_epoch(accuracy)
    return best


def one_thread():
    import torch

    torch.set_num_threads(1)
    # Only before the first parallel work; an actor that is used again has done some.
    if torch.get_num_interop_threads() != 1:
        torch.set_num_interop_threads(1)
