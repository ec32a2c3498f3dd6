"""Writes graphs of the models for the trainer's tests: `client/trainer/tests/graphs/NAME.safetensors` and `NAME.json`.

Run it from `python/` with that folder in PYTHONPATH. `NAME.json` says how to train the graph, and the losses that PyTorch had.
Rows are made up as `sojourn.rows.made_up` says, batches are taken in order, batch `b` has the seed
`seeds::batch(hop_seed, b)`, and version 0 is that of `weights_seed`. With several stages each has a loss and an optimiser of
its own. `sums_before` and `sums_after` are those of `evaluate` over all rows as one batch, with the seed 0.
"""

import json
import sys
from pathlib import Path

import torch

import models
from sojourn import run_graph
from sojourn.export import export
from sojourn.rows import batches, made_up

HERE = Path(__file__).parent
FOLDER = HERE.parent.parent / "client/trainer/tests/graphs"
SEED = 7
ROWS = 59
BATCH = 8
LARGEST = 200_000


def main():
    torch.set_num_threads(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or models.FIXTURES:
        write(name)


def write(name):
    entry, config, data, tokens = models.FIXTURES[name]
    graph_file = export(entry, config, data, None, HERE).data
    if len(graph_file) > LARGEST:
        raise ValueError(f"{name} has {len(graph_file)} bytes")
    (FOLDER / f"{name}.safetensors").write_bytes(graph_file)
    graph = run_graph.Graph(graph_file)
    graph.begin(SEED)
    columns = made_up(data, ROWS, SEED, tokens)
    torch.manual_seed(0)
    before = sums_of(graph, columns)
    losses, _ = run_graph.train(graph.stages(), batches(columns, BATCH), SEED)
    torch.manual_seed(0)
    training = {
        "rows": {"count": ROWS, "seed": SEED, "tokens_from": tokens and tokens[0], "vocabulary": tokens and tokens[1]},
        "classes": data["classes"],
        "batch_size": BATCH,
        "weights_seed": SEED,
        "hop_seed": SEED,
        "optimizer": {"name": "adamw", "lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-08, "weight_decay": 0.01},
        "losses": losses,
        "sums_before": before,
        "sums_after": sums_of(graph, columns),
    }
    (FOLDER / f"{name}.json").write_text(json.dumps(training, indent=1) + "\n")


def sums_of(graph, columns):
    """The sums of `evaluate` over all rows as one batch, with the seed 0."""
    return {name: float(value) for name, value in graph.evaluate(columns).items()}


if __name__ == "__main__":
    main()
