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
        self.embedding = nn.Embedding(256, c.width)
        self.place = nn.Parameter(torch.zeros(data.x.shape[0] - 1, c.width))
        layer = nn.TransformerEncoderLayer(c.width, 2, 2 * c.width, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(c.width, 256, bias=False)
        self.head.weight = self.embedding.weight

    def logits(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.head(self.encoder(self.embedding(tokens) + self.place, mask=mask, is_causal=True))

    def loss(self, batch):
        tokens = batch.x.long()
        return F.cross_entropy(self.logits(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    def evaluate(self, batch):
        return {"loss": self.loss(batch) * batch.rows}
