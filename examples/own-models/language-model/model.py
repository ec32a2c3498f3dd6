"""A small transformer that predicts each byte from those before it."""

import torch
from torch import nn
from torch.nn import functional as F

from sojourn.torch import Task

BYTES = 256


class LanguageModel(Task):
    def setup(self, c, data):
        (length,) = data.x.shape
        self.embedding = nn.Embedding(BYTES, c.width)
        self.places = nn.Parameter(0.02 * torch.randn(1, length, c.width))
        layer = nn.TransformerEncoderLayer(c.width, c.heads, 4 * c.width, c.dropout, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, c.layers, enable_nested_tensor=False)
        self.head = nn.Linear(c.width, BYTES)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length), persistent=False)

    def logits(self, batch):
        """`[rows, length, 256]`: for each place, what comes next."""
        flow = self.embedding(batch.x.long()) + self.places
        return self.head(self.body(flow, mask=self.mask, is_causal=True))

    def loss(self, batch):
        following = torch.cat([batch.x[:, 1:], batch.y[:, None]], 1).long()
        return F.cross_entropy(self.logits(batch).transpose(1, 2), following)

    def predict(self, batch):
        return self.logits(batch)[:, -1]
