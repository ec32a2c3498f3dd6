"""Writes graphs of the models for the trainer's tests: `client/trainer/tests/graphs/NAME.safetensors` and `NAME.json`.

Run it from `python/` with that folder in PYTHONPATH. `NAME.json` says how to train the graph, and the losses that PyTorch had.
Rows are made up as `sojourn.rows.made_up` says, batches are taken in order, batch `b` has the seed
`seeds::batch(hop_seed, b)`, and version 0 is that of `weights_seed`. With several stages each has a loss and an optimiser of
its own. `sums_before` and `sums_after` are those of `evaluate` over all rows as one batch, with the seed 0.

Those with columns by name are in the folder `columns`. There `NAME.rows.safetensors` is a shard, of which training takes the rows
in the order `seeds::row_order(hop_seed, rows)`, and `evaluate` those of the shard in their order. `NAME.json` has `columns` as a
request of the exporter does, and the `window` of the trial. A shorter one than the data's makes several rows of each row of the
shard, one after another: `batch_size` counts rows of the shard, and the sums are those of all windows.
"""

import json
import sys
from pathlib import Path

import torch

import column_models
import models
from sojourn import run_graph, seeds
from sojourn.export import export
from sojourn.canonical import encode
from sojourn.rows import batches, made_up, of_shard, shard
from sojourn.tracing import of_trial

HERE = Path(__file__).parent
FOLDER = HERE.parent.parent / "client/trainer/tests/graphs"
SEED = 7
ROWS = 59
BATCH = 8
LARGEST = 200_000


def main():
    torch.set_num_threads(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "columns").mkdir(exist_ok=True)
    for name in sys.argv[1:] or [*models.FIXTURES, *column_models.FIXTURES]:
        if name in models.FIXTURES:
            write(name)
        else:
            write_with_columns(name)


def write(name):
    """The fixture of a model over rows with a label."""
    entry, config, data, tokens = models.FIXTURES[name]
    columns = made_up(data, ROWS, SEED, tokens)
    described = {
        "rows": {"count": ROWS, "seed": SEED, "tokens_from": tokens and tokens[0], "vocabulary": tokens and tokens[1]},
        "classes": data["classes"],
    }
    graph_file = export(entry, config, data, None, HERE).data
    write_files(FOLDER / name, graph_file, described, columns, batches(columns, BATCH))


def write_with_columns(name):
    """The fixture of a model over columns by name, with its shard."""
    entry, config, data = column_models.FIXTURES[name]
    tensors = shard(data, made_up(data, ROWS, SEED))
    data_of_trial = of_trial(data, config)
    rows = of_shard(data, tensors)
    order = torch.tensor(seeds.row_order(SEED, ROWS))
    in_order = {name: column[order] for name, column in rows.items()}
    parts = [of_shard(data_of_trial, shard(data, part)) for part in batches(in_order, BATCH)]
    described = {"rows": {"count": ROWS}, "columns": data["columns"], "window": config.get("window")}
    path = FOLDER / "columns" / name
    graph_file = export(entry, config, data, None, HERE).data
    path.with_suffix(".rows.safetensors").write_bytes(encode(tensors))
    write_files(path, graph_file, described, of_shard(data_of_trial, tensors), parts)


def write_files(path, graph_file, described, columns, parts):
    """The graph, and what it makes of the batches `parts` and of `columns`, all rows."""
    if len(graph_file) > LARGEST:
        raise ValueError(f"{path.name} has {len(graph_file)} bytes")
    path.with_suffix(".safetensors").write_bytes(graph_file)
    graph = run_graph.Graph(graph_file)
    graph.begin(SEED)
    torch.manual_seed(0)
    before = sums_of(graph, columns)
    losses, _ = run_graph.train(graph.stages(), parts, SEED)
    torch.manual_seed(0)
    training = {
        **described,
        "batch_size": BATCH,
        "weights_seed": SEED,
        "hop_seed": SEED,
        "optimizer": {"name": "adamw", "lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-08, "weight_decay": 0.01},
        "losses": losses,
        "sums_before": before,
        "sums_after": sums_of(graph, columns),
    }
    path.with_suffix(".json").write_text(json.dumps(training, indent=1) + "\n")


def sums_of(graph, columns):
    """The sums of `evaluate` over all rows as one batch, with the seed 0."""
    return {name: value.tolist() for name, value in graph.evaluate(columns).items()}


if __name__ == "__main__":
    main()
