"""Data of a search: what each form is written as, and that equal data is written once."""

import importlib.util
import tempfile
import unittest
from pathlib import Path

import numpy as np

import sojourn

X = np.arange(24, dtype="float32").reshape(8, 3)
Y = np.array([0, 1] * 4)
ROWS = [{"image": row, "label": int(label)} for row, label in zip(X, Y)]


def needs(package):
    return unittest.skipUnless(importlib.util.find_spec(package), f"needs {package}")


class PairsOnly:
    """A data set as PyTorch's: items by number, and no end of iteration of its own."""

    def __len__(self):
        return len(X)

    def __getitem__(self, index):
        return X[index], Y[index]


class Features(dict):
    pass


class HuggingFace(list):
    """A data set as `datasets.Dataset`, as far as it is looked at."""

    column_names = ["image", "label"]

    class ClassLabel:
        num_classes = 5

    @property
    def features(self):
        return {"image": object(), "label": self.ClassLabel()}


class Forms(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def table(self, data, **keys):
        return sojourn.Data(data, **keys).table(self.folder)

    def files(self):
        return {file: file.stat().st_mtime_ns for file in self.folder.rglob("*") if file.is_file()}

    def test_arrays_are_written_once(self):
        table = self.table((X, Y), valid=(X[:4], Y[:4]), test=0.1)
        with np.load(table["train"]) as arrays:
            np.testing.assert_array_equal(arrays["x"], X)
            np.testing.assert_array_equal(arrays["y"], Y)
        with np.load(table["valid"]) as arrays:
            self.assertEqual(arrays["x"].shape, (4, 3))
        before = self.files()
        self.assertEqual(self.table((X.copy(), Y.tolist()), valid=(X[:4], Y[:4]), test=0.1), table)
        self.assertEqual(self.files(), before)
        self.assertNotEqual(self.table((X + 1, Y))["train"], table["train"])
        self.assertNotEqual(self.table((X.reshape(8, 1, 3), Y))["train"], table["train"])

    def test_words_are_labels_and_mixtures_are_refused(self):
        words = np.array(["a", "b"] * 4, dtype=object)
        with np.load(self.table((X, words))["train"]) as arrays:
            self.assertEqual(arrays["y"].tolist(), words.tolist())
        with self.assertRaisesRegex(TypeError, "words and numbers"):
            self.table((X, np.array(["a", 1] * 4, dtype=object)))
        with self.assertRaisesRegex(TypeError, "and not a int"):
            self.table(3)
        with self.assertRaisesRegex(TypeError, "the first is a int"):
            self.table([1, 2])

    def test_paths_and_urls_are_named(self):
        self.assertEqual(self.table("rows.csv")["train"], str(Path("rows.csv").absolute()))
        self.assertEqual(self.table("s3://bucket/rows.parquet")["train"], "s3://bucket/rows.parquet")
        split = {"data": "https://example.org/a.npz", "features": "x_test", "label": "y_test"}
        self.assertEqual(self.table("a.npz", test=split, separator=";")["test"], split)
        self.assertEqual(self.files(), {})

    def test_rows_and_columns_by_name_are_parts(self):
        by_rows = self.table(iter(ROWS))["train"]
        self.assertEqual([part.name for part in Path(by_rows).iterdir()], ["part-00000.safetensors"])
        before = self.files()
        columns = {"image": X, "label": [int(label) for label in Y]}
        self.assertEqual(self.table(columns)["train"], by_rows)
        self.assertEqual(self.files(), before)
        with self.assertRaisesRegex(ValueError, "different numbers of rows"):
            self.table({"image": X, "label": Y[:3]})
        words = self.table({"image": X, "label": ["ham", "spam"] * 4}, classes={"label": ["ham", "spam"]})["train"]
        self.assertIn(b"spam", next(Path(words).iterdir()).read_bytes())

    def test_data_sets_of_pairs_are_arrays(self):
        self.assertEqual(self.table(PairsOnly())["train"], self.table((X, Y))["train"])

    def test_classes_of_hugging_face_are_counted(self):
        (part,) = Path(self.table(HuggingFace(ROWS))["train"]).iterdir()
        self.assertIn(rb"{\"label\":5}", part.read_bytes())

    @needs("pandas")
    def test_frames_of_pandas_are_tables_without_their_index(self):
        import pandas

        frame = pandas.DataFrame({"a": [1.5, 2.5], "species": ["x", "y"]}, index=[7, 9])
        table = self.table(frame, label="species")
        self.assertEqual(table["label"], "species")
        self.assertEqual(self.table(frame[["a"]], label=None).keys(), {"train"})
        pair = self.table((frame[["a"]], frame["species"]))
        self.assertEqual(pair, table, "a frame and a series are one table")
        read = pandas.read_parquet(table["train"]) if table["train"].endswith("parquet") else pandas.read_csv(table["train"])
        self.assertEqual(read.to_dict("list"), {"a": [1.5, 2.5], "species": ["x", "y"]})

    @needs("polars")
    def test_frames_of_polars_are_parquet(self):
        import polars

        frame = polars.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"]})
        path = self.table(frame, label="b")["train"]
        self.assertEqual(self.table((frame.select("a"), frame["b"]))["train"], path)
        self.assertEqual(polars.read_parquet(path).to_dict(as_series=False), frame.to_dict(as_series=False))

    @needs("torch")
    def test_tensors_and_data_sets_of_pytorch_are_arrays(self):
        import torch
        from torch.utils.data import TensorDataset

        tensors = torch.tensor(X, requires_grad=True), torch.tensor(Y)
        self.assertEqual(self.table(tensors)["train"], self.table((X, Y))["train"])
        self.assertEqual(self.table(TensorDataset(*tensors))["train"], self.table((X, Y))["train"])


if __name__ == "__main__":
    unittest.main()
