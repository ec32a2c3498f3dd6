"""One hop over a user's own model in PyTorch's eager mode, as one would write it: for each line on stdin (a fixture of
`python/tests/models.py`, a shard, the order of its rows, the size of a batch) one pass, and rows a second on stdout.

`client/trainer/benches/graphs.rs` runs it beside the trainer, which has the model's graph: the same rows in the same order, one
thread, AdamW, an optimiser for each stage; losses are counted as there.
"""

import json
import sys
import time
from pathlib import Path

import torch

PYTHON = Path(__file__).resolve().parents[2] / "python"
sys.path[:0] = [str(PYTHON), str(PYTHON / "tests")]

import models  # noqa: E402 (it is found by what stands above)
from sojourn.canonical import decode  # noqa: E402
from sojourn.program import set_up  # noqa: E402
from sojourn.torch import Batch  # noqa: E402


def stages(task):
    """The loss of each stage, and the optimiser of what it moves."""
    for stage in task.stages or [None]:
        moved = list((getattr(task, stage) if stage else task).parameters())
        loss = getattr(task, f"loss_{stage}" if stage else "loss")
        yield loss, moved, torch.optim.AdamW(moved, lr=1e-3)


def turn(case):
    """Rows a second."""
    entry, config, data, _ = models.FIXTURES[case["graph"]]
    task, _ = set_up(entry, config, data, PYTHON / "tests")
    task.train()
    parts = list(stages(task))
    shard = decode(Path(case["shard"]).read_bytes())
    x, y = shard["x"].unflatten(1, data["x"]["shape"]), shard["y"]
    order = torch.tensor(case["order"])
    losses = 0.0
    started = time.perf_counter()
    for pick in order.split(case["batch"]):
        batch = Batch(x=x[pick], y=y[pick])
        for loss_of, moved, optimizer in parts:
            loss = loss_of(batch)
            optimizer.zero_grad()
            loss.backward(inputs=moved)
            optimizer.step()
            losses += loss.item() * len(pick)
    took = time.perf_counter() - started
    assert losses < float("inf")
    return len(order) / took


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    print(json.dumps(torch.__version__), flush=True)
    for line in sys.stdin:
        print(json.dumps(turn(json.loads(line))), flush=True)
