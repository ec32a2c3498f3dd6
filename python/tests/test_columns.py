"""Tasks over columns by name: what they see, what their graphs have, and that both compute the same."""

import re
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

import torch

import column_models
import models
from sojourn import run_graph
from sojourn.canonical import encode
from sojourn.check import Eager
from sojourn.export import export
from sojourn.refusal import Refusal
from sojourn.rows import batches, made_up, of_shard, shard
from sojourn.torch import Task
from sojourn.tracing import of_trial
from test_program import run

HERE = Path(__file__).parent
SEED = 7
ROWS = 59
BATCH = 8
PAGE = HERE.parent.parent / "docs/models/operators.md"
OPERATORS = {
    f"aten.{name}" if "." in name else f"aten.{name}.default" for name in re.findall(r"`([\w.]+)`", PAGE.read_text())
}


class Small(column_models.Captioner):
    """A captioner of which tests change a method."""

    def setup(self, c, data):
        super().setup(SimpleNamespace(width=4), data)


def json_of(entry, data, config=None):
    """The JSON of a task's graph."""
    return run_graph.Graph(export(entry, config or {}, data, None, HERE).data).json


class Columns(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def check(self, entry, config, data):
        """Trains, evaluates and predicts both ways; gives the graph's JSON."""
        exported = export(entry, config, data, OPERATORS, HERE)
        self.assertEqual(export(entry, config, data, OPERATORS, HERE).data, exported.data)
        graph = run_graph.Graph(exported.data)
        graph.begin(SEED)
        eager = Eager(entry, config, data, HERE)
        eager.load(graph.tensors)
        columns = made_up(of_trial(data, config), ROWS, SEED)
        parts = list(batches(columns, BATCH))
        losses, _ = run_graph.train(eager.stages(), parts, SEED)
        eager.task.train()
        # A graph needs no more columns than it names.
        narrow = [{name: part[name] for name in graph.json["columns"]} for part in parts]
        again, _ = run_graph.train(graph.stages(), narrow, SEED)
        self.assertEqual(again, losses)
        for name, tensor in graph.tensors.items():
            self.assertTrue(torch.equal(tensor, eager.tensors[name]), name)
        eager.task.eval()
        with torch.no_grad():
            sums, expected = graph.evaluate(columns), eager.computed("evaluate")(columns)
            self.assertEqual({name: float(value) for name, value in sums.items()}, {k: float(v) for k, v in expected.items()})
            if "predict" in graph.json:
                self.assertTrue(torch.equal(graph.predict(columns), eager.computed("predict")(columns)))
        return graph.json

    def test_a_captioner(self):
        json = self.check(*column_models.FIXTURES["columns_captioner"])
        named = {"caption": ["I64", [6]], "caption_length": ["I64", []], "image": ["U8", [3, 8, 8]]}
        self.assertEqual(json["columns"], named)
        self.assertEqual(list(json["columns"]), sorted(named))
        self.assertNotIn("caption", str(json["predict"]))

    def test_a_language_model_over_windows(self):
        json = self.check(*column_models.FIXTURES["columns_lm"])
        self.assertEqual(json["columns"], {"tokens": ["U8", [17]]})
        self.assertNotIn("predict", json)

    def test_a_trial_with_a_smaller_window(self):
        json = self.check(*column_models.FIXTURES["columns_lm_halves"])
        self.assertEqual(json["columns"], {"tokens": ["U8", [9]]})

    def test_a_table_with_columns_of_many_types(self):
        json = self.check(column_models.Tabular, {"width": 8}, column_models.TABLE)
        self.assertEqual({name: dtype for name, (dtype, _) in json["columns"].items()}, {
            "city": "I16", "garden": "BOOL", "numbers": "F64", "price": "F64", "rating": "F16",
        })

    def test_conditions_that_are_joined(self):
        class Joined(column_models.Tabular):
            def loss(self, batch):
                there = (batch.price > 0.1) & (batch.garden | (batch.rating > 0.5))
                return super().loss(batch) * there.float().mean()

        self.check(Joined, {"width": 8}, column_models.TABLE)

    def test_setup_sees_shape_type_and_values(self):
        seen = {}

        class Sees(Small):
            def setup(self, c, data):
                super().setup(c, data)
                seen.update(rows=data.rows, image=data.image, length=data.caption_length, caption=data.caption)

        export(Sees, {}, column_models.captions(), None, HERE)
        self.assertEqual((seen["rows"], seen["image"].shape, seen["image"].dtype), (1000, (3, 8, 8), torch.uint8))
        self.assertEqual((seen["caption"].shape, seen["caption"].values), ((6,), 30))
        self.assertEqual((seen["length"].shape, seen["length"].values), ((), None))

    def test_the_order_of_the_description_does_not_count(self):
        data = column_models.captions()
        turned = {**data, "columns": dict(reversed(data["columns"].items()))}
        self.assertEqual(export(Small, {}, data).data, export(Small, {}, turned).data)

    def test_names_of_methods_may_be_columns(self):
        class Named(Small):
            def loss(self, batch):
                return super().loss(batch) + batch.items.mean() + batch.keys.mean()

        data = column_models.captions()
        data["columns"] |= {name: {"dtype": "F32", "shape": []} for name in ("items", "keys", "values", "get")}
        self.assertEqual(len(json_of(Named, data)["columns"]), 5)

    def test_the_number_of_rows_asks_for_no_other_column(self):
        class Rows(Small):
            def loss(self, batch):
                return self.cnn(batch.image.float()).sum() / batch.rows

            evaluate = Task.evaluate

        json = json_of(Rows, column_models.captions())
        self.assertEqual(json["columns"], {"image": ["U8", [3, 8, 8]]})

        class RowsAlone(Small):
            def loss(self, batch):
                return self.cnn(torch.zeros(batch.rows, 3, 8, 8)).mean()

            def evaluate(self, batch):
                return {"loss": self.loss(batch) * batch.rows}

        json = json_of(RowsAlone, column_models.captions())
        self.assertEqual(json["columns"], {"image": ["U8", [3, 8, 8]]})

    def test_a_graph_without_columns_has_one_all_the_same(self):
        class Nothing(Small):
            def loss(self, batch):
                return self.head.weight.square().mean()

            def evaluate(self, batch):
                return {"loss": self.loss(batch)}

            def predict(self, batch):
                return self.head.weight.mean() + torch.zeros(batch.rows)

        self.assertEqual(len(json_of(Nothing, column_models.captions())["columns"]), 1)


class Refused(unittest.TestCase):
    def refusal(self, entry, data, config=None):
        with self.assertRaises(Refusal) as caught:
            export(entry, config or {}, data, None, HERE)
        return caught.exception

    def test_names_that_are_not_there(self):
        class Mistyped(Small):
            def loss(self, batch):
                return self.cnn(batch.imgae.float()).mean()

        refusal = self.refusal(Mistyped, column_models.captions())
        self.assertIn("batch has no 'imgae'; it has caption, caption_length, image, label, rows", refusal.message)
        self.assertEqual(Path(refusal.file).name, "test_columns.py")

        class Labelled(Small):
            def setup(self, c, data):
                self.net = torch.nn.Linear(3, data.classes)

        refusal = self.refusal(Labelled, column_models.captions())
        self.assertIn("data has no 'classes'; it has caption, caption_length, image, label, rows", refusal.message)
        refusal = self.refusal(Small, models.flat(4, 3))
        self.assertIn("data has no 'image'; it has classes, rows, x, y", refusal.message)

    def test_a_word_that_was_written_without_classes(self):
        class Words(Small):
            def loss(self, batch):
                return torch.nn.functional.cross_entropy(self.cnn(batch.image.float()), batch.label.long())

        data = column_models.captions()
        data["columns"] |= {"label": {"dtype": "U8", "shape": [4], "values": 116, "length": "label_length"}}
        data["columns"] |= {"label_length": {"dtype": "I64", "shape": []}}
        refusal = self.refusal(Words, data)
        self.assertEqual(refusal.message, "The target of the loss isn't one class a row.")
        self.assertIn("classes=", refusal.hint)

    def test_a_certain_number_of_rows_and_a_changed_batch(self):
        class Length(Small):
            def loss(self, batch):
                return self.cnn(batch.image.float()).sum() / len(batch.label)

        self.assertIn("len() of a batch", self.refusal(Length, column_models.captions()).message)

        class Changes(Small):
            def loss(self, batch):
                batch.caption.clamp_(0, 3)
                return super().loss(batch)

        self.assertIn("changes the batch itself", self.refusal(Changes, column_models.captions()).message)


class Rows(unittest.TestCase):
    def test_made_up_rows_are_valid_and_the_same_again(self):
        data = column_models.captions()
        columns = made_up(data, 200, SEED)
        self.assertEqual(list(columns), sorted(data["columns"]))
        lengths, there = columns["caption_length"], torch.arange(6) < columns["caption_length"][:, None]
        self.assertEqual((int(lengths.min()), int(lengths.max())), (1, 6))
        self.assertTrue(bool((columns["caption"][~there] == 0).all()))
        self.assertEqual((int(columns["caption"].max()), int(columns["image"].max()), int(columns["label"].max())), (29, 255, 4))
        table = made_up(column_models.TABLE, 200, SEED)
        self.assertEqual((table["garden"].dtype, table["rating"].dtype), (torch.bool, torch.float16))
        self.assertTrue(bool(((table["numbers"] >= 0) & (table["numbers"] < 1)).all()))
        self.assertTrue(torch.equal(made_up(column_models.TABLE, 200, SEED)["numbers"], table["numbers"]))
        # The first column by name is drawn first.
        self.assertEqual(table["city"][:4].tolist(), [19, 17, 18, 8])

    def test_shards_have_ends_and_become_the_same_rows(self):
        data = column_models.captions()
        columns = made_up(data, 20, SEED)
        tensors = shard(data, columns)
        self.assertEqual(sorted(tensors), ["caption", "caption.ends", "image", "label"])
        self.assertEqual(len(tensors["caption"]), int(columns["caption_length"].sum()))
        again = of_shard(data, tensors)
        for name, column in columns.items():
            self.assertTrue(torch.equal(again[name], column), name)

    def test_smaller_windows_cut_each_row_into_several_that_overlap(self):
        tokens = torch.arange(18).reshape(2, 9).to(torch.uint8)
        cut = of_shard(of_trial(column_models.windows(8), {"window": 4}), {"tokens": tokens})["tokens"]
        self.assertEqual(cut.tolist(), [[0, 1, 2, 3, 4], [4, 5, 6, 7, 8], [9, 10, 11, 12, 13], [13, 14, 15, 16, 17]])


class Programs(unittest.TestCase):
    """The exporter and the check as the command line runs them."""

    def request(self, name, configs=None, **more):
        entry, config, data = column_models.FIXTURES[name]
        named = f"column_models.py:{entry.__name__}"
        return {"folder": str(HERE), "entry": named, "data": data, "configs": configs or [config], **more}

    def test_each_window_is_a_graph_of_its_own(self):
        with tempfile.TemporaryDirectory() as output:
            configs = [{"width": 8, "window": window, "lr": lr} for window in (8, 16) for lr in (0.1, 0.2)]
            status, lines, errors = run(self.request("columns_lm", configs, output=output))
            self.assertEqual(status, 0, errors)
            digests = [line["exported"]["sha256"] for line in lines[1:-1]]
            self.assertEqual([digests[0], digests[2]], [digests[1], digests[3]])
            self.assertNotEqual(digests[0], digests[2])

    def test_tasks_train_alike_in_two_processes(self):
        for name in column_models.FIXTURES:
            with self.subTest(name):
                _, lines, errors = run(self.request(name), "sojourn.check")
                self.assertTrue(lines and lines[0].get("repeatable"), (lines, errors))

    def test_the_check_takes_a_shard(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.safetensors"
            data = column_models.captions()
            file.write_bytes(encode(shard(data, made_up(data, ROWS, SEED))))
            _, lines, errors = run(self.request("columns_captioner", rows=str(file)), "sojourn.check")
        self.assertTrue(lines and lines[0].get("repeatable"), (lines, errors))


if __name__ == "__main__":
    unittest.main()
