"""The models of tests/whole/graphs: what their checked-in files were exported from."""

import torch
from torch import nn
from torch.nn import functional as F

from sojourn.torch import Task


class Cnn(Task):
    """A small CNN over digits, with batch norm and dropout."""

    def setup(self, c, data):
        self.net = nn.Sequential(
            nn.Conv2d(data.x.shape[0], c.width, 3, padding=1), nn.BatchNorm2d(c.width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(0.1), nn.Linear(c.width * 16, data.classes))

    def loss(self, batch):
        return F.cross_entropy(self.net(batch.x), batch.y)

    def evaluate(self, batch):
        logits = self.net(batch.x)
        return {
            "loss": F.cross_entropy(logits, batch.y, reduction="sum"),
            "accuracy": (logits.argmax(1) == batch.y).sum(),
            "confident": (logits.softmax(1).amax(1) > 0.9).sum(),
        }


class Lm(Task):
    """A transformer that predicts the next byte of windows of text; its output layer shares the embedding's numbers."""

    def setup(self, c, data):
        self.embedding = nn.Embedding(data.tokens.values, c.width)
        self.place = nn.Parameter(torch.zeros(c.window, c.width))
        layer = nn.TransformerEncoderLayer(c.width, 2, 2 * c.width, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(c.width, data.tokens.values, bias=False)
        self.head.weight = self.embedding.weight

    def logits(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.head(self.encoder(self.embedding(tokens) + self.place, mask=mask, is_causal=True))

    def loss(self, batch):
        tokens = batch.tokens.long()
        return F.cross_entropy(self.logits(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    def evaluate(self, batch):
        return {"loss": self.loss(batch) * batch.rows}


class Lines(Task):
    """Which file a line of text is from: bytes of different lengths, their number beside them, and a number that says how much."""

    def setup(self, c, data):
        self.embedding = nn.Embedding(data.text.values, c.width)
        self.head = nn.Linear(c.width, data.label.values)

    def predict(self, batch):
        places = torch.arange(batch.text.shape[1]) < batch.text_length[:, None]
        words = self.embedding(batch.text.long()) * places[:, :, None]
        return self.head(words.sum(1) / batch.text_length[:, None].clamp(min=1))

    def loss(self, batch):
        losses = F.cross_entropy(self.predict(batch), batch.label, reduction="none")
        return (losses * batch.weight).sum() / batch.weight.sum()

    def evaluate(self, batch):
        logits = self.predict(batch)
        loss = F.cross_entropy(logits, batch.label, reduction="sum")
        return {"loss": loss, "accuracy": (logits.argmax(1) == batch.label).sum()}
