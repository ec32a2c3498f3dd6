"""docs/python-reference.md: made of the docstrings as they are, and whole beside the package, the commands and the OpenAPI document."""

import json
import re
import subprocess
import sys
import unittest

import sojourn
from sojourn.server.program import program
from support import PACKAGE

ROOT = PACKAGE.parent
sys.path.insert(0, str(ROOT / "scripts"))

import python_reference  # noqa: E402
import python_reference_tables as tables  # noqa: E402


def said(*arguments):
    """The output of the program."""
    return subprocess.run([program(), *arguments], capture_output=True, text=True, check=True).stdout


class Reference(unittest.TestCase):
    def test_the_page_is_that_of_the_docstrings(self):
        self.assertEqual(
            python_reference.PAGE.read_text(encoding="utf-8"), python_reference.page(), "scripts/python_reference.py writes it"
        )

    def test_every_public_name_is_described(self):
        described = {name for _, files in python_reference.SECTIONS for _, names in files for name in names}
        public = {name for name in dir(sojourn) if callable(getattr(sojourn, name)) and getattr(sojourn, name).__module__.startswith("sojourn.")}
        self.assertEqual(public - described, set())

    def test_every_call_has_a_docstring(self):
        for entry in re.split(r"^#{3,4} ", python_reference.page(), flags=re.MULTILINE)[1:]:
            name, _, rest = entry.partition("\n")
            text = re.sub(r"```python.*?```", "", rest, flags=re.DOTALL).partition("\n## ")[0]
            self.assertRegex(text.strip(), r"^[A-Z0-9`]", name)

    def test_every_command_has_its_call_or_a_reason(self):
        listed = re.findall(r"^  ([a-z]+)  ", said("help"), flags=re.MULTILINE)
        self.assertEqual(sorted(tables.COMMANDS), sorted(set(listed) - {"help"}))
        for name, (call, why) in tables.COMMANDS.items():
            self.assertTrue(bool(call) != bool(why), name)

    def test_every_operation_of_the_http_interface_has_its_call(self):
        paths = json.loads(said("openapi"))["paths"]
        operations = {operation["operationId"]: path for path, by_method in paths.items() for operation in by_method.values()}
        self.assertEqual(sorted(tables.ENDPOINTS), sorted(operations))
        for name, call in tables.ENDPOINTS.items():
            for path in re.findall(r'server\.api\.\w+\("([^"]+)"', call):
                pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(operations[name]))
                self.assertRegex(f"/v1/{path}", f"^{pattern}$", name)

    def test_the_calls_of_the_tables_exist(self):
        homes = {"job": sojourn.Job, "server": sojourn.Server, "search": sojourn.Search}
        texts = [*(call for call, _ in tables.COMMANDS.values()), *tables.ENDPOINTS.values(), *(one for _, one in tables.MISSING_OPTIONS)]
        found = [call for text in texts for call in re.findall(r"\b(job|server|search)\.(\w+)", text)]
        self.assertGreater(len(found), 60)
        for home, name in found:
            self.assertTrue(hasattr(homes[home], name) or name in ("api", "server"), f"{home}.{name}")


if __name__ == "__main__":
    unittest.main()
