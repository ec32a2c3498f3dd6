"""Rows become parts: what is written, found out about lengths, refused and left."""

import hashlib
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.numpy import load_file

from sojourn import data


class Parts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name) / "rows"

    def write(self, rows, **options):
        return data.write(iter(rows), self.folder, **options)

    def parts(self):
        """The tensors of each part."""
        return [load_file(file) for file in sorted(self.folder.iterdir())]

    def only(self):
        (part,) = self.parts()
        return part

    def metadata(self, index=0):
        with safe_open(sorted(self.folder.iterdir())[index], "numpy") as file:
            return file.metadata()

    def refused(self, words, rows, **options):
        with self.assertRaisesRegex(ValueError, words):
            self.write(rows, **options)
        self.assertFalse(self.folder.exists())


class Written(Parts):
    def test_dense_columns_keep_their_types_and_shapes(self):
        images = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)
        rows = [{"image": image, "age": index, "height": 0.5 * index, "member": index > 1} for index, image in enumerate(images)]
        written = self.write(rows)
        part = self.only()
        np.testing.assert_array_equal(part["image"], images)
        found = {name: (str(array.dtype), array.tolist()) for name, array in part.items() if name != "image"}
        self.assertEqual(found["age"], ("int64", [0, 1, 2, 3]))
        self.assertEqual(found["height"], ("float32", [0.0, 0.5, 1.0, 1.5]))
        self.assertEqual(found["member"], ("bool", [False, False, True, True]))
        self.assertEqual(self.metadata(), {"sojourn.columns": "1"})
        self.assertEqual((written.rows, written.parts), (4, 1))
        self.assertEqual(written.columns["image"], {"dtype": "U8", "shape": [2, 3]})
        self.assertEqual(written.columns["age"], {"dtype": "I64", "shape": []})

    def test_types_that_parts_lack_become_wider_ones(self):
        types = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]
        row = {f"of_{name}": np.ones(2, name) for name in types}
        row |= {"of_uint16": np.full(2, 65535, np.uint16), "of_uint32": np.uint32(4294967295), "of_uint64": np.uint64(7)}
        row |= {"big_endian": np.array([1, 2], ">i4"), "strided": np.arange(6.0)[::2]}
        self.write([row])
        part = self.only()
        for name in types:
            self.assertEqual(part[f"of_{name}"].dtype.name, name)
        self.assertEqual((part["of_uint16"].dtype.name, part["of_uint16"].tolist()), ("int32", [[65535, 65535]]))
        self.assertEqual((part["of_uint32"].dtype.name, part["of_uint32"].tolist()), ("int64", [4294967295]))
        self.assertEqual((part["of_uint64"].dtype.name, part["of_uint64"].tolist()), ("int64", [7]))
        self.assertEqual(part["big_endian"].tolist(), [[1, 2]])
        self.assertEqual(part["strided"].tolist(), [[0.0, 2.0, 4.0]])

    def test_lengths_that_differ_make_a_column_ragged(self):
        rows = [{"tokens": [1, 2, 3], "places": [[0.5, 1.5]]}, {"tokens": [], "places": [[1.0, 2.0], [3.0, 4.0]]}]
        written = self.write([*rows, {"tokens": [4], "places": []}])
        part = self.only()
        self.assertEqual((part["tokens"].tolist(), part["tokens.ends"].tolist()), ([1, 2, 3, 4], [3, 3, 4]))
        self.assertEqual(part["places"].tolist(), [[0.5, 1.5], [1.0, 2.0], [3.0, 4.0]])
        self.assertEqual(part["places.ends"].tolist(), [1, 3, 3])
        self.assertEqual(written.columns["places"], {"dtype": "F32", "shape": [2], "longest": 2})

    def test_text_is_the_bytes_of_utf_8(self):
        self.write([{"text": "né", "raw": b"ab"}, {"text": "abc", "raw": bytearray(b"cd")}])
        part = self.only()
        self.assertEqual((bytes(part["text"]), part["text.ends"].tolist()), ("néabc".encode(), [3, 6]))
        self.assertEqual((bytes(part["raw"]), part["raw.ends"].tolist()), (b"abcd", [2, 4]))

    def test_columns_of_equal_lengths_are_ragged_where_the_call_says_so(self):
        self.write([{"tokens": [1, 2]}, {"tokens": [3, 4]}], ragged=["tokens"])
        self.assertEqual(self.only()["tokens.ends"].tolist(), [2, 4])

    def test_earlier_parts_are_rewritten_where_a_later_row_has_another_length(self):
        rows = [{"a": np.arange(4, dtype=np.int16) + row, "b": row} for row in range(10)]
        written = self.write([*rows, {"a": np.arange(5, dtype=np.int16), "b": 10}], part_bytes=72)
        parts = self.parts()
        self.assertEqual((written.parts, len(parts)), (4, 4))
        self.assertEqual([part["a.ends"].tolist() for part in parts], [[4, 8, 12], [4, 8, 12], [4, 8, 12], [4, 9]])
        self.assertEqual(parts[1]["a"].tolist(), [3, 4, 5, 6, 4, 5, 6, 7, 5, 6, 7, 8])
        self.assertEqual([part["b"].tolist() for part in parts], [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10]])
        told = [hashlib.sha256(file.read_bytes()).digest() for file in sorted(self.folder.iterdir())]
        self.write([*rows, {"a": np.arange(5, dtype=np.int16), "b": 10}], part_bytes=72, ragged=["a"], replace=True)
        self.assertEqual([hashlib.sha256(file.read_bytes()).digest() for file in sorted(self.folder.iterdir())], told)

    def test_tensors_of_pytorch_are_arrays(self):
        numbers = torch.arange(6, dtype=torch.int32).reshape(2, 3).requires_grad_(False)
        self.write([{"a": row, "b": row.sum().float().requires_grad_()} for row in numbers])
        part = self.only()
        self.assertEqual((part["a"].dtype.name, part["a"].tolist()), ("int32", [[0, 1, 2], [3, 4, 5]]))
        self.assertEqual((part["b"].dtype.name, part["b"].tolist()), ("float32", [3.0, 12.0]))

    def test_memory_that_is_used_again_is_copied(self):
        memory = np.zeros(2)

        def rows():
            for number in range(3):
                memory[:] = number
                yield {"a": memory}

        self.write(rows())
        self.assertEqual(self.only()["a"].tolist(), [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])

    def test_words_become_numbers_and_values_are_recorded(self):
        classes = {"label": ["ham", "spam"], "tags": ["a", "b", "c"]}
        rows = [{"label": "spam", "tags": ["c", "a"], "tokens": 3}, {"label": np.str_("ham"), "tags": [], "tokens": 4}]
        written = self.write(rows, classes=classes, values={"tokens": 50})
        part = self.only()
        self.assertEqual((part["label"].dtype.name, part["label"].tolist()), ("int64", [1, 0]))
        self.assertEqual((part["tags"].tolist(), part["tags.ends"].tolist()), ([2, 0], [2, 2]))
        self.assertEqual(json.loads(self.metadata()["values"]), {"label": 2, "tags": 3, "tokens": 50})
        self.assertEqual(self.metadata()["classes"], '{"label":["ham","spam"],"tags":["a","b","c"]}')
        self.assertEqual(written.columns["label"], {"dtype": "I64", "shape": [], "values": 2, "classes": ["ham", "spam"]})
        self.assertNotIn("classes", written.columns["tokens"])

    def test_classes_are_kept_as_words_in_every_part(self):
        classes = {"stars": [5, np.int64(1), "né"], "good": [False, True]}
        rows = [{"stars": 5, "good": False, "text": "abc"}, {"stars": "né", "good": True, "text": "ab"}]
        self.write(rows, classes=classes, part_bytes=1)
        for index in range(2):
            self.assertEqual(self.metadata(index)["classes"], '{"good":["False","True"],"stars":["5","1","n\\u00e9"]}')
        self.write([{"a": 1}], replace=True, values={"a": 2})
        self.assertNotIn("classes", self.metadata())

    def test_equal_rows_give_equal_bytes_in_any_order_of_names(self):
        digests = []
        for names in ("ab", "ba"):
            self.write([{name: row for name in names} for row in range(9000)], replace=True, values={"b": 9000, "a": 9000})
            digests.append(hashlib.sha256((self.folder / "part-00000.safetensors").read_bytes()).hexdigest())
        self.assertEqual(*digests)
        self.assertEqual(self.only()["a"].tolist(), list(range(9000)))

    def test_numbers_are_aligned(self):
        self.write([{"a": True, "b": "abc", "c": 1.5}])
        header = (self.folder / "part-00000.safetensors").read_bytes()
        entries = json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")])
        begins = {name: entry["data_offsets"][0] for name, entry in entries.items() if name != "__metadata__"}
        self.assertEqual(begins, {"b.ends": 0, "c": 8, "a": 12, "b": 13})

    def test_without_torch(self):
        program = "import sys, sojourn.data; sys.exit('torch' in sys.modules)"
        subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parent.parent)


