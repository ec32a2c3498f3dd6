"""Indices out of range for the largest numbers of the data are refused; what only made-up rows do wrong isn't."""

import importlib.util
import unittest
from pathlib import Path
from unittest import mock

import torch
from torch import nn
from torch.nn import functional as F

import column_models
import models
from sojourn.export import export
from sojourn.refusal import Refusal
from sojourn.torch import Task

HERE = Path(__file__).parent
NAMED = {
    "columns": {
        "tokens": {"dtype": "I32", "shape": [6], "values": 50, "length": "tokens_length"},
        "tokens_length": {"dtype": "I64", "shape": []},
        "year": {"dtype": "I64", "shape": [], "values": 2025},
        "label": {"dtype": "I64", "shape": [], "values": 4},
        "weight": {"dtype": "F32", "shape": []},
    },
    "classes": None,
    "rows": 100,
}


class Texts(Task):
    """A task that is fine; the others change it."""

    tokens, lengths, labels = 50, 7, 4

    def setup(self, c, data):
        self.embedding = nn.Embedding(self.tokens, 8)
        self.length = nn.Embedding(self.lengths, 8)
        self.year = nn.Embedding(35, 8)
        self.head = nn.Linear(8, self.labels)

    def predict(self, batch):
        flow = self.embedding(batch.tokens).mean(1) + self.length(batch.tokens_length)
        return self.head(flow + self.year(batch.year - 1990) * batch.weight[:, None])

    def loss(self, batch):
        return F.cross_entropy(self.predict(batch), batch.label)


class FewTokens(Texts):
    tokens = 49


class FewLengths(Texts):
    lengths = 6


class FewLabels(Texts):
    labels = 3


class FewOfBoth(Texts):
    tokens, labels = 10, 2


class Joined(Texts):
    def loss(self, batch):
        return super().loss(batch) + F.one_hot(batch.tokens[:, 0] + batch.label, 52).float().mean()


class LabelsFromOne(Texts):
    """Numbers of the data need not begin at 0, which their description doesn't say."""

    labels = 3

    def loss(self, batch):
        return F.cross_entropy(self.predict(batch), batch.label - 1)


class WrongInEvaluation(Texts):
    def evaluate(self, batch):
        confusion = torch.zeros(batch.rows, 3).scatter(1, batch.label[:, None], 1.0)
        return {"loss": self.loss(batch) * batch.rows, "labels": confusion.sum()}


class WrongInPrediction(Texts):
    def predict(self, batch):
        outputs = super().predict(batch)
        return outputs if self.training else outputs * F.one_hot(batch.label, 3).sum(1, keepdim=True)

    def evaluate(self, batch):
        return {"loss": batch.weight.sum()}


class TwoStages(Task):
    stages = ["first", "second"]

    def setup(self, c, data):
        self.first = nn.Linear(4, 3)
        self.second = nn.Linear(4, 2)

    def loss_first(self, batch):
        return F.cross_entropy(self.first(batch.x), batch.y)

    def loss_second(self, batch):
        return F.cross_entropy(self.second(batch.x), batch.y)


class OneOutput(Task):
    def setup(self, c, data):
        self.net = nn.Linear(4, 1)

    def loss(self, batch):
        return F.cross_entropy(self.net(batch.x), batch.y)


class TokensFromOne(Task):
    """Nothing is known of the numbers of `x`."""

    def setup(self, c, data):
        self.embedding = nn.Embedding(5, 8)
        self.head = nn.Linear(8, data.classes)

    def loss(self, batch):
        return F.cross_entropy(self.head(self.embedding(batch.x.long() - 1).mean(1)), batch.y)


class Factored(Task):
    """What made-up rows aren't: positive definite."""

    def setup(self, c, data):
        self.net = nn.Linear(4, 3)

    def loss(self, batch):
        factor = torch.linalg.cholesky(batch.x[:, :, None] * batch.x[:, None, :] - torch.eye(4))
        return F.cross_entropy(self.net(factor.mean(1)), batch.y)


SHARED = nn.BatchNorm1d(4)


