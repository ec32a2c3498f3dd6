"""Tasks that adapters make: which code travels for them; modules of Lightning and models of transformers as graphs."""

import importlib.util
import tempfile
import unittest
from pathlib import Path

from sojourn.search import code
from sojourn.wrapped import Saved, Wrapped
from support import PACKAGE, Site

ROWS = {"x": {"dtype": "F32", "shape": [4]}, "y": {"dtype": "I64", "shape": []}, "classes": 3, "rows": 100}
TOKENS = {
    "columns": {
        "input_ids": {"dtype": "I64", "shape": [9], "values": 20},
        "input_ids_length": {"dtype": "I64", "shape": []},
        "label": {"dtype": "I64", "shape": [], "values": 2},
    },
    "rows": 100,
}
SCRIPT = """
from pathlib import Path
from sojourn.search import code
from sojourn.wrapped import Wrapped

SIZE = 3

class Net:
    size = SIZE

class Made:
    wrapped = Wrapped("maker", "task", [Net, 2])

print(code.entry_of(Made, Path("models")), code.file_of(Made))
"""


def has(name):
    return importlib.util.find_spec(name) is not None


class Travel(Site):
    def test_the_code_of_a_wrapped_task_is_the_user_s_and_a_call(self):
        (self.folder / "maker.py").write_text("def task(net, count):\n    return net, count\n")
        entry, file = self.ran(SCRIPT).split()[-2:]
        path, _, name = entry.rpartition(":")
        self.assertEqual(file, str(self.folder / "script.py"))
        lines = "import sys\nsys.path.append('.')\n" + (self.folder / path).read_text()
        self.assertEqual(self.ran(f"{lines}\nprint({name}[0].size, {name}[1])").split()[-2:], ["3", "2"])

    def test_a_task_without_code_of_the_user_s_is_a_call_alone(self):
        class Weights(Saved):
            def path(self, folder):
                return f"{folder}/weights"

        class Made:
            wrapped = Wrapped("maker", "task", [Weights(), None])

        with tempfile.TemporaryDirectory() as folder:
            file, _, name = code.entry_of(Made, Path(folder)).rpartition(":")
            text = Path(file).read_text()
        self.assertEqual(text.split("\n\n")[-1], f"{name} = maker.task('{folder}/models/weights', None)\n")


@unittest.skipUnless(has("torch") and has("lightning"), "needs Lightning")
class Lightning(unittest.TestCase):
    def setUp(self):
        import lightning
        import torch

        class Net(lightning.LightningModule):
            def __init__(self, width=4):
                super().__init__()
                self.net = torch.nn.Linear(4, 3)
                self.width = width

            def forward(self, x):
                return self.net(x)

            def training_step(self, batch, batch_idx):
                return {"loss": torch.nn.functional.cross_entropy(self(batch[0]), batch[1])}

        self.net = Net

    def graph(self, module, config=None):
        from sojourn import lightning
        from sojourn.export import export

        return export(lightning.task(module), config or {}, ROWS, folder=PACKAGE / "tests")

    def refusal(self, module, config=None):
        from sojourn.refusal import Refusal

        with self.assertRaises(Refusal) as caught:
            self.graph(module, config)
        return str(caught.exception)

    def test_a_module_without_validation_has_the_loss_alone(self):
        class Short(self.net):
            def training_step(self, batch):
                return super().training_step(batch, 0)["loss"]

        for module in (self.net, Short):
            self.assertEqual(self.graph(module, {"width": 8, "other": 1}).summary["parameters"], 15)

    def test_what_a_graph_would_lose_in_silence_is_refused(self):
        class Manual(self.net):
            automatic_optimization = False

        class Hooked(self.net):
            def on_before_optimizer_step(self, optimizer):
                pass

        class Logs(self.net):
            def validation_step(self, batch, batch_idx):
                self.log("val_acc", object())

        class Silent(self.net):
            def validation_step(self, batch, batch_idx):
                pass

        class Needs(self.net):
            def __init__(self, depth):
                super().__init__()

        self.assertIn("optimises by hand", self.refusal(Manual))
        self.assertIn("has a on_before_optimizer_step", self.refusal(Hooked))
        self.assertIn("logs val_acc as object", self.refusal(Logs))
        self.assertIn("gives no loss", self.refusal(Silent))
        self.assertIn("c has no 'depth'; it has width", self.refusal(Needs, {"width": 3}))
        with self.assertRaisesRegex(TypeError, "a class derived from LightningModule"):
            self.graph(int)


@unittest.skipUnless(has("torch") and has("transformers"), "needs transformers")
class Transformers(unittest.TestCase):
    def configs(self):
        import transformers

        short = {"vocab_size": 20, "pad_token_id": 0}
        yield transformers.BertConfig(
            **short, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, max_position_embeddings=9
        )
        yield transformers.DistilBertConfig(**short, dim=8, n_layers=1, n_heads=2, hidden_dim=8, max_position_embeddings=9)
        yield transformers.GPT2Config(**short, n_embd=8, n_layer=1, n_head=2, n_positions=9)

    def test_configurations_and_models_are_graphs(self):
        import transformers

        import sojourn
        from sojourn.export import export

        for config in self.configs():
            with self.subTest(config.model_type):
                exported = export(sojourn.transformers.task(config, ["no", "yes"]), {}, TOKENS)
                self.assertGreater(exported.summary["parameters"], 100)
        model = transformers.AutoModelForSequenceClassification.from_config(config, attn_implementation="eager")
        with tempfile.TemporaryDirectory() as folder:
            file, _, _ = code.entry_of(sojourn.transformers.task(model, 2), Path(folder)).rpartition(":")
            saved = Path(file).read_text().split("task('")[1].split("'")[0]
            from_folder = export(sojourn.transformers.task(saved, 2), {}, TOKENS)
        self.assertEqual(from_folder.data, export(sojourn.transformers.task(model, 2), {}, TOKENS).data)

    def test_what_does_not_fit_is_refused(self):
        import sojourn
        from sojourn.export import export
        from sojourn.refusal import Refusal

        config = next(self.configs())
        for given, data, said in (
            ({"depth": 3}, TOKENS, "BertConfig has no depth"),
            ({}, ROWS, "finds no columns of its own"),
        ):
            with self.assertRaises(Refusal) as caught:
                export(sojourn.transformers.task(config, 2), given, data)
            self.assertIn(said, str(caught.exception))
        with self.assertRaisesRegex(TypeError, "and not a int"):
            sojourn.transformers.task(3, 2)


if __name__ == "__main__":
    unittest.main()
