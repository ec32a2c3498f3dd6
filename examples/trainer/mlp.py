"""A fully connected network, its losses, optimisers and schedules, in numpy's single precision.

What is computed here is right within rounding, not to the bit: another order of sums gives other bytes, and a numeric
class of its own. What may not differ at all is in `exact.py`.
"""

import math

import numpy as np
from exact import array_of, encode, lineage_numbers, tensor_of, uniform_weights

F32 = np.float32
# Loss and model are checked; numpy needn't say it too.
np.seterr(over="ignore", invalid="ignore")


class Failed(Exception):
    """A unit that can't be done: the kind of failure that the client hears of, and why."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def fields(table, what, required, optional=""):
    """The table, if it has just these fields. One that we don't know could change what we are to compute: never skip it."""
    names = {*required.split(), *optional.split()}
    if unknown := sorted(set(table) - names):
        raise Failed("unsupported", f"this trainer doesn't know `{unknown[0]}` of {what}")
    if missing := sorted(set(required.split()) - set(table)):
        raise Failed("trainer", f"`{missing[0]}` of {what} is missing")
    return table


def choice(value, what, known):
    """The word of a choice and what belongs to it: `"none"`, or an object with the word as its one key."""
    word, content = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else (value, None)
    if word not in known.split():
        raise Failed("unsupported", f"this trainer doesn't know {what} `{word}`")
    return word, content


