"""A variational auto-encoder of digits. It doesn't look at the labels."""

import torch
from torch import nn
from torch.nn import functional as F

from sojourn.torch import Task


class Vae(Task):
    def setup(self, c, data):
        channels, height, width = data.x.shape
        pixels = channels * height * width
        self.beta = c.beta
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(pixels, c.width), nn.ReLU(), nn.Linear(c.width, 2 * c.hidden))
        self.decoder = nn.Sequential(
            nn.Linear(c.hidden, c.width), nn.ReLU(), nn.Linear(c.width, pixels), nn.Sigmoid(), nn.Unflatten(1, data.x.shape)
        )

    def costs(self, batch):
        """What reconstruction and code cost, each a sum over the rows."""
        mean, log_variance = self.encoder(batch.x).chunk(2, 1)
        code = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        reconstruction = F.binary_cross_entropy(self.decoder(code), batch.x, reduction="sum")
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
        return reconstruction, divergence

    def loss(self, batch):
        reconstruction, divergence = self.costs(batch)
        return (reconstruction + self.beta * divergence) / batch.rows

    def evaluate(self, batch):
        reconstruction, divergence = self.costs(batch)
        return {
            "loss": reconstruction + self.beta * divergence,
            "bound": reconstruction + divergence,
            "reconstruction": reconstruction,
        }

    def predict(self, batch):
        mean, _ = self.encoder(batch.x).chunk(2, 1)
        return self.decoder(mean).flatten(1)
