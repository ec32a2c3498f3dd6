"""Trained weights in the user's own module. Imports PyTorch."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from sojourn import program
from sojourn.canonical import DTYPES
from sojourn.parts import read_tensors
from sojourn.torch import Task
from sojourn.tracing import of_trial

if TYPE_CHECKING:
    from sojourn.job.job import Job
    from sojourn.job.views import Trial

CLASS_LABELS, NUMBER_LABELS = "I64", "F32"


def load(job: Job, trial: Trial, code: Callable[..., object] | None, export: Callable[[str], object]) -> Task:
    """The module of a trial with the weights that `export` writes into a file; see `Best.model`."""
    history = job.server.api.get(f"jobs/{job.number}/trials/{trial.trial}/history")
    model = history["context"]["config"]["model"]
    if model["arch"] != "graph":
        raise ValueError(f"trial {trial.trial} is a built-in {model['arch']}: export it, or predict with it")
    code = code or job.codes.get(model["entry"])
    if code is None:
        raise ValueError(f"the job's model is {model['entry']}: give its class, best.model(Net)")
    config = model.get("values", {})
    data = of_trial(_described(history["data"]), config)
    with torch.random.fork_rng(devices=[]):
        task: Task
        task, _ = program.set_up(program.task_class(code), config, data, None)
    with tempfile.TemporaryDirectory(prefix="sojourn-") as folder:
        file = Path(folder) / "model.safetensors"
        export(os.fspath(file))
        tensors = {name: _tensor(*entry) for name, entry in read_tensors(file).items()}
    own = {name: tensors[name] for name in task.state_dict() if name in tensors}
    # A mask that no checkpoint can hold is a constant of the graph, and as `setup` has made it.
    task.load_state_dict(own, strict=False)
    task.eval()
    return task


def _tensor(word: str, shape: list[int], buffers: list[bytes]) -> torch.Tensor:
    data = bytearray(b"".join(buffers))
    return torch.frombuffer(data, dtype=DTYPES[word]).reshape(shape) if data else torch.empty(shape, dtype=DTYPES[word])


def _described(manifest: dict[str, Any]) -> dict[str, Any]:
    """The data as the exporter is told of it."""
    rows = sum(shard["rows"] for shard in manifest["train"])
    if manifest.get("columns"):
        columns: dict[str, Any] = {}
        for column in manifest["columns"]:
            longest = column.get("longest")
            shape = column.get("shape", [])
            columns[column["name"]] = {
                "dtype": column["dtype"],
                "shape": shape if longest is None else [longest, *shape],
                "values": column.get("values"),
                "window": column.get("windows", False),
            }
            if longest is not None:
                columns[f"{column['name']}_length"] = {"dtype": "I64", "shape": []}
        return {"columns": columns, "rows": rows}
    labels = manifest["labels"]
    classes = len(labels["classes"]) if isinstance(labels, dict) else None
    return {
        "x": {"dtype": "F32", "shape": manifest["shape"]},
        "y": {"dtype": NUMBER_LABELS if classes is None else CLASS_LABELS, "shape": []},
        "classes": classes,
        "rows": rows,
    }
