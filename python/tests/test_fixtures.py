"""Each fixture's graph computes what the task computes, to the last bit."""

import unittest
from pathlib import Path

import torch

import models
from sojourn import run_graph
from sojourn.check import Eager
from sojourn.export import export
from sojourn.rows import batches, made_up
from sojourn.torch import Task

HERE = Path(__file__).parent
HOP_SEED = 7
ROWS = 59
BATCH = 8


class Fixtures(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        torch.set_num_threads(1)
        torch.backends.mha.set_fastpath_enabled(False)

    def check(self, name):
        entry, config, data, tokens = models.FIXTURES[name]
        graph = run_graph.Graph(export(entry, config, data, None, HERE).data)
        graph.begin(HOP_SEED)
        eager = Eager(entry, config, data, HERE)
        eager.load(graph.tensors)
        columns = made_up(data, ROWS, HOP_SEED, tokens)
        self.check_training(graph, eager, list(batches(columns, BATCH)))
        self.check_evaluation(graph, eager, columns)

    def check_training(self, graph, eager, parts):
        self.assertEqual((len(parts), len(parts[-1]["x"])), (8, 3))
        eager.task.train()
        torch.manual_seed(1)
        expected = [loss(parts[0]) for loss, _ in eager.stages()]
        torch.manual_seed(1)
        found = [loss(parts[0]) for loss, _ in graph.stages()]
        self.assertEqual(found, expected, "forward in train mode")
        losses, _ = run_graph.train(eager.stages(), parts, HOP_SEED)
        again, _ = run_graph.train(graph.stages(), parts, HOP_SEED)
        self.assertEqual(again, losses)
        for name, tensor in graph.tensors.items():
            self.assertTrue(torch.equal(tensor, eager.tensors[name]), name)

    @torch.no_grad()
    def check_evaluation(self, graph, eager, columns):
        eager.task.eval()
        torch.manual_seed(2)
        expected = eager.computed("evaluate")(columns)
        torch.manual_seed(2)
        found = graph.evaluate(columns)
        self.assertEqual(list(found), list(expected))
        for name in expected:
            self.assertEqual(found[name].tolist(), torch.as_tensor(expected[name]).tolist(), name)
        if "predict" in graph.json:
            outputs = eager.computed("predict")({"x": columns["x"]})
            self.assertTrue(torch.equal(graph.predict({"x": columns["x"]}), outputs))
        else:
            self.assertIs(type(eager.task).predict, Task.predict)


def test_of(name):
    return lambda self: self.check(name)


for fixture in models.FIXTURES:
    setattr(Fixtures, f"test_{fixture}_is_the_same_as_a_graph", test_of(fixture))


if __name__ == "__main__":
    unittest.main()