class Folder(Parts):
    def test_parts_that_are_there_are_kept_or_replaced(self):
        self.write([{"a": number} for number in range(4)], part_bytes=8)
        (self.folder / "notes.txt").write_text("kept")
        with self.assertRaisesRegex(FileExistsError, "replace=True"):
            self.write([{"a": 1}])
        self.assertEqual(len(list(self.folder.iterdir())), 5)
        self.write([{"a": 7}], replace=True)
        self.assertEqual(sorted(file.name for file in self.folder.iterdir()), ["notes.txt", "part-00000.safetensors"])

    def test_a_failure_leaves_nothing_new(self):
        def failing():
            yield {"a": 1}
            yield {"a": 2}
            raise OSError("the disk is gone")

        with self.assertRaisesRegex(OSError, "gone"):
            self.write(failing(), part_bytes=8)
        self.assertFalse(self.folder.exists())
        self.write([{"a": 5}])
        with self.assertRaisesRegex(OSError, "gone"):
            self.write(failing(), part_bytes=8, replace=True)
        self.assertEqual(self.only()["a"].tolist(), [5])

    def test_what_a_killed_call_left_is_removed(self):
        self.folder.mkdir()
        (self.folder / "part-00007.safetensors.partial").write_bytes(b"half")
        self.write([{"a": 5}])
        self.assertEqual([file.name for file in self.folder.iterdir()], ["part-00000.safetensors"])

    def test_old_rows_may_be_read_while_new_ones_are_written(self):
        self.write([{"a": number} for number in range(4)], part_bytes=8)
        old = ({"a": int(load_file(file)["a"][0]) + 1} for file in sorted(self.folder.iterdir()))
        self.write(old, replace=True)
        self.assertEqual(self.only()["a"].tolist(), [1, 2, 3, 4])


