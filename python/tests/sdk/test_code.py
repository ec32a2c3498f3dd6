"""Code of models: which lines of a script travel, and which entry a class or function has."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from sojourn.search import code
from support import PACKAGE, environment

SCRIPT = '''"""A script."""
from __future__ import annotations

import math
import os
from random import *

SIZE = 3
WIDTH = SIZE * 2
raise_if_loaded = os.environ["NEVER"]


def double(x):
    return x * math.pi


@staticmethod
def unused():
    return WIDTH


try:
    import faster as kernel
except ImportError:
    kernel = None


class Base:
    size = WIDTH


class Net(Base):
    kernel = kernel

    def setup(self, c, data):
        return double(c.width)


Net.run()
if __name__ == "__main__":
    Net.run_again()
'''


class Code(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_what_a_class_needs_travels_on_its_lines_and_nothing_else(self):
        text = code.needed(SCRIPT, "Net")
        kept = {number: line for number, line in enumerate(text.splitlines(), 1) if line}
        whole = SCRIPT.splitlines()
        self.assertEqual(kept, {number: whole[number - 1] for number in kept}, "lines keep their numbers")
        for there in (
            "from __future__",
            "import math",
            "from random import *",
            "SIZE = 3",
            "WIDTH =",
            "def double",
            "import faster",
            "class Base",
        ):
            self.assertIn(there, text)
        for absent in ("import os", "NEVER", "unused", "run()", "__main__"):
            self.assertNotIn(absent, text)
        namespace = {"__name__": "net"}
        exec(compile(text, "net.py", "exec"), namespace)
        self.assertEqual(namespace["Net"].size, 6)

    def test_names_within_functions_and_lines_that_are_to_come_stay_out(self):
        lines = [
            "SIZE = 1",
            "out = start()",
            "class Net:",
            "    def loss(self, size=SIZE):",
            "        out = [one for one in size]",
        ]
        lines += ["        return out", "one = start()", "Net.search()", "SIZE = 2"]
        text = code.needed("\n".join(lines), "Net", running=8)
        self.assertEqual([line for line in text.splitlines() if line], [lines[0], *lines[2:6]])

    def test_of_definitions_in_a_notebook_the_last_counts(self):
        cells = "WIDTH = 1\nclass Net:\n    width = WIDTH\nWIDTH = 2\nclass Net:\n    second = WIDTH\n"
        text = code.needed(cells, "Net", only_last=True)
        self.assertEqual([line for line in text.splitlines() if line], ["WIDTH = 2", "class Net:", "    second = WIDTH"])
        with self.assertRaisesRegex(ValueError, "the source of Other isn't found"):
            code.needed(cells, "Other")

    def ran(self, text, name="script.py", **variables):
        script = self.folder / name
        script.write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, script], env=environment(self.folder), capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def test_a_class_of_a_script_knows_its_file_and_a_cell_its_history(self):
        entry = "from pathlib import Path\nfrom sojourn.search import code\n"
        end = f"print(code.entry_of(Net, Path({str(self.folder)!r})))\n"
        file, _, name = self.ran(entry + "import os\nclass Net:\n    where = os.path.dirname(__file__)\n" + end).rpartition(":")
        self.assertEqual(name, "Net")
        namespace = {"__file__": "elsewhere"}
        exec(compile(Path(file).read_text(encoding="utf-8"), file, "exec"), namespace)
        self.assertEqual(namespace["Net"].where, str(self.folder))
        cells = ["%matplotlib inline\nSIZE = 4", "!pip list", "this is no Python", "class Net:\n    size = SIZE"]
        notebook = entry + f"del __file__\nIn = {cells!r}\nexec(In[3], {{'SIZE': 4}}, globals())\nNet.__module__ = '__main__'\n"
        file, _, _ = self.ran(notebook + end).rpartition(":")
        exec(compile(Path(file).read_text(encoding="utf-8"), file, "exec"), namespace)
        self.assertEqual(namespace["Net"].size, 4)

    def test_a_class_of_a_module_is_exported_from_there(self):
        (self.folder / "models.py").write_text("class Net: pass\n")
        (self.folder / "package").mkdir()
        (self.folder / "package/models.py").write_text("class Deep: pass\n")
        text = "from pathlib import Path\nimport models, package.models\nfrom sojourn.search import code\n"
        text += f"for one in (models.Net, package.models.Deep): print(code.entry_of(one, Path({str(self.folder)!r})))\n"
        text += "print(code.search_path())"
        flat, deep, path = self.ran(text).splitlines()
        self.assertEqual(flat, f"{self.folder / 'models.py'}:Net")
        self.assertEqual(Path(deep.rpartition(":")[0]).read_text(), "from package.models import Deep\n")
        self.assertIn(str(self.folder), path.split(":"))
        self.assertFalse([one for one in path.split(":") if "site-packages" in one])

    def test_the_copy_of_the_exporter_finds_the_rest_of_the_package(self):
        """A user's module may make searches beside its models; the command's copy of the package comes first on the path."""
        copied = self.folder / "copy/sojourn"
        copied.mkdir(parents=True)
        for file in (PACKAGE / "sojourn").glob("*.py"):
            shutil.copy(file, copied)
        text = f"import sys\nsys.path.insert(0, {str(copied.parent)!r})\nimport sojourn\nfrom sojourn import Search, choice\n"
        text += "from sojourn import data\nprint(sojourn.__file__, data.__file__, sys.modules[Search.__module__].__file__)"
        found = [Path(file).parent for file in self.ran(text).split()]
        self.assertEqual(found, [copied, copied, PACKAGE / "sojourn/search"])

    def test_code_without_a_name_or_a_source_is_refused(self):
        with self.assertRaisesRegex(ValueError, "define it at the top of a module"):
            code.entry_of(lambda c, data: None, self.folder)


if __name__ == "__main__":
    unittest.main()
