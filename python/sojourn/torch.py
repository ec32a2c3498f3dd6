"""Tasks of PyTorch: a model, its loss and its metrics."""

from torch import nn


class Batch:
    """Some rows: `x` is `[rows, ...]` in single precision, `y` is `[rows]`, `rows` is their number.

    Take the number from `rows` or `x.shape[0]`: `len(batch.y)` would put one certain number into the graph.
    """

    def __init__(self, x, y=None):
        self.x = x
        self.y = y

    @property
    def rows(self):
        return self.x.shape[0]


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

        `c` has the values of this trial (`c.width`). `data` has `x` and `y`, each with `shape` (of one row) and `dtype`;
        `classes`, None where `y` is numbers; `rows`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no setup(self, c, data)")

    def loss(self, batch):
        """The loss of a batch: one number, its mean over rows."""
        raise NotImplementedError(f"{type(self).__name__} has no loss(self, batch)")

    def evaluate(self, batch):
        """Sums over the rows by name, `loss` among them; they are added up over batches and divided by all rows."""
        losses = [getattr(self, f"loss_{stage}")(batch) for stage in self.stages] or [self.loss(batch)]
        return {"loss": sum(losses[1:], losses[0]) * batch.rows}

    def predict(self, batch):
        """The outputs, `[rows, ...]`; `batch` has no `y`. By default those of the only module."""
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
