"""A small transformer that predicts each token from those before it."""

import torch
from torch import nn
from torch.nn import functional as F

from sojourn.torch import Task


class LanguageModel(Task):
    def setup(self, c, data):
        self.embedding = nn.Embedding(data.tokens.values, c.width)
        self.places = nn.Parameter(0.02 * torch.randn(1, c.window, c.width))
        layer = nn.TransformerEncoderLayer(c.width, c.heads, 4 * c.width, c.dropout, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, c.layers, enable_nested_tensor=False)
        self.head = nn.Linear(c.width, data.tokens.values)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(c.window), persistent=False)

    def logits(self, tokens):
        """`[rows, window, values]` for `tokens`, `[rows, window]`: for each place, what comes next."""
        flow = self.embedding(tokens) + self.places
        return self.head(self.body(flow, mask=self.mask, is_causal=True))

    def loss(self, batch):
        tokens = batch.tokens.long()  # [rows, window + 1]
        return F.cross_entropy(self.logits(tokens[:, :-1]).transpose(1, 2), tokens[:, 1:])

    def predict(self, batch):
        return self.logits(batch.tokens[:, 1:].long())[:, -1]
