"""A classifier of texts of different lengths, as bytes."""

import torch
from torch import nn
from torch.nn import functional as F

from sojourn.torch import Task

BYTES = 256


class Classifier(Task):
    def setup(self, c, data):
        (self.longest,) = data.text.shape
        self.embedding = nn.Embedding(BYTES, c.width)
        self.kind = c.kind
        if c.kind == "gru":
            self.body = nn.GRU(c.width, c.width, batch_first=True)
        else:
            self.body = nn.Conv1d(c.width, c.width, 5, padding=2)
        self.head = nn.Linear(c.width, data.language.values)

    def predict(self, batch):
        flow = self.embedding(batch.text.long())
        if self.kind == "gru":
            flow, _ = self.body(flow)
        else:
            flow = self.body(flow.transpose(1, 2)).relu().transpose(1, 2)
        # Shorter texts end in zeros, which don't count.
        there = torch.arange(self.longest) < batch.text_length[:, None]
        return self.head((flow * there[:, :, None]).sum(1) / batch.text_length[:, None])

    def loss(self, batch):
        return F.cross_entropy(self.predict(batch), batch.language)

    def evaluate(self, batch):
        logits = self.predict(batch)
        loss = F.cross_entropy(logits, batch.language, reduction="sum")
        return {"loss": loss, "accuracy": (logits.argmax(1) == batch.language).sum()}
