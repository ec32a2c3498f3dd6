"""Scripts of users as processes, in a folder of their own, and what is left of them."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]
PATIENCE = 240.0
"""Seconds after which a test gives up what it waits for."""

STRICT = {"PYTHONWARNINGS": "error::ResourceWarning"}

TABLE = """
import numpy as np
import sojourn

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 8)).astype("float32")
y = (X[:, 0] * X[:, 1] > 0).astype(int)
"""
"""The beginning of a script: a small table in memory."""


def poll(look):
    """What `look` gives once it is true."""
    deadline = time.monotonic() + PATIENCE
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"nothing came of {look} within {PATIENCE} s")
        time.sleep(0.02)
    return found


def environment(home):
    """The environment of a user who has no server and no settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SOJOURN_", "XDG_"))}
    path = os.pathsep.join(filter(None, [str(PACKAGE), kept.get("PYTHONPATH")]))
    return {**kept, "HOME": str(home), "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "SOJOURN_GPUS": "none", **STRICT}


class Site(unittest.TestCase):
    """A test with a folder in which scripts run."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.addCleanup(self.end_all)

    def start(self, text, name="script.py", **variables):
        """Starts a script; its output goes into a file beside it."""
        script = self.folder / name
        script.write_text(text, encoding="utf-8")
        with open(script.with_suffix(".log"), "ab") as log:
            return subprocess.Popen(
                [sys.executable, str(script)],
                cwd=self.folder,
                env={**environment(self.folder), **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def said(self, name="script.py"):
        return (self.folder / name).with_suffix(".log").read_text(encoding="utf-8")

    def ran(self, text, name="script.py", **variables):
        """Runs a script to its end; what it says."""
        script = self.start(text, name, **variables)
        code = script.wait(PATIENCE)
        self.assertEqual(code, 0, self.said(name) + self.logs())
        return self.said(name)

    def logs(self):
        """The logs of a local server, for the message of a test that fails."""
        return "".join(f"\n{log}:\n{log.read_text(errors='replace')[-3000:]}" for log in self.folder.glob(".sojourn/*.log"))

    def processes(self, word=""):
        """Processes that have the test's folder, and the word, in their command line."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                except OSError:
                    continue  # it has ended meanwhile
                if str(self.folder) in command and word in command:
                    found[int(entry.name)] = command
        return found

    def end_all(self):
        """Ends what a test that failed has left."""
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
