"""Tasks that can't be graphs. Each is refused at the line that says so."""

import random

import torch
from torch import nn
from torch.nn import functional as F

from sojourn.torch import Task


class Linear(Task):
    """A task that is fine; the others change it."""

    def setup(self, c, data):
        self.net = nn.Linear(data.x.shape[0], data.classes)
        self.steps = 0

    def loss(self, batch):
        return F.cross_entropy(self.net(batch.x), batch.y)


class Branches(Linear):
    def loss(self, batch):
        logits = self.net(batch.x)
        if logits.sum() > 0:  # refused: depends on the numbers in a tensor
            logits = 2 * logits
        return F.cross_entropy(logits, batch.y)


class Item(Linear):
    def loss(self, batch):
        factor = batch.x.mean().item()  # refused: depends on the numbers in a tensor
        return F.cross_entropy(self.net(batch.x), batch.y) * factor


class Selects(Linear):
    def loss(self, batch):
        chosen = batch.y > 1
        losses = F.cross_entropy(self.net(batch.x), batch.y, reduction="none")
        return losses[chosen].mean()  # refused: depends on the numbers in a tensor


class Length(Linear):
    def loss(self, batch):
        return F.cross_entropy(self.net(batch.x), batch.y, reduction="sum") / len(batch.x)  # refused: len() of a batch


class FixedRows(Linear):
    def loss(self, batch):
        weights = torch.ones(7)
        losses = F.cross_entropy(self.net(batch.x), batch.y, reduction="none")
        return (losses * weights).mean()  # refused: a certain number of rows


class BranchesOnRows(Linear):
    def loss(self, batch):
        loss = super().loss(batch)
        return loss if batch.rows > 5 else 2 * loss  # refused: a certain number of rows


class DividesByRows(Linear):
    def loss(self, batch):
        return super().loss(batch) * (1 / batch.rows)  # refused: truediv gives a number of Python


class Counts(Linear):
    def loss(self, batch):  # refused: changes the attribute steps
        self.steps += 1
        return super().loss(batch)


class DrawsInPython(Linear):
    def loss(self, batch):  # refused: draws random numbers with random
        return super().loss(batch) * random.random()


class OwnGenerator(Linear):
    def loss(self, batch):
        noise = torch.rand(batch.x.shape, generator=torch.Generator())  # refused: a generator of its own
        return F.cross_entropy(self.net(batch.x + noise), batch.y)


class ToNumpy(Linear):
    def loss(self, batch):
        return super().loss(batch) * batch.x.numpy().mean()  # refused: out of PyTorch


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class OwnGradient(Linear):
    def loss(self, batch):
        return F.cross_entropy(Doubled.apply(self.net(batch.x)), batch.y)  # refused: autograd function


class UnknownOperator(Linear):
    def loss(self, batch):
        return super().loss(batch) + torch.linalg.svdvals(self.net.weight).sum()  # refused: aten.linalg_svdvals.default


class Mistyped(Linear):
    def loss(self, batch):
        return F.cross_entropy(self.nett(batch.x), batch.y)  # refused: has no attribute 'nett'


class UnknownValue(Linear):
    def setup(self, c, data):
        self.net = nn.Linear(data.x.shape[0], c.widht)  # refused: c has no 'widht'; it has width


class Losses(Linear):
    def loss(self, batch):  # refused: shape [rows] instead of one number
        return F.cross_entropy(self.net(batch.x), batch.y, reduction="none")


class NoLossInSums(Linear):
    def evaluate(self, batch):  # refused: `loss` among them
        return {"accuracy": (self.net(batch.x).argmax(1) == batch.y).sum()}


class ChangesTheBatch(Linear):
    def loss(self, batch):
        batch.x.mul_(2)  # refused: changes the batch itself
        return super().loss(batch)


class MovesParameters(Linear):
    def loss(self, batch):
        with torch.no_grad():
            self.net.weight.clamp_(-1, 1)
        return super().loss(batch)


class MovesBuffersInEvaluation(Linear):
    def setup(self, c, data):
        super().setup(c, data)
        self.register_buffer("seen", torch.zeros(()))

    def evaluate(self, batch):
        self.seen += batch.rows
        return super().evaluate(batch)


class Double(Linear):
    def setup(self, c, data):
        self.net = nn.Linear(data.x.shape[0], data.classes).double()


class Empty(Task):
    def setup(self, c, data):
        pass


class Remembers(Linear):
    """No export can see this: the last batch's logits stay in an attribute. `sojourn.check` finds it."""

    def setup(self, c, data):
        super().setup(c, data)
        self.last = torch.zeros(())

    def loss(self, batch):
        loss = super().loss(batch)
        total = loss + 0.5 * self.last * self.net.weight.sum()
        self.last = loss.detach()
        return total


class PredictsOneNumber(Linear):
    def predict(self, batch):  # refused: a row for each row
        return self.net(batch.x).sum(0)


class NamesASum(Linear):
    def evaluate(self, batch):  # refused: a sum that is called 'top 5'
        loss = self.loss(batch) * batch.rows
        return {"loss": loss, "top 5": loss}


class FewClasses(Linear):
    def setup(self, c, data):
        self.net = nn.Linear(data.x.shape[0], 2)

    def loss(self, batch):
        return F.cross_entropy(self.net(batch.x), batch.y)  # refused: y has numbers up to 2
