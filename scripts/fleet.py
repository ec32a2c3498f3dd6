"""A server and a client in a folder of their own, for the scripts that try the programs from end to end."""

import contextlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Failed(Exception):
    """What isn't as it should be."""


class Fleet:
    """A server and a client in a folder of their own, and commands that speak with them.

    `client` holds the client's arguments; None begins without one. `gpus` is for the client and for replays.
    """

    def __init__(self, programs, python, folder, client, gpus="none"):
        self.folder = folder
        self._programs = programs
        self._client = client
        self._children = []
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SOJOURN_")}
        self.environment = {
            **kept,
            "PATH": f"{programs}:{python.parent}:{kept.get('PATH', '')}",
            "HOME": str(folder),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "SOJOURN_PYTHON": str(python),
            "SOJOURN_METADATA": "none",
            "SOJOURN_GPUS": gpus,
        }

    def __enter__(self):
        server = self._start("server", ["serve", "--data", "server", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE)
        address = re.search(r"http://\S+", server.stdout.readline())
        if address is None:
            raise Failed(f"the server doesn't start:\n{(self.folder / 'server.log').read_text(encoding='utf-8')}")
        self.environment["SOJOURN_SERVER"] = address.group()
        self.environment["SOJOURN_TOKEN_FILE"] = str(self.folder / "server" / "admin-token")
        if self._client is not None:
            self.join(self._client)
        return self

    def join(self, arguments, name="client"):
        """Starts the client of a name; its process."""
        return self._start(name, ["client", "--token-file", "server/enrol-token", "--data", name, *arguments])

    def __exit__(self, *_error):
        for child in reversed(self._children):
            child.terminate()
            try:
                child.wait(timeout=30)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def _start(self, name, arguments, **options):
        log = open(self.folder / f"{name}.log", "a", encoding="utf-8")
        command = [self._programs / "sojourn", *arguments]
        options = {"cwd": self.folder, "env": self.environment, "stderr": log, "text": True, **options}
        child = subprocess.Popen(command, **options)
        self._children.append(child)
        return child

    def run(self, *command, cwd=None, fails=False):
        """What a command prints; of one that is to fail, what it says on standard error."""
        done = subprocess.run(command, cwd=cwd or self.folder, env=self.environment, capture_output=True, text=True, check=False)
        if (done.returncode != 0) != fails:
            shown = " ".join(str(word) for word in command)
            raise Failed(f"`{shown}` ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stderr if fails else done.stdout

    def sojourn(self, *arguments, **options):
        return self.run("sojourn", *arguments, **options)


class Search:
    """A search whose trials this script begins."""

    def __init__(self, fleet, text):
        self._fleet = fleet
        (fleet.folder / "job.toml").write_text(text, encoding="utf-8")
        self.job = str(json.loads(fleet.sojourn("submit", "job.toml", "--json"))["job"])
        self._token = pathlib.Path(fleet.environment["SOJOURN_TOKEN_FILE"]).read_text(encoding="utf-8").strip()

    def call(self, body=None):
        address = f"{self._fleet.environment['SOJOURN_SERVER']}/v1/jobs/{self.job}/search"
        headers = {"authorization": f"Bearer {self._token}", "content-type": "application/json"}
        request = urllib.request.Request(address, json.dumps(body).encode() if body else None, headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def begin(self, values):
        self.call({"add": [{"values": values}]})


def say(text):
    """What isn't a result, as soon as it is known."""
    print(text, file=sys.stderr, flush=True)


def spread(percents):
    """Mean and standard deviation of changes in percent."""
    percents = list(percents)
    deviation = f" ± {statistics.stdev(percents):.1f}" if len(percents) > 1 and any(percents) else ""
    return f"{statistics.mean(percents):+.1f}{deviation}" if any(percents) else "0"


def digits_data(shards):
    """The part of a job file that says the data: the digits of the examples, in so many shards."""
    train = ROOT / "examples" / "digits" / "digits.csv"
    return f'''[data]
train = "{train}"
label = "label"
shape = [1, 8, 8]
scale = "standard"
valid = 0.1
shards = {shards}
'''


@contextlib.contextmanager
def fresh_folder(name):
    """A folder that is gone afterwards: a run leaves gigabytes of checkpoints, and a server with a full disk gives no work."""
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
        yield pathlib.Path(folder)


def want(holds, otherwise):
    if not holds:
        raise Failed(otherwise)


def the_python(command):
    """The Python that has PyTorch: the one that SOJOURN_PYTHON names, or that of `make engines`."""
    named = os.environ.get("SOJOURN_PYTHON")
    # As it is named: resolved, the link of an environment would lead out of it.
    python = pathlib.Path(named) if named else ROOT / ".cache" / "engines" / "bin" / "python"
    if not python.is_file():
        sys.exit(f"{command}: there is no {python}; `make engines` makes one, or SOJOURN_PYTHON names one")
    return python.absolute()


class Attempts:
    """What was tried, a line for each, and how much of it failed."""

    def __init__(self, command):
        self._command = command
        self._failed = 0

    def attempt(self, what, function, *arguments):
        start = time.monotonic()
        try:
            said, verdict = function(*arguments), "ok"
        except Failed as why:
            said, verdict = str(why), "FAILED"
            self._failed += 1
        print(f"{verdict:7} {what} ({time.monotonic() - start:.1f} s): {said}", flush=True)

    def end(self):
        """The exit code."""
        print(f"{self._command}: {self._failed} failed" if self._failed else f"{self._command}: all passed")
        return 1 if self._failed else 0
