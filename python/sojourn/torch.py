"""Tasks of PyTorch: a model, its loss and its metrics."""

from torch import nn

from sojourn.description import Named


class Batch(Named):
    """Some rows: each column by its name, `[rows, ...]`, and `rows`, their number.

    Of rows with a label the columns are `x`, `[rows, ...]` in single precision, and `y`, `[rows]`; None in `predict`. Others have
    the names, types and shapes of the data. Where rows of `tokens` differ in length, they are padded with zeros, and
    `tokens_length` has their lengths.

    Take the number from `rows` or `x.shape[0]`: `len(batch.y)` would put one certain number into the graph.
    """

    def __init__(self, /, **columns):
        super().__init__("batch", columns)

    @property
    def rows(self):
        return next(value.shape[0] for name, value in vars(self).items() if name[0] != "_" and value is not None)


class Task(nn.Module):
    """A model with its loss, which `sojourn` exports as a graph.

        class Digits(Task):
            def setup(self, c, data):
                self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, c.width), nn.ReLU(), nn.Linear(c.width, data.classes))

            def loss(self, batch):
                return F.cross_entropy(self.net(batch.x), batch.y)

    A parameter is called by its attribute and its name in there: `net.1.weight`. The optimiser is the job file's
    `[training]`; an `optimizer` method is left aside.

    Several losses for one batch, as a GAN has, are `stages`: names of attributes whose parameters are moved one after
    another, each by the method `loss_NAME`:

        class Gan(Task):
            stages = ["discriminator", "generator"]

            def loss_discriminator(self, batch): ...
            def loss_generator(self, batch): ...
    """

    stages = ()

    def setup(self, c, data):
        """Makes modules and parameters as attributes.

        `c` has the values of this trial (`c.width`). `data` has the columns by name, each with `shape` (of one row), `dtype` and
        `values`; and `rows`. Of rows with a label they are `x` and `y`, and there is `classes`, None where `y` is numbers.
        """
        raise NotImplementedError(f"{type(self).__name__} has no setup(self, c, data)")

    def loss(self, batch):
        """The loss of a batch: one number, its mean over rows."""
        raise NotImplementedError(f"{type(self).__name__} has no loss(self, batch)")

    def evaluate(self, batch):
        """Sums over the rows by name, `loss` among them: numbers, and arrays as `sojourn.metrics` makes them.

        They are added up over all batches. A metric is a number divided by all rows, or what `[metrics]` of the job says.
        """
        losses = [getattr(self, f"loss_{stage}")(batch) for stage in self.stages] or [self.loss(batch)]
        return {"loss": sum(losses[1:], losses[0]) * batch.rows}

    def predict(self, batch):
        """The outputs, `[rows, ...]`; `batch` has no label `y`. By default those of the only module for `x`."""
        (module,) = self.children()
        return module(batch.x)

    def _registered(self):
        """Each registered name with its tensor, and whether checkpoints keep it; a tied one under each of its names."""
        for prefix, module in self.named_modules(remove_duplicate=False):
            dot = prefix and prefix + "."
            for name, tensor in module._parameters.items():
                if tensor is not None:
                    yield dot + name, tensor, True
            for name, tensor in module._buffers.items():
                if tensor is not None:
                    yield dot + name, tensor, name not in module._non_persistent_buffers_set
