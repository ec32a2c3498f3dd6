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


def rows(table):
    """The lines of the table of the page whose first column is called like that: pairs of cells, without marks of code."""
    found = re.search(rf"^\| {table} \| here \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)[1]
    for line in found.splitlines():
        there, here = line.replace("`", "").strip("| ").split(" | ")
        yield there, here


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

    @unittest.skipUnless(importlib.util.find_spec("optuna"), "needs optuna")
    def test_ranges_of_optuna_are_those_that_stand_beside_them(self):
        import optuna

        from sojourn.adapters.spaces import dimension_of

        compared = 0
        for there, here in rows("Optuna"):
            if there.startswith("trial.suggest_"):
                trial = optuna.create_study().ask()
                eval(there, {"trial": trial})
                (distribution,) = trial.distributions.values()
                value = eval(here.removeprefix("space="), {"sojourn": sojourn})
                (dimension,) = value.values() if isinstance(value, dict) else [value]
                self.assertEqual(dimension_of(distribution).table, dimension.table, there)
                compared += 1
        self.assertEqual(compared, 4)

    def test_methods_and_rules_that_stand_beside_others_are_ours(self):
        cells = [*rows("Optuna"), *rows("Ray Tune")]
        words = {f"method={word}" for there, here in cells if "Sampler" in there for word in re.findall(r'"\w+"', here)}
        words |= {f"stopping={word}" for there, here in cells if "Pruner" in there for word in re.findall(r'"\w+"', here)}
        words |= {word for _, here in cells for word in re.findall(r'(?:method|stopping)="\w+"', here)}
        self.assertEqual(len(words), 8, words)
        shutil.copy(ROOT / "examples/digits/digits.csv", self.folder)
        text = "import sojourn\nrates = sojourn.log_uniform(1e-4, 1e-2), sojourn.choice(0.001, 0.01)\n"
        for word in sorted(words):
            method = "" if "method" in word else ', method="random"'
            trials = "" if "grid" in word else ", trials=8"
            text += "sojourn.Search(sojourn.mlp(hidden=[8]), 'digits.csv', label='label', epochs=9, "
            text += f"{word}{method}{trials}, space={{'lr': rates[{int('grid' in word)}]}}).validate()\n"
        self.ran(text)

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
