"""The package is typed: mypy's strict rules hold for searches and jobs, and a user's types are checked against them."""

import importlib.util
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import PACKAGE

USE = """
import sojourn

search = sojourn.Search(sojourn.mlp(hidden=[64]), data="rows.csv", epochs=3, space={"lr": sojourn.log_uniform(1e-4, 1e-2)})
job: sojourn.Job = search.run()
value: float = job.best.value
rows: list[sojourn.Trial] = job.trials()


async def later() -> None:
    loss: float | None = (await job.aio.trials())[0].value
    state: str = (await job.aio.pause(now=True)).state
"""


@unittest.skipUnless(importlib.util.find_spec("mypy"), "needs mypy")
class Types(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.cache = folder.name

    def mypy(self, *arguments):
        command = [sys.executable, "-m", "mypy", "--cache-dir", self.cache, *arguments]
        done = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_the_package_holds_to_strict_rules(self):
        status, said = self.mypy()
        self.assertEqual(status, 0, said)

    def test_a_user_s_mistake_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "use.py"
            file.write_text(USE, encoding="utf-8")
            status, said = self.mypy("--strict", str(file))
            self.assertEqual(status, 0, said)
            file.write_text(USE + "job.wait(timeout='soon')\n", encoding="utf-8")
            status, said = self.mypy("--strict", str(file))
            self.assertIn('has incompatible type "str"; expected "float | None"', said)
            file.write_text(USE + "    await job.aio.extend(epochs='many')\n", encoding="utf-8")
            status, said = self.mypy("--strict", str(file))
            self.assertIn('"epochs" has incompatible type "str"; expected "int | None"', said)

    def test_every_call_of_a_job_is_there_for_asyncio(self):
        from sojourn.job.job import Job
        from sojourn.job.later import LaterJob

        calls = {name for name in vars(Job) if name[0] != "_"} - {"aio"}
        self.assertEqual(calls, {name for name in vars(LaterJob) if name[0] != "_"})


class Marker(unittest.TestCase):
    def test_the_package_says_that_it_is_typed(self):
        self.assertTrue((PACKAGE / "sojourn/py.typed").is_file())


if __name__ == "__main__":
    unittest.main()
