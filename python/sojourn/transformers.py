"""Models of Hugging Face as tasks: `sojourn.transformers.task("distilbert-base-uncased", labels=2)` is a model of a search.

    rows = datasets.load_dataset("imdb", split="train").map(tokenizer_of_a_column, remove_columns=["text"])
    search = sojourn.Search(sojourn.transformers.task("distilbert-base-uncased", labels=2), data=rows, valid=0.1, epochs=2)

Data have columns by name: those that the model takes, `input_ids` or `pixel_values` first, and `label` or `labels`. Rows of tokens
may differ in length: they are padded, and masked where there is no column `attention_mask`. Keys of the model in the space are keys
of its configuration: `space={"hidden_dropout_prob": sojourn.uniform(0, 0.3)}`.

Weights of a model that is named, or given with its weights, are the first numbers of every trial. A configuration alone is a model that
trains from the beginning.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from torch.nn import functional as F

from sojourn.description import Column
from sojourn.refusal import Refusal
from sojourn.torch import Batch, Task
from sojourn.wrapped import Saved, Wrapped

LABELS = ("labels", "label")
MASK, TOKENS = "attention_mask", "input_ids"
HEADS = (transformers.AutoModelForSequenceClassification, transformers.AutoModelForImageClassification)
WEIGHTS = ("*.safetensors", "*.bin")


def task(model: Any, labels: int | Sequence[str] | None) -> type[Task]:
    """The task's class of a model with a head that classifies rows, or gives a number for each.

    `model` is a name on the Hub, a folder, a `PretrainedConfig` or a `PreTrainedModel`. `labels` is how many classes there are,
    or their names, or None where labels are numbers. Raises `TypeError` for anything else.
    """
    if not isinstance(model, (str, transformers.PretrainedConfig, transformers.PreTrainedModel)):
        raise TypeError(f"a model is a name, a configuration or a model of transformers, and not a {type(model).__name__}")
    named = str(Path(model).absolute()) if isinstance(model, str) and Path(model).is_dir() else model
    count = labels if labels is None or isinstance(labels, int) else len(labels)

    class TransformersTask(_TransformersTask):
        wrapped = Wrapped(__name__, "task", [named if isinstance(named, str) else _SavedModel(named), count])
        source, classes = named, count

    name = type(model).__name__ if not isinstance(model, str) else Path(model).name
    TransformersTask.__name__ = TransformersTask.__qualname__ = name
    return TransformersTask


class _TransformersTask(Task):
    """A task around `net`, a model of transformers."""

    source: Any
    classes: int | None  # None where labels are numbers

    def setup(self, c: Any, data: Any) -> None:
        given = self.source.config if isinstance(self.source, transformers.PreTrainedModel) else self.source
        config = transformers.AutoConfig.from_pretrained(given) if isinstance(given, str) else copy.deepcopy(given)
        for name in c:
            if not hasattr(config, name):
                raise Refusal(f"{type(config).__name__} has no {name}.", hint="Keys of the model are those of its configuration.")
            setattr(config, name, c[name])
        config.num_labels = self.classes or 1
        head = _head_of(config)
        # Written out: a fused operator exists for one kind of machine alone.
        if isinstance(self.source, str) and _has_weights(self.source):
            options = {"attn_implementation": "eager", "ignore_mismatched_sizes": True}
            self.net = head.from_pretrained(self.source, config=config, **options)
        else:
            self.net = head.from_config(config, attn_implementation="eager")
            if isinstance(self.source, transformers.PreTrainedModel):
                self.net.load_state_dict(self.source.state_dict())
        columns = [name for name, one in vars(data).items() if isinstance(one, Column)]
        taken = inspect.signature(self.net.forward).parameters
        self.inputs = [name for name in columns if name in taken and name not in LABELS]
        self.label = next((name for name in LABELS if name in columns), "")
        if not self.inputs or not self.label:
            hint = "Give a data set with columns such as input_ids and label."
            raise Refusal(f"{type(self.net).__name__} finds no columns of its own and a label in {', '.join(columns)}.", hint=hint)
        self.has_lengths = f"{TOKENS}_length" in columns and MASK not in self.inputs and MASK in taken

    def outputs(self, batch: Batch) -> torch.Tensor:
        """Logits `[rows, classes]`, or numbers `[rows, 1]`."""
        given = {name: getattr(batch, name) for name in self.inputs}
        given = {name: value if value.is_floating_point() else value.long() for name, value in given.items()}
        if self.has_lengths:
            lengths = getattr(batch, f"{TOKENS}_length")
            given[MASK] = (torch.arange(given[TOKENS].shape[1]) < lengths[:, None]).long()
        outputs: torch.Tensor = self.net(**given).logits
        return outputs

    def _loss(self, batch: Batch, outputs: torch.Tensor) -> torch.Tensor:
        labels = getattr(batch, self.label)
        if self.classes is None:
            return F.mse_loss(outputs[:, 0], labels.float())
        return F.cross_entropy(outputs, labels.long())

    def loss(self, batch: Batch) -> torch.Tensor:
        return self._loss(batch, self.outputs(batch))

    def evaluate(self, batch: Batch) -> dict[str, torch.Tensor]:
        outputs = self.outputs(batch)
        sums = {"loss": self._loss(batch, outputs) * batch.rows}
        if self.classes is not None:
            sums["accuracy"] = (outputs.argmax(1) == getattr(batch, self.label)).sum()
        return sums

    predict = outputs


class _SavedModel(Saved):
    """A model with its weights, or a configuration, as `save_pretrained` writes it."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def path(self, folder: Path) -> str:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as name:
            partial = Path(name) / "model"
            self._model.save_pretrained(partial)
            digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(partial.iterdir()))).hexdigest()
            path = folder / digest[:16]
            if not path.exists():
                partial.replace(path)
        return str(path)


def _head_of(config: Any) -> Any:
    """The class of models with a head for labels that transformers has for a configuration."""
    for head in HEADS:
        if type(config) in head._model_mapping:
            return head
    hint = "Write a sojourn.torch.Task around the model."
    raise Refusal(f"transformers has no model of {type(config).__name__} with a head for labels.", hint=hint)


def _has_weights(source: str) -> bool:
    """Has a name of the Hub or a folder weights, and not a configuration alone?"""
    return not Path(source).is_dir() or any(file for pattern in WEIGHTS for file in Path(source).glob(pattern))
