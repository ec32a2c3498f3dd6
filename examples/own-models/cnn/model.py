"""A convolutional network for images of digits."""

from torch import nn
from torch.nn import functional as F

from sojourn.torch import Task


class Cnn(Task):
    def setup(self, c, data):
        channels, height, width = data.x.shape
        self.net = nn.Sequential(
            nn.Conv2d(channels, c.width, 3, padding=1),
            nn.BatchNorm2d(c.width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(c.dropout),
            nn.Linear(c.width * (height // 2) * (width // 2), data.classes),
        )

    def loss(self, batch):
        return F.cross_entropy(self.net(batch.x), batch.y)

    def evaluate(self, batch):
        logits = self.net(batch.x)
        loss = F.cross_entropy(logits, batch.y, reduction="sum")
        return {"loss": loss, "accuracy": (logits.argmax(1) == batch.y).sum()}
