"""Buffers that checkpoints can't hold become constants where nothing moves them; tensors that can't begin so are refused."""

import unittest

import torch
from torch import nn
from torch.nn import functional as F

import models
from sojourn import run_graph
from sojourn.check import Eager
from sojourn.export import export
from sojourn.refusal import Refusal
from sojourn.rows import batches, made_up
from sojourn.torch import Task

DATA = models.flat(4, 3)
SEED = 7


class Linear(Task):
    def setup(self, c, data):
        self.net = nn.Linear(4, 3)

    def predict(self, batch):
        return self.net(batch.x)

    def loss(self, batch):
        return F.cross_entropy(self.predict(batch), batch.y)


class Masked(Linear):
    """Attention between the numbers of a row by masks that are persistent, as many transformers have them."""

    def setup(self, c, data):
        super().setup(c, data)
        self.register_buffer("infinite", torch.triu(torch.full((4, 4), float("-inf")), 1))
        self.register_buffer("lower", torch.tril(torch.ones(4, 4)).bool())
        self.register_buffer("places", torch.arange(4.0, dtype=torch.float64))
        self.register_buffer("unused", torch.full((2,), float("nan")))
        self.register_buffer("scale", torch.full((4,), 0.5))

    def predict(self, batch):
        scores = batch.x[:, :, None] * batch.x[:, None, :] + self.infinite
        scores = scores.masked_fill(~self.lower, float("-inf")).softmax(2)
        mixed = (scores @ (batch.x * self.scale)[:, :, None]).squeeze(2)
        return self.net(mixed + self.places.float())


class MovesInfinity(Linear):
    def setup(self, c, data):
        super().setup(c, data)
        self.register_buffer("smallest", torch.full((), float("inf")))

    def loss(self, batch):
        loss = super().loss(batch)
        if self.training:
            self.smallest.copy_(torch.minimum(self.smallest, loss.detach()))
        return loss


class MovesTruthValues(Linear):
    def setup(self, c, data):
        super().setup(c, data)
        self.register_buffer("seen", torch.zeros(3, dtype=torch.bool), persistent=False)

    def loss(self, batch):
        if self.training:
            self.seen.logical_or_((F.one_hot(batch.y, 3) > 0).any(0))
        return super().loss(batch)


class InfiniteParameter(Linear):
    def setup(self, c, data):
        super().setup(c, data)
        nn.init.constant_(self.net.bias, float("nan"))


class Buffers(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def refusal(self, task):
        with self.assertRaises(Refusal) as caught:
            export(task, {}, DATA)
        return caught.exception

    def test_what_checkpoints_cannot_hold_is_constant(self):
        graph = run_graph.Graph(export(Masked, {}, DATA).data)
        roles = {entry["name"]: entry["role"] for entry in graph.json["tensors"]}
        constants = {name for name, role in roles.items() if role == "constant"}
        self.assertEqual(constants, {"infinite", "lower", "places"})
        self.assertEqual(roles["scale"], "buffer")
        self.assertNotIn("unused", roles)
        self.assertEqual(graph.constants["lower"].tolist(), torch.tril(torch.ones(4, 4)).bool().tolist())

    def test_a_model_with_such_buffers_trains_as_its_graph(self):
        graph, eager = run_graph.Graph(export(Masked, {}, DATA).data), Eager(Masked, {}, DATA, None)
        graph.begin(SEED)
        eager.load(graph.tensors)
        parts = list(batches(made_up(DATA, 30, SEED), 8))
        losses, _ = run_graph.train(graph.stages(), parts, SEED)
        self.assertEqual(losses, run_graph.train(eager.stages(), parts, SEED)[0])
        for name, tensor in graph.tensors.items():
            self.assertTrue(torch.equal(tensor, eager.tensors[name]), name)

    def test_a_buffer_that_moves_must_fit_a_checkpoint(self):
        refusal = self.refusal(MovesInfinity)
        self.assertEqual(refusal.message, "The buffer smallest, which the loss changes, has numbers that aren't finite.")
        self.assertIn("torch.finfo", refusal.hint)
        self.assertIn("The buffer seen, which the loss changes, is torch.bool.", self.refusal(MovesTruthValues).message)

    def test_parameters_begin_finite(self):
        self.assertEqual(self.refusal(InfiniteParameter).message, "The parameter net.bias has numbers that aren't finite.")


if __name__ == "__main__":
    unittest.main()
