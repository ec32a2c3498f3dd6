"""Models over columns by name that tests export."""

import torch
from torch import nn
from torch.nn import functional as F

from sojourn.torch import Task


class Captioner(Task):
    """An image's features go first into an LSTM that writes a text; padding doesn't count."""

    def setup(self, c, data):
        self.cnn = nn.Sequential(
            nn.Conv2d(data.image.shape[0], c.width, 3, 2, 1), nn.BatchNorm2d(c.width), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(c.width, c.width),
        )
        self.embedding = nn.Embedding(data.caption.values, c.width)
        self.lstm = nn.LSTM(c.width, c.width, batch_first=True)
        self.head = nn.Linear(c.width, data.caption.values)
        (self.longest,) = data.caption.shape

    def losses(self, batch):
        """The loss of each token, and which tokens there are, both `[rows, longest]`; logits, `[rows, longest, values]`."""
        features = self.cnn(batch.image.float() / 255)
        flow = torch.cat([features[:, None], self.embedding(batch.caption[:, :-1])], 1)
        logits = self.head(self.lstm(flow)[0])
        there = torch.arange(self.longest) < batch.caption_length[:, None]
        return F.cross_entropy(logits.transpose(1, 2), batch.caption, reduction="none"), there, logits

    def loss(self, batch):
        losses, there, _ = self.losses(batch)
        return (losses * there).sum() / there.sum()

    def evaluate(self, batch):
        losses, there, logits = self.losses(batch)
        right = (logits.argmax(2) == batch.caption) & there
        return {"loss": (losses * there).sum(1).div(batch.caption_length).sum(), "tokens": there.sum(), "right": right.sum()}

    def predict(self, batch):
        return self.cnn(batch.image.float() / 255)


class WindowModel(Task):
    """A causal convolution over windows of tokens."""

    def setup(self, c, data):
        (self.length,) = data.tokens.shape
        assert self.length == c.window + 1
        self.embedding = nn.Embedding(data.tokens.values, c.width)
        self.body = nn.Conv1d(c.width, c.width, 3)
        self.head = nn.Linear(c.width, data.tokens.values)
        self.places = nn.Parameter(0.1 * torch.randn(c.window, c.width))

    def loss(self, batch):
        flow = self.embedding(batch.tokens[:, :-1].long()) + self.places
        flow = self.body(F.pad(flow.transpose(1, 2), (2, 0))).relu().transpose(1, 2)
        return F.cross_entropy(self.head(flow).transpose(1, 2), batch.tokens[:, 1:].long())


class Tabular(Task):
    """Numbers, words and truth values side by side, and a target that is a number; each type that data may have."""

    def setup(self, c, data):
        self.city = nn.Embedding(data.city.values, c.width)
        self.body = nn.Linear(data.numbers.shape[0] + c.width + 2, c.width)
        self.head = nn.Linear(c.width, 1)

    def price(self, batch):
        """`[rows]`, in half the precision of the target."""
        switches = torch.stack([batch.garden.float(), batch.rating.float()], 1)
        flow = torch.cat([batch.numbers.float(), self.city(batch.city.long()), switches], 1)
        return self.head(self.body(flow).relu()).squeeze(1)

    def loss(self, batch):
        return F.mse_loss(self.price(batch), batch.price.float())

    def predict(self, batch):
        return self.price(batch)[:, None]


def captions(longest=6, values=30):
    """Images, texts of different lengths, and a label."""
    return {
        "columns": {
            "image": {"dtype": "U8", "shape": [3, 8, 8], "values": 256},
            "caption": {"dtype": "I64", "shape": [longest], "values": values, "length": "caption_length"},
            "caption_length": {"dtype": "I64", "shape": []},
            "label": {"dtype": "I64", "shape": [], "values": 5},
        },
        "classes": None,
        "rows": 1000,
    }


def windows(longest):
    """A stream of bytes, cut into windows."""
    column = {"dtype": "U8", "shape": [longest + 1], "values": 50, "window": True}
    return {"columns": {"tokens": column}, "window": longest, "classes": None, "rows": 1000}


TABLE = {
    "columns": {
        "numbers": {"dtype": "F64", "shape": [3]},
        "city": {"dtype": "I16", "shape": [], "values": 20},
        "garden": {"dtype": "BOOL", "shape": []},
        "rating": {"dtype": "F16", "shape": []},
        "price": {"dtype": "F64", "shape": []},
    },
    "classes": None,
    "rows": 1000,
}

# Each fixture's class, values of a trial, and data.
FIXTURES = {
    "columns_captioner": (Captioner, {"width": 16}, captions()),
    "columns_lm": (WindowModel, {"width": 16, "window": 16}, windows(16)),
    "columns_lm_halves": (WindowModel, {"width": 16, "window": 8}, windows(16)),
}