class Refused(Parts):
    def test_rows_that_differ(self):
        self.refused("there are no rows", [])
        self.refused("row 1 is a str instead of a dict.*to_dict", [{"a": 1}, "a"])
        self.refused("row 1 lacks `b`: all", [{"a": 1, "b": 2}, {"a": 1}])
        self.refused("row 1 lacks `a` and has `b` too", [{"a": 1}, {"b": 1}])
        self.refused("row 1: `a` is F32, and I64 in earlier rows", [{"a": 1}, {"a": 1.5}])
        self.refused(r"row 1: `a` has the shape \[1, 3\], and \[any, 2\]", [{"a": [[1, 2]]}, {"a": [[1, 2, 3]]}])
        self.refused("row 1: `a` is a sequence in some rows", [{"a": 1}, {"a": [1]}])
        self.refused("row 0: `a` has lists of different lengths inside", [{"a": [[1], [1, 2]]}])

    def test_values_that_are_no_numbers(self):
        for value, words in [
            (None, "row 0: `a` is missing"),
            ([1, None], "a missing number"),
            (np.ma.array([1, 2], mask=[0, 1]), "is missing"),
            (float("nan"), "isn't finite"),
            (np.array([1, np.inf], np.float16), "isn't finite"),
            (1e300, "isn't finite"),
            ([1j], "complex numbers"),
            (["a", "b"], "words: name them in `classes`"),
            (np.datetime64("2024-01-01"), "times"),
            ({"b": 1}, "a dict, which isn't a number"),
            (np.longdouble(1), "use astype"),
            (1 << 70, "I64 can't have"),
            (np.array([1 << 63], np.uint64), "above 9223372036854775807"),
            (torch.ones(2, dtype=torch.bfloat16), "can't be an array"),
        ]:
            with self.subTest(value=value):
                self.refused(words, [{"a": value}])

    def test_names_that_batches_cannot_have(self):
        for name in ["", "1a", "_a", "a b", "a.b", "é", "rows", "classes", "a" * 65, 3]:
            with self.subTest(name=name):
                self.refused("a column can't be called", [{name: 1}])
        self.refused("`a_length`: no column", [{"a": "b", "a_length": 1}])
        self.refused("`a*_length`, the lengths", [{"a" * 60: "b"}])
        self.refused("row 0 has 65 columns", [{f"a{number}": 1 for number in range(65)}])
        self.refused("40 columns and 40 of their lengths", [{f"a{number}": "b" for number in range(40)}])
        self.refused("row 0 has 0 columns", [{}])

    def test_columns_without_numbers(self):
        self.refused("`a` is an empty list in all rows", [{"a": []}])
        self.refused("`a` has no numbers", [{"a": np.zeros(0)}])
        self.refused("`a` has no numbers", [{"a": np.zeros((2, 0))}])
        self.refused("`a` has no numbers", [{"a": ""}])

    def test_options_that_do_not_fit(self):
        self.refused("ragged names `b`, and row 0 has a", [{"a": [1]}], ragged=["b"])
        self.refused("in a list", [{"a": [1]}], ragged="a")
        self.refused("can't be ragged", [{"a": 1}], ragged=["a"])
        self.refused("classes names `b`", [{"a": "x"}], classes={"b": ["x"]})
        self.refused("each once", [{"a": "x"}], classes={"a": ["x", "x"]})
        self.refused("each once", [{"a": "x"}], classes={"a": "x"})
        self.refused("the classes 1 and '1' of `a` are both called '1'", [{"a": 1}], classes={"a": [1, "1"]})
        self.refused(r"a class of `a` is 'x\\ny', which has a control character", [{"a": "x"}], classes={"a": ["x\ny"]})
        self.refused("which has a control character", [{"a": "x"}], classes={"a": ["x\u2028"]})
        self.refused("a class of `a` is 'yyyy.*', which has 257 characters", [{"a": "x"}], classes={"a": ["x", "y" * 257]})
        self.refused("the words of classes have 1,0.* bytes", [{"a": 0}], classes={"a": ["x" * 200 + str(n) for n in range(5000)]})
        self.refused("row 0: `a` is 'y', which isn't one of its classes: x", [{"a": "y"}], classes={"a": ["x"]})
        self.refused("row 0: `a` is {}, which isn't", [{"a": {}}], classes={"a": ["x"]})
        self.refused("row 1: `a` has the number 3: with 3 values", [{"a": 2}, {"a": 3}], values={"a": 3})
        self.refused("has the number -1", [{"a": -1}], values={"a": 3})
        self.refused("values are of whole numbers", [{"a": 0.5}], values={"a": 3})
        self.refused("has 0 values", [{"a": 0}], values={"a": 0})
        self.refused("part_bytes", [{"a": 0}], part_bytes=0)


if __name__ == "__main__":
    unittest.main()
