"""A search as a job file: where settings go, what the file says, and the lines of Python in problems."""

import re
import tempfile
import unittest
from pathlib import Path

import sojourn
from sojourn.search import toml

ROOT = Path(__file__).resolve().parents[3]
DIGITS = ROOT / "examples/digits/digits.csv"


def read(search):
    """The tables of a search's job file."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(search.to_toml())
        file.flush()
        return toml.read(Path(file.name))


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def search(self, model=None, data=DIGITS, **arguments):
        return sojourn.Search(model or sojourn.mlp(hidden=[64]), data, folder=self.folder, **{"epochs": 3, **arguments})


class JobFiles(InFolder):
    def test_settings_of_a_space_go_to_their_tables(self):
        space = {
            "lr": sojourn.log_uniform(1e-4, 1e-2, points=3),
            "momentum": sojourn.choice(0.0, 0.9, when={"optimizer": "sgd"}),
            "optimizer": sojourn.choice("sgd", "adam"),
            "batch_size": sojourn.int_uniform(16, 64, step=16),
            "schedule.warmup": sojourn.formula("batch_size / 64"),
            "dropout": sojourn.normal(0.2, 0.1, truncate=(0, 0.5)),
            "model.batch_norm": True,
            "seed": sojourn.choice(1, 2),
        }
        tables = read(self.search([sojourn.mlp(hidden=[8]), sojourn.cnn(channels=[4])], space=space, schedule="cosine"))
        self.assertEqual(tables["seed"], {"choice": [1, 2]})
        self.assertEqual([model["dropout"] for model in tables["model"]], [{"normal": [0.2, 0.1], "truncate": [0, 0.5]}] * 2)
        self.assertEqual([model["batch_norm"] for model in tables["model"]], [True, True])
        optimizer = {
            "name": {"choice": ["sgd", "adam"]},
            "lr": {"log_uniform": [1e-4, 1e-2], "points": 3},
            "momentum": {"choice": [0.0, 0.9], "when": {"optimizer": "sgd"}},
        }
        self.assertEqual(tables["training"]["optimizer"], optimizer)
        self.assertEqual(tables["training"]["batch_size"], {"int": [16, 64], "step": 16})
        self.assertEqual(tables["training"]["schedule"], {"name": "cosine", "warmup": {"formula": "batch_size / 64"}})

    def test_every_key_of_the_job_file_can_be_said(self):
        """The keys of the reference's tables, each given by a table or an argument, come out where the reference has them."""
        page = (ROOT / "docs/job-file.md").read_text(encoding="utf-8")
        for table in ("data", "training", "search", "placement"):
            section = page.split(f"\n## `[{table}]`\n")[1].split("\n## ")[0]
            rows = section.split("|---|---|---|\n")[1].split("\n\n")[0]
            keys = set(re.findall(r"^\| `(\w+)`", rows, re.MULTILINE)) - {"train", "epochs"}
            self.assertGreater(len(keys), 9, table)
            given = dict.fromkeys(keys, "given")
            search = self.search(data=sojourn.Data(DIGITS, **given)) if table == "data" else self.search(**{table: given})
            self.assertLessEqual(keys, read(search)[table].keys())

    def test_a_job_file_comes_back_as_it_went(self):
        for file in (ROOT / "examples").glob("**/job.toml"):
            tables = toml.read(file)
            if "model" not in tables:
                continue
            again = read(sojourn.Search.from_toml(file, folder=self.folder))
            self.assertEqual(again["training"], tables["training"], file)
            self.assertEqual(again.get("search"), tables.get("search"), file)
            for model in again["model"]:
                if "entry" in model:
                    self.assertTrue(Path(model["entry"].partition(":")[0]).is_file(), model)

    def test_a_table_and_a_word_for_it_are_joined(self):
        tables = read(self.search(space={"lr": 0.1}, optimizer="sgd"))
        self.assertEqual(tables["training"]["optimizer"], {"name": "sgd", "lr": 0.1})
        tables = read(self.search(space={"lr": 0.1}, optimizer={"name": "adamw", "weight_decay": 0.1}))
        self.assertEqual(tables["training"]["optimizer"], {"name": "adamw", "weight_decay": 0.1, "lr": 0.1})
        self.assertEqual(read(self.search(space={"lr": 0.1}))["training"]["optimizer"], {"name": "adam", "lr": 0.1})

    def test_text_numbers_and_names_are_written_as_toml_has_them(self):
        import numpy as np

        tables = {
            "text": 'a "quoted"\\ line\nand \x7f ü \U0001f600',
            "odd key": {"a.b": 1, "inner": {"ü": [True, 1e-30, 1e22, -5]}},
            "number": np.float32(0.5),
            "list": [{"one": 1}, {"two": [[1, 2], [3]]}],
        }
        with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
            file.write(toml.write(tables))
            file.flush()
            self.assertEqual(toml.read(Path(file.name)), {**tables, "number": 0.5})
        with self.assertRaisesRegex(TypeError, "`data.label` is a set"):
            toml.write({"data": {"label": {1}}})

    def test_what_is_no_model_and_no_interrupt_is_refused(self):
        with self.assertRaisesRegex(TypeError, "and not a int"):
            self.search(3)
        with self.assertRaisesRegex(ValueError, "on_interrupt"):
            self.search().run(on_interrupt="explode")


class Problems(InFolder):
    def test_problems_have_the_program_s_words_and_the_line_of_python(self):
        here = Path(__file__).read_text(encoding="utf-8").splitlines()
        rates = sojourn.log_uniform(-1, 1)  # MARK rates
        search = sojourn.Search(
            sojourn.mlp(hidden=[64], dropot=0.5),  # MARK model
            DIGITS,
            label="label",
            epochs=0,  # MARK epochs
            space={
                "lr": rates,
                "bath_size": 3,  # MARK space
            },
            method="tpee",  # MARK method
            placement={"shares": 2},  # MARK placement
            folder=self.folder,
        )
        with self.assertRaises(sojourn.InvalidSearch) as caught:
            search.validate()
        found = {problem.key: problem for problem in caught.exception.problems}
        lines = {word: here.index(line) + 1 for line in here for word in re.findall(r"# MARK (\w+)$", line)}
        wanted = {
            "model[0].dropot": ("model", "did you mean `dropout`?"),
            "model[0].bath_size": ("space", "is no known key"),
            "training.epochs": ("epochs", "a whole number from 1"),
            "training.optimizer.lr.log_uniform[0]": ("rates", "must be above 0"),
            "search.method": ("method", "did you mean `tpe`?"),
            "placement.shares": ("placement", "did you mean `share`?"),
        }
        self.assertEqual(found.keys(), wanted.keys())
        for key, (word, text) in wanted.items():
            self.assertEqual((found[key].file, found[key].line), (__file__, lines[word]), key)
            self.assertIn(text, found[key].message)
            self.assertIn(f"{__file__}:{lines[word]}: {found[key].message}", str(caught.exception))

    def test_problems_of_the_data_have_the_line_of_the_search(self):
        search = self.search(label="lab")
        with self.assertRaisesRegex(sojourn.InvalidSearch, r"test_search.py:\d+: .*no column `lab`.*did you mean `label`"):
            search.validate()

    def test_a_good_search_says_what_would_run(self):
        report = self.search(label="label", space={"lr": sojourn.choice(0.1, 0.01)}).validate()
        self.assertEqual((report["trials"], report["epochs"], report["classes"]), (2, 3, 10))


if __name__ == "__main__":
    unittest.main()
