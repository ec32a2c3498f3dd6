"""A classifier of text, whose rows are bytes."""

from torch import nn
from torch.nn import functional as F

from sojourn.torch import Task

BYTES = 256


class Classifier(Task):
    def setup(self, c, data):
        self.embedding = nn.Embedding(BYTES, c.width)
        self.kind = c.kind
        if c.kind == "gru":
            self.body = nn.GRU(c.width, c.width, batch_first=True)
        else:
            self.body = nn.Conv1d(c.width, c.width, 5, padding=2)
        self.head = nn.Linear(c.width, data.classes)

    def predict(self, batch):
        flow = self.embedding(batch.x.long())
        if self.kind == "gru":
            flow, _ = self.body(flow)
        else:
            flow = self.body(flow.transpose(1, 2)).relu().transpose(1, 2)
        return self.head(flow.mean(1))

    def loss(self, batch):
        return F.cross_entropy(self.predict(batch), batch.y)

    def evaluate(self, batch):
        logits = self.predict(batch)
        loss = F.cross_entropy(logits, batch.y, reduction="sum")
        return {"loss": loss, "accuracy": (logits.argmax(1) == batch.y).sum()}
