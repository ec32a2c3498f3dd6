"""Keras models with the backend of PyTorch, as tasks: an entry is a function that returns a compiled model.

    def model(c, data):
        network = keras.Sequential([keras.Input(data.x.shape), layers.Flatten(), layers.Dense(data.classes)])
        network.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
        return network

The loss and the metrics are those of `compile`; its optimiser is left aside for the job file's `[training]`. A tensor is
called by its variable's path. Images come as `[channels, height, width]`; `layers.Permute((2, 3, 1))` gives Keras' order.
Of columns by name the inputs take those that are called as they are, `keras.Input(shape, name="image")`, and the label is `y`.
Chance, such as dropout's, comes from the batch's seed: layers with a `seed` of their own are refused.
"""

import contextlib
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import torch
from keras.src.backend.torch import random as keras_random
from keras.src.losses.loss import squeeze_or_expand_to_same_rank
from keras.src.trainers.compile_utils import get_metric

from sojourn.description import Column
from sojourn.refusal import Refusal
from sojourn.torch import Batch, Task

# The state of Keras' own random numbers, which graphs don't use.
SEED_STATE = "seed_generator_state"
MEAN = "sum_over_batch_size"


def task_of(function):
    """The class of tasks whose model is what `function(c, data)` returns."""

    class KerasTask(Task):
        def setup(self, c, data):
            check_backend()
            keras.utils.clear_session()
            self.net = function(c, data)
            check_compiled(self.net, function.__name__)
            self.inputs = None if hasattr(data, "classes") else input_names(self.net, data, function.__name__)
            # A first call builds what isn't built yet.
            with torch.no_grad():
                zeros = {name: torch.zeros(2, *column.shape, dtype=column.dtype) for name, column in columns_of(data).items()}
                self.outputs(Batch(**zeros), training=False)
            if self.net.optimizer is not None:
                note = f"note: the optimiser of {function.__name__} is left aside; it is [training] of the job file"
                print(note, file=sys.stderr)

        def outputs(self, batch, training):
            x = batch.x if self.inputs is None else {name: getattr(batch, name) for name in self.inputs}
            return self.net(x, training=training)

        def loss(self, batch):
            with chance_of_the_batch():
                return mean_loss(self.net, batch.y, self.outputs(batch, training=True))

        def evaluate(self, batch):
            outputs = self.outputs(batch, training=False)
            loss = mean_loss(self.net, batch.y, outputs) * batch.rows
            return {"loss": loss, **metric_sums(self.net, batch, outputs)}

        def predict(self, batch):
            return self.outputs(batch, training=False)

        def _registered(self):
            for variable in self.net.variables:
                if variable.name != SEED_STATE:
                    yield variable.path, variable.value, True

    KerasTask.__name__ = function.__name__
    return KerasTask


def columns_of(data):
    """The columns that setup was told of, by name."""
    return {name: column for name, column in vars(data).items() if isinstance(column, Column)}


def input_names(model, data, name):
    """The names of a model's inputs, each a column of the data."""
    there = columns_of(data)
    if "y" not in there:
        hint = "Call it y, or write a sojourn.torch.Task."
        raise Refusal(f"The data of {name} have no column y, which is a Keras model's label.", hint=hint)
    names = [tensor.name for tensor in getattr(model, "inputs", None) or []]
    if not names or not there.keys() >= set(names):
        hint = f"Name each as a column: keras.Input(shape, name=...). There are {', '.join(there)}."
        raise Refusal(f"{name} has the inputs {', '.join(names) or 'of no name'}.", hint=hint)
    return names


def check_backend():
    if keras.backend.backend() != "torch":
        hint = "Set KERAS_BACKEND=torch, or leave it out."
        raise Refusal(f"Keras has the backend {keras.backend.backend()}.", hint=hint)


def check_compiled(model, name):
    """Is it a compiled model with one loss?"""
    if not isinstance(model, keras.Model):
        raise Refusal(f"{name} returns {type(model).__name__}.", hint="Return a compiled keras.Model.")
    if not model.compiled or model.loss is None or isinstance(model.loss, (list, dict)):
        raise Refusal(f"The model of {name} has no single loss.", hint="Give model.compile one loss: loss=...")
    reduction = getattr(keras.losses.get(model.loss), "reduction", MEAN)
    if reduction != MEAN:
        hint = f'Leave reduction out: it is "{MEAN}".'
        raise Refusal(f"The loss of {name} has the reduction {reduction}.", hint=hint)


@contextlib.contextmanager
def chance_of_the_batch():
    """While it lasts, Keras draws from PyTorch's stream of chance, which begins with the batch's seed."""

    def generator(seed):
        if getattr(seed, "_initial_seed", seed) is not None:
            hint = "Leave `seed` out: chance comes from the batch's seed."
            raise Refusal("A layer of Keras has a seed of its own.", hint=hint)

    original = keras_random.torch_seed_generator
    keras_random.torch_seed_generator = generator
    try:
        yield
    finally:
        keras_random.torch_seed_generator = original


def mean_loss(model, y, outputs):
    """The compiled loss, its mean over all its numbers, and what layers add to it."""
    loss = keras.losses.get(model.loss)
    function = loss.call if isinstance(loss, keras.losses.Loss) else loss
    y, outputs = squeeze_or_expand_to_same_rank(y, outputs)
    return sum(model.losses, function(y, outputs).mean())


def metric_sums(model, batch, outputs):
    """Sums over rows of the compiled metrics by name."""
    sums = {}
    for given in model._compile_metrics._user_metrics or []:
        metric = get_metric(given, batch.y, outputs)
        if not isinstance(metric, keras.metrics.MeanMetricWrapper):
            hint = "Graphs have metrics that are means over rows, such as accuracy."
            raise Refusal(f"The metric {getattr(metric, 'name', given)} isn't a mean over rows.", hint=hint)
        y, compared = squeeze_or_expand_to_same_rank(batch.y, outputs)
        values = metric._fn(y, compared, **metric._fn_kwargs)
        name = given if isinstance(given, str) else metric.name
        sums[name] = values.sum() if values.dim() == 1 else values.mean() * batch.rows
    return sums