class Shares(Task):
    """A task whose configurations share a module."""

    def setup(self, c, data):
        self.norm = SHARED
        self.net = nn.Linear(4, 3)

    def loss(self, batch):
        return F.cross_entropy(self.net(F.dropout(self.norm(batch.x))), batch.y)


class OutOfRange(unittest.TestCase):
    def refusal(self, task, data=NAMED, config=None):
        with self.assertRaises(Refusal) as caught:
            export(task, config or {}, data, None, HERE)
        return caught.exception

    def test_the_column_is_named_with_its_largest_number(self):
        refusal = self.refusal(FewTokens)
        self.assertEqual(refusal.message, "loss has an index or a class out of range: tokens has numbers up to 49.")
        self.assertIn("data.tokens.values", refusal.hint)
        self.assertEqual(Path(refusal.file).name, "test_index_check.py")
        self.assertIn("self.embedding(batch.tokens)", Path(refusal.file).read_text().splitlines()[refusal.line - 1])
        self.assertIn("IndexError: index out of range in self", refusal.detail)
        self.assertIn("label has numbers up to 3.", self.refusal(FewLabels).message)

    def test_lengths_are_columns_too(self):
        refusal = self.refusal(FewLengths)
        self.assertIn("tokens_length has numbers up to 6.", refusal.message)
        self.assertIn("data.tokens.shape[0] + 1", refusal.hint)

    def test_of_several_errors_the_first_is_told(self):
        self.assertIn("range: tokens has numbers up to 49.", self.refusal(FewOfBoth).message)

    def test_columns_that_make_an_index_together_are_named(self):
        self.assertIn("range: label has numbers up to 3, tokens has numbers up to 49.", self.refusal(Joined).message)

    def test_classes_of_a_label(self):
        refusal = self.refusal(TwoStages, models.flat(4, 3))
        self.assertEqual(refusal.message, "loss_second has an index or a class out of range: y has numbers up to 2.")
        self.assertIn("data.classes", refusal.hint)
        self.assertIn("y has numbers up to 1.", self.refusal(OneOutput, models.flat(4, 2)).message)

    def test_evaluation_and_prediction_are_tried(self):
        self.assertIn("evaluate has an index", self.refusal(WrongInEvaluation).message)
        self.assertIn("predict has an index", self.refusal(WrongInPrediction).message)

    def test_windows_of_tokens(self):
        class Few(column_models.WindowModel):
            def setup(self, c, data):
                super().setup(c, data)
                self.embedding = nn.Embedding(49, c.width)

        message = self.refusal(Few, column_models.windows(16), {"width": 4, "window": 8}).message
        self.assertIn("tokens has numbers up to 49.", message)

    @unittest.skipUnless(importlib.util.find_spec("keras"), "Keras isn't installed")
    def test_keras(self):
        import keras_models
        import test_keras

        def few(c, data):
            return keras_models.named(c, type("Data", (), {**vars(data), "y": type("Label", (), {"values": 2})})())

        self.assertIn("y has numbers up to 2.", self.refusal(few, test_keras.COLUMNS, {"width": 4}).message)


class InRange(unittest.TestCase):
    def test_numbers_that_the_data_may_lack_are_no_reason(self):
        for task in (Texts, LabelsFromOne):
            export(task, {}, NAMED, None, HERE)
        export(TokensFromOne, {}, models.flat(4, 3), None, HERE)

    def test_other_errors_are_no_reason(self):
        export(Factored, {}, models.flat(4, 3), None, HERE)

    def test_costly_tasks_are_not_tried(self):
        with mock.patch("sojourn.index_check.MOST_NUMBERS", 1):
            export(FewTokens, {}, NAMED, None, HERE)

    def test_nothing_changes(self):
        first = export(Shares, {}, models.flat(4, 3), None, HERE, "given").data
        self.assertEqual((SHARED.running_var.tolist(), SHARED.num_batches_tracked.item()), ([1.0] * 4, 0))
        state = torch.get_rng_state()
        self.assertEqual(export(Shares, {}, models.flat(4, 3), None, HERE, "given").data, first)
        self.assertTrue(torch.equal(torch.get_rng_state(), state))


if __name__ == "__main__":
    unittest.main()
