"""Arrays of an evaluation: what the helpers count, that they export for any number of rows, and what is refused."""

import unittest

import torch

import models
from sojourn import metrics, run_graph
from sojourn.export import export
from sojourn.refusal import Refusal

DATA = models.flat(4, 3)


def giving(result):
    """A task whose evaluation gives the loss, and what `result` makes of the task and a batch."""

    class Giving(models.Counted):
        def evaluate(self, batch):
            return {"loss": self.loss(batch) * batch.rows, **result(self, batch)}

    return Giving


def operators():
    """The operators of the trainer, as its page lists them."""
    page = (models.__file__.rsplit("/python/", 1)[0]) + "/docs/models/operators.md"
    with open(page, encoding="utf-8") as text:
        names = [name for line in text for name in line.split("`")[1::2]]
    return {f"aten.{name}" if "." in name else f"aten.{name}.default" for name in names}


class Helpers(unittest.TestCase):
    def test_a_confusion_matrix_has_labels_down_and_predictions_across(self):
        predicted, labels = torch.tensor([0, 2, 1, 0, 0, 1]), torch.tensor([0, 1, 2, 0, 1, 2])
        matrix = metrics.confusion(predicted, labels, 3)
        self.assertEqual(matrix.tolist(), [[2, 0, 0], [1, 0, 1], [0, 2, 0]])

    def test_places_without_a_class_are_not_counted(self):
        predicted, labels = torch.tensor([[0, 1], [1, 7]]), torch.tensor([[-100, 1], [0, 1]])
        self.assertEqual(metrics.confusion(predicted, labels, 2).tolist(), [[0, 1], [0, 1]])

    def test_scores_go_to_the_nearest_bin(self):
        scores = torch.tensor([0.0, 0.1, 0.13, 0.25, 0.9, 1.0, 1.5, float("nan")])
        labels = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])
        self.assertEqual(metrics.score_histogram(scores, labels, bins=5).tolist(), [[2, 1, 0, 0, 0], [0, 1, 0, 0, 3]])
        with self.assertRaises(ValueError):
            metrics.score_histogram(scores, labels, bins=1)

    def test_scores_on_the_bins_stay_apart(self):
        for bins in (2, 3, 50, 101, 1000, 32768):
            scores = torch.arange(bins) / (bins - 1)
            histogram = metrics.score_histogram(scores, torch.ones(bins), bins)
            self.assertEqual(histogram[1].tolist(), [1.0] * bins)


class Exported(unittest.TestCase):
    def test_arrays_have_shapes_in_the_graph_and_any_number_of_rows(self):
        graph = run_graph.Graph(export(models.Counted, {}, DATA, operators()).data)
        self.assertEqual(graph.json["evaluate"]["shapes"], {"pairs": [3, 3], "scores": [2, 50]})
        graph.begin(7)
        task = models.Counted()
        task.setup(None, None)
        task.load_state_dict(graph.tensors)
        whole = {}
        for rows in (1, 2, 64):
            x, y = torch.randn(rows, 4), torch.arange(rows) % 3
            found = graph.evaluate({"x": x, "y": y})
            logits = task.net(x)
            self.assertTrue(torch.equal(found["pairs"], metrics.confusion(logits.argmax(1), y, 3)))
            self.assertEqual(found["scores"].sum(1).tolist(), [(y != 0).sum(), (y == 0).sum()])
            whole = {name: whole.get(name, 0) + value for name, value in found.items()}
        self.assertEqual(whole["pairs"].sum().item(), 67)

    def test_a_graph_without_arrays_is_as_before(self):
        graph = run_graph.Graph(export(models.Mlp, {"hidden": [3]}, DATA, None).data)
        self.assertNotIn("shapes", graph.json["evaluate"])

    def refusal(self, result):
        with self.assertRaises(Refusal) as caught:
            export(giving(result), {}, DATA, None)
        return caught.exception.message

    def test_arrays_that_cannot_be_sums_are_refused(self):
        by_row = self.refusal(lambda task, batch: {"a": batch.x.sum(1)})
        self.assertIn("gives for 'a' a tensor of shape [rows] instead of one number", by_row)
        self.assertIn("gives for 'loss' a tensor of shape [3]", self.refusal(lambda task, batch: {"loss": task.net(batch.x).sum(0)}))
        self.assertIn("gives for 'accuracy'", self.refusal(lambda task, batch: {"accuracy": task.net(batch.x).sum(0)}))
        vast = self.refusal(lambda task, batch: {"a": torch.zeros(256, 256) + batch.x.sum(), "b": batch.x.sum(0)})
        self.assertEqual(vast, "evaluate gives arrays of 65540 numbers.")
        empty = self.refusal(lambda task, batch: {"a": batch.x.sum(0)[:0]})
        self.assertIn("shape [0]", empty)


if __name__ == "__main__":
    unittest.main()