class Trial:
    """The context that all units of a trial have: what is trained on which rows, and how."""

    def __init__(self, context):
        fields(context, "the context", "config shape outputs scaling total_steps", "targets pinned_threads")
        config = fields(context["config"], "the configuration", "model training")
        choice(config["model"]["arch"], "the architecture", "mlp")
        model = fields(config["model"], "the model", "arch hidden", "batch_norm dropout")
        optional = "local_epochs clip_norm augment precision sampling"
        training = fields(config["training"], "the training", "epochs batch_size loss optimizer schedule", optional)
        if model.get("batch_norm") or model.get("dropout"):
            raise Failed("unsupported", "this trainer knows neither batch norm nor dropout")
        if training.get("augment"):
            raise Failed("unsupported", "this trainer changes no rows at random")
        choice(training.get("precision", "f32"), "the precision", "f32")
        sampling, _ = choice(training.get("sampling", "shuffled"), "the sampling", "shuffled balanced")
        self.is_balanced = sampling == "balanced"
        self.loss, _ = choice(training["loss"], "the loss", "cross-entropy mse")
        self.optimizer = fields(training["optimizer"], "the optimiser", "name lr momentum beta1 beta2 eps weight_decay")
        choice(self.optimizer["name"], "the optimiser", "sgd adam adamw")
        self.schedule = fields(training["schedule"], "the schedule", "name warmup every gamma floor")
        choice(self.schedule["name"], "the schedule", "constant step cosine")
        self.clip_norm = training.get("clip_norm")

        self.features, self.outputs = math.prod(context["shape"]), context["outputs"]
        self.batch_size, self.total_steps = training["batch_size"], context["total_steps"]
        self.passes = training.get("local_epochs", 1)
        self.scaling = choice(context["scaling"], "the scaling", "none constant standard")
        targets, content = choice(context.get("targets", "plain"), "the targets", "plain standard weighted")
        self.label_scaling = content if targets == "standard" else None
        self.class_weights = np.array(content, F32) if targets == "weighted" else None
        if min(self.batch_size, self.passes) < 1 or (self.loss == "mse" and self.outputs != 1):
            raise Failed("trainer", "`batch_size` and `local_epochs` are at least 1, and `mse` takes one output")
        if self.class_weights is not None and len(self.class_weights) != self.outputs:
            raise Failed("trainer", f"{len(self.class_weights)} class weights for {self.outputs} outputs")
        sizes = [self.features, *model["hidden"], self.outputs]
        self.layers = list(zip(sizes[1:], sizes))

    def parameters(self):
        """Names and shapes in order of computation: the order in which parameters take their first numbers."""
        for n, (outputs, inputs) in enumerate(self.layers):
            yield f"layers.{n}.weight", [outputs, inputs]
            yield f"layers.{n}.bias", [outputs]

    def slots(self):
        """Prefixes of the optimiser's state: a tensor of each parameter's shape."""
        if self.optimizer["name"] == "sgd":
            return ["optimizer.momentum_buffer."] if self.optimizer["momentum"] else []
        return ["optimizer.exp_avg.", "optimizer.exp_avg_sq."]

    def first_weights(self, seed):
        """The parameters of version 0, which every host makes by itself."""
        for index, (name, shape) in enumerate(self.parameters()):
            fan_in = self.layers[index // 2][1]
            yield name, tensor_of(uniform_weights(seed, index, shape, fan_in))

    def first_checkpoint(self, seed, weights):
        """The tensors of version 0 with these parameters: the optimiser's state begins at 0."""
        position = {"epoch": 0, "shard": 0, "batch": 0, "step": 0}
        tensors = {**weights, "lineage": lineage_tensor(seed, 0, position)}
        for slot in self.slots():
            for name, shape in self.parameters():
                tensors[slot + name] = tensor_of(np.zeros(shape, F32))
        return tensors


def lineage_tensor(hop_seed, trial, position):
    return tensor_of(np.array(lineage_numbers(hop_seed, trial, position), np.int64))


class Model:
    """Parameters, gradients and the optimiser's state, each in one flat array; tensors are views of it."""

    def __init__(self, trial, tensors):
        self.trial = trial
        places, slots = list(trial.parameters()), ["", *trial.slots()]
        expected = {slot + name: ("F32", shape) for slot in slots for name, shape in places}
        expected["lineage"] = ("I64", [6])
        if {name: tensor[:2] for name, tensor in tensors.items()} != expected:
            raise Failed("trainer", "the checkpoint's tensors aren't those of the trial's model")
        self.lineage = array_of(tensors["lineage"]).tolist()
        flats = [np.concatenate([array_of(tensors[slot + name]).ravel() for name, _ in places]) for slot in slots]
        self.weights, *self.state = flats
        self.gradient = np.zeros_like(self.weights)

    def views(self, flat):
        """The parameters' parts of a flat array by name, in their shapes."""
        parts, at = {}, 0
        for name, shape in self.trial.parameters():
            parts[name] = flat[at : at + math.prod(shape)].reshape(shape)
            at += math.prod(shape)
        return parts

    def layers(self, flat):
        """Pairs of a weight and a bias."""
        parts = list(self.views(flat).values())
        return list(zip(parts[::2], parts[1::2]))

    def forward(self, x):
        """The outputs `[rows, outputs]`, before any softmax, and the input of each layer."""
        inputs, layers = [], self.layers(self.weights)
        for n, (weight, bias) in enumerate(layers):
            inputs.append(x)
            x = x @ weight.T + bias
            if n + 1 < len(layers):
                x = np.maximum(x, F32(0))
        return x, inputs

    def backward(self, inputs, slope):
        """Computes the gradient, from that of the loss for the outputs."""
        layers = zip(self.layers(self.weights), self.layers(self.gradient), inputs)
        for (weight, _), (weight_gradient, bias_gradient), x in reversed(list(layers)):
            np.matmul(slope.T, x, out=weight_gradient)
            np.sum(slope, axis=0, out=bias_gradient)
            # Inputs of all layers but the first come out of a ReLU: 0 where nothing passes.
            slope = (slope @ weight) * (x > 0)

    def check_finite(self):
        """A checkpoint with other numbers would be refused by the server."""
        if not all(np.isfinite(flat).all() for flat in [self.weights, *self.state]):
            raise Failed("non-finite", "a number of the model isn't finite after training")

    def file(self, hop_seed, position, trial):
        """The canonical checkpoint, whose lineage says where it stands."""
        tensors = {"lineage": lineage_tensor(hop_seed, trial, position)}
        for prefix, flat in zip(["", *self.trial.slots()], [self.weights, *self.state]):
            for name, part in self.views(flat).items():
                tensors[prefix + name] = tensor_of(part)
        return encode(tensors)


def row_losses(loss, outputs, y):
    """The loss of each row, and its gradient for the row's outputs."""
    if loss == "mse":
        errors = outputs[:, 0] - y
        return errors * errors, (2 * errors)[:, None]
    rows = np.arange(len(y))
    shifted = outputs - outputs.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    totals = exponentials.sum(axis=1, keepdims=True)
    slope = exponentials / totals
    slope[rows, y] -= 1
    return np.log(totals[:, 0]) - shifted[rows, y], slope


def mean_loss(trial, outputs, y):
    """The loss of a batch, and its gradient for the outputs. With class weights the mean is over the rows' weights."""
    losses, slope = row_losses(trial.loss, outputs, y)
    weights = np.ones(len(y), F32) if trial.class_weights is None else trial.class_weights[y]
    shares = weights / weights.sum()
    return float((losses * shares).sum()), slope * shares[:, None]


def schedule_factor(schedule, step, total_steps):
    """The factor on the learning rate for a step, counted from 0 over the whole trial: schedules.json."""
    if step < schedule["warmup"]:
        return (step + 1) / schedule["warmup"]
    after = step - schedule["warmup"]
    if schedule["name"] == "step":
        return schedule["gamma"] ** (after // max(schedule["every"], 1))
    if schedule["name"] == "cosine":
        length = max(total_steps - schedule["warmup"], 1)
        wave = (1 + math.cos(math.pi * (min(after, length) / length))) / 2
        return schedule["floor"] + (1 - schedule["floor"]) * wave
    return 1.0


def clip(gradient, limit):
    """Scales a gradient down to this norm, as PyTorch's `clip_grad_norm_` does."""
    norm = F32(np.sqrt(np.sum(np.square(gradient, dtype=np.float64))))
    gradient *= min(F32(1) / (norm + F32(1e-6)) * F32(limit), F32(1))


def update(optimizer, clip_norm, weights, gradient, state, count, factor):
    """One step, which uses the gradient up: optimizers.json. `count` is the trial's step, counted from 1."""
    if clip_norm is not None:
        clip(gradient, clip_norm)
    lr, decay = optimizer["lr"] * factor, optimizer["weight_decay"]
    if optimizer["name"] == "adamw":
        weights *= F32(1 - lr * decay)
    elif decay:
        gradient += weights * F32(decay)
    if optimizer["name"] == "sgd":
        if state:
            state[0] *= F32(optimizer["momentum"])
            state[0] += gradient
        weights += (state[0] if state else gradient) * F32(-lr)
        return

    first, second = state
    beta1, beta2 = optimizer["beta1"], optimizer["beta2"]
    first += F32(1 - beta1) * (gradient - first)
    second += F32(1 - beta2) * (gradient * gradient - second)
    # Factors of the bias corrections are computed in double precision, and rounded once.
    correction1, correction2 = 1 - beta1**count, 1 - beta2**count
    if lr == 0 or correction1 / (lr * math.sqrt(correction2)) > np.finfo(F32).max:
        return  # so small a rate moves nothing
    scale, shift = -correction1 / (lr * math.sqrt(correction2)), -optimizer["eps"] * correction1 / lr
    weights += first / (np.sqrt(second) * F32(scale) + F32(shift))

