"""Keras models, with the backend of PyTorch, train to the same bytes as graphs. Skipped where Keras isn't installed."""

import importlib.util
import unittest

import torch

import models
from sojourn import run_graph
from sojourn.check import Eager
from sojourn.export import export
from sojourn.refusal import Refusal
from sojourn.rows import batches, made_up
from test_fixtures import BATCH, HERE, HOP_SEED, ROWS

NUMBERS = {"x": {"dtype": "F32", "shape": [5]}, "y": {"dtype": "F32", "shape": []}, "classes": None}

COLUMNS = {
    "columns": {
        "image": {"dtype": "U8", "shape": [3, 4, 4]},
        "city": {"dtype": "I16", "shape": [], "values": 20},
        "y": {"dtype": "I64", "shape": [], "values": 3},
    },
    "rows": 100,
}


@unittest.skipUnless(importlib.util.find_spec("keras"), "Keras isn't installed")
class Keras(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def check(self, name, config, data, tokens=None):
        """Trains a model both ways; gives the graph's JSON."""
        import keras_models

        entry = getattr(keras_models, name)
        graph = run_graph.Graph(export(entry, config, data, None, HERE).data)
        graph.begin(HOP_SEED)
        eager = Eager(entry, config, data, HERE)
        eager.load(graph.tensors)
        columns = made_up(data, ROWS, HOP_SEED, tokens)
        losses, _ = run_graph.train(eager.stages(), batches(columns, BATCH), HOP_SEED)
        again, _ = run_graph.train(graph.stages(), batches(columns, BATCH), HOP_SEED)
        self.assertEqual(again, losses)
        for tensor in graph.tensors:
            self.assertTrue(torch.equal(graph.tensors[tensor], eager.tensors[tensor]), tensor)
        self.check_evaluation(graph, eager, columns)
        return graph.json

    @torch.no_grad()
    def check_evaluation(self, graph, eager, columns):
        expected = eager.computed("evaluate")(columns)
        self.assertEqual(graph.evaluate(columns), expected)
        net, rows = eager.task.net, len(columns["y"])
        inputs = {name: column.numpy() for name, column in columns.items() if name != "y"}
        x = inputs["x"] if list(inputs) == ["x"] else inputs
        by_keras = net.evaluate(x, columns["y"].numpy(), batch_size=rows, verbose=0, return_dict=True)
        for name, mean in by_keras.items():
            self.assertAlmostEqual(float(expected[name]) / rows, mean, places=5, msg=name)
        unlabelled = {name: column for name, column in columns.items() if name != "y"}
        self.assertTrue(torch.equal(graph.predict(unlabelled), eager.computed("predict")(unlabelled)))

    def test_a_cnn_is_the_same_as_a_graph(self):
        json = self.check("cnn", {"width": 4, "dropout": 0.25}, models.image(3, 8))
        tensors = {tensor["name"]: tensor for tensor in json["tensors"] if tensor["role"] != "constant"}
        self.assertEqual(len(tensors), 8)
        self.assertEqual(tensors["sequential/batch_normalization/moving_mean"]["role"], "buffer")
        self.assertEqual(list(tensors["sequential/dense/kernel"]["start"]), ["uniform"])
        self.assertTrue(any(node.get("no_grad") for node in json["train"][0]["nodes"]))

    def test_a_text_model_is_the_same_as_a_graph(self):
        self.check("text", {"vocabulary": 30, "width": 8, "dropout": 0.2}, models.flat(6, 3), (0, 30))

    def test_a_regression_is_the_same_as_a_graph(self):
        self.check("regression", {"width": 4}, NUMBERS)

    def test_a_model_with_inputs_by_name_is_the_same_as_a_graph(self):
        json = self.check("named", {"width": 4}, COLUMNS)
        self.assertEqual(list(json["columns"]), ["city", "image", "y"])

    def test_columns_that_no_input_can_have_are_refused(self):
        import keras_models

        without_label = {"columns": {"image": COLUMNS["columns"]["image"]}, "rows": 100}
        for data, words in [(without_label, "no column y"), (COLUMNS, "of no name. Name each as a column")]:
            with self.assertRaisesRegex(Refusal, words):
                export(keras_models.regression, {"width": 4}, data, None, HERE)

    def test_names_do_not_count_on(self):
        import keras_models

        first, second = (export(keras_models.cnn, {"width": 4, "dropout": 0.1}, models.image(3, 8)).data for _ in range(2))
        self.assertEqual(first, second)

    def test_a_layer_with_a_seed_is_refused(self):
        import keras_models

        with self.assertRaises(Refusal) as caught:
            export(keras_models.seeded, {}, models.flat(4, 3), None, HERE)
        self.assertIn("seed of its own", caught.exception.message)


if __name__ == "__main__":
    unittest.main()
