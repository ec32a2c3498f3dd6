"""The blocks of docs/python.md in Python: each is run, or says why not.

`run`: the block is a script. `goes-on`: it is run behind the script before it. `needs=PACKAGE`: it is left out where
the package is missing. `not-run=REASON`. Scripts have one folder, with the digits in it.
"""

import importlib.util
import re
import shutil
import unittest
from pathlib import Path

import sojourn
from support import Site

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/python.md"


def blocks():
    """The blocks of Python, each with its line and its marks."""
    text = PAGE.read_text(encoding="utf-8")
    for found in re.finditer(r"^```python ?([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        marks = dict(mark.partition("=")[::2] for mark in found[1].split())
        yield text[: found.start()].count("\n") + 1, marks, found[2]


class Page(Site):
    def test_every_block_runs(self):
        shutil.copy(ROOT / "examples/digits/digits.csv", self.folder)
        script, tried, said = "", 0, {}
        for line, marks, text in blocks():
            with self.subTest(line=line):
                self.assertTrue({"run", "goes-on", "not-run"} & marks.keys(), "the block says nothing of how to try it")
                if "not-run" in marks or ("needs" in marks and importlib.util.find_spec(marks["needs"]) is None):
                    continue
                script = script + text if "goes-on" in marks else text
                said[line] = self.ran(script)
                (self.folder / "script.log").unlink()
                tried += 1
        self.assertGreater(tried, 8)
        printed = re.search(r"^```text\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[1]
        everything = "".join(said.values()).replace(f"{self.folder}/", "")
        self.assertIn(printed, everything)

    def test_names_of_the_page_are_names_of_the_package(self):
        text = PAGE.read_text(encoding="utf-8")
        for name in set(re.findall(r"\bsojourn\.(\w+)\(", text)):
            self.assertTrue(callable(getattr(sojourn, name)), name)
        for name in set(re.findall(r"\bjob\.(\w+)", text)) - {"toml"}:
            self.assertTrue(hasattr(sojourn.Job, name), name)
        for name in set(re.findall(r"\bstudy\.(ask|tell|wait|watch|stop|room|direction|job)\b", text)):
            self.assertTrue(hasattr(sojourn.Study, name) or name == "job", name)

    def test_every_public_name_is_on_the_page(self):
        text = PAGE.read_text(encoding="utf-8")
        members = [name for name in vars(sojourn.Job) if not name.startswith("_")]
        missing = [name for name in members if f"job.{name}" not in text and name not in ("change", "trial", "aio")]
        self.assertEqual(missing, [])
        for name in dir(sojourn):
            if name[0].islower() and callable(getattr(sojourn, name)) and name != "import_module":
                self.assertIn(f"{name}(", text, name)


if __name__ == "__main__":
    unittest.main()
