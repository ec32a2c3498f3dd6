"""The process between scripts and the server and client of a folder: it starts both, starts them again, and ends them.

`python -m sojourn.server.supervise SETTINGS` is started by `sojourn.local`. It writes one JSON line to standard output:
`{"url": ...}` once the server answers, or `{"failed": ...}`. When nobody has the FIFO `users` open for writing any more it ends
the client and then the server. On Linux both get SIGTERM when this process itself is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import http.client
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

POLL_MILLISECONDS = 200
START_TIMEOUT = 120.0
"""Seconds in which the server has to answer: a long journal is read anew."""
END_TIMEOUT = 10.0
"""Seconds that a process has to end before it is killed."""
MAX_QUICK_ENDS = 3
QUICK_END = 5.0
"""Seconds: a process that ends sooner than that, so often in a row, isn't started again."""
KEPT_VARIABLES = ("SOJOURN_LOG", "SOJOURN_TRAINER", "SOJOURN_TORCH")
"""Variables of the user that hold for the children too. Others, such as SOJOURN_LISTEN, are for other servers."""
MAX_LOG_BYTES = 4 << 20
LOG_LINES = 20
RUNNING_LOCK = "running.lock"
PR_SET_PDEATHSIG = 1


class Failed(Exception):
    """A child can't be started, or doesn't stay up."""


class Child:
    """A process that is started again when it ends by itself."""

    def __init__(self, name: str, command: Callable[[], list[str]], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._command = command
        self._quick_ends = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0

    def start(self) -> None:
        own = {name: value for name, value in os.environ.items() if not name.startswith("SOJOURN_") or name in KEPT_VARIABLES}
        is_long = self.log.exists() and self.log.stat().st_size > MAX_LOG_BYTES
        with open(self.log, "wb" if is_long else "ab") as log:
            self._process = subprocess.Popen(
                self._command(), env=own, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_ends_with_parent
            )
        self._started = time.monotonic()

    def keep_up(self) -> bool:
        """Starts the process again if it has ended; was that so? Raises `Failed` where it keeps ending at once."""
        if self._process is None or self._process.poll() is None:
            return False
        self._quick_ends = self._quick_ends + 1 if time.monotonic() - self._started < QUICK_END else 0
        if self._quick_ends >= MAX_QUICK_ENDS:
            raise Failed(f"`sojourn {self.name}` keeps ending; the end of {self.log}:\n{last_lines(self.log)}")
        self.start()
        return True

    def end(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(END_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Site:
    """The server and the client of a folder."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.folder = Path(settings["folder"])
        self._settings = settings
        self._listen = "127.0.0.1:0"
        self._server = Child("serve", self._serve, self.folder)
        self._client = Child("client", self._client_command, self.folder)

    @property
    def url(self) -> str:
        return f"http://{self._listen}"

    def _serve(self) -> list[str]:
        return [self._settings["program"], "serve", "--data", str(self.folder / "server"), "--listen", self._listen]

    def _client_command(self) -> list[str]:
        gpus = ["--gpus", self._settings["gpus"]] if self._settings["gpus"] else []
        return [
            *(self._settings["program"], "client", "--server", self.url, "--data", str(self.folder / "client")),
            *("--token-file", str(self.folder / "server" / "enrol-token"), "--metadata", "none"),
            *("--slots", self._settings["slots"], *gpus),
        ]

    def start(self) -> None:
        """Starts both. Raises `Failed` where the server doesn't answer in time."""
        address = self.folder / "server" / "address"
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            address.unlink()
        self._server.start()
        deadline = time.monotonic() + START_TIMEOUT
        while not (address.exists() and self._answers(address.read_text(encoding="utf-8").strip())):
            self._server.keep_up()
            if time.monotonic() > deadline:
                log = self._server.log
                raise Failed(f"the server doesn't answer; the end of {log}:\n{last_lines(log)}")
            time.sleep(0.02)
        # A server that is started again has the same address, which scripts and clients know.
        self._listen = address.read_text(encoding="utf-8").strip()
        self._client.start()

    def _answers(self, address: str) -> bool:
        connection = http.client.HTTPConnection(address, timeout=5)
        try:
            connection.request("GET", "/v1/health")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def keep_up(self) -> None:
        for child in (self._server, self._client):
            if child.keep_up():
                print(f"{child.name} has ended, and was started again", file=sys.stderr)

    def end(self) -> None:
        self._client.end()
        self._server.end()


def supervise(settings: dict[str, Any]) -> None:
    """Runs the site of a folder until nobody uses it."""
    users: int = settings["users"]
    folder = Path(settings["folder"])
    with open(folder / RUNNING_LOCK, "wb") as running:
        # A supervisor that is ending still has the journal.
        fcntl.flock(running, fcntl.LOCK_EX)
        site = Site(settings)
        try:
            site.start()
            state = {"url": site.url, "slots": settings["slots"], "pid": os.getpid()}
            (folder / "supervisor.json").write_text(json.dumps(state), encoding="utf-8")
            answer(state)
            wait_for_users(site, users, folder)
        finally:
            site.end()


def wait_for_users(site: Site, users: int, folder: Path) -> None:
    """Returns once nobody uses the site, and nobody can begin to."""
    poll = select.poll()
    poll.register(users, select.POLLIN)
    while True:
        poll.poll(POLL_MILLISECONDS)
        if not has_users(users):
            with open(folder / "start.lock", "wb") as starting:
                fcntl.flock(starting, fcntl.LOCK_EX)
                if not has_users(users):
                    os.close(users)
                    return
        site.keep_up()


def has_users(users: int) -> bool:
    try:
        return os.read(users, 1) != b""
    except BlockingIOError:
        return True  # nothing to read, and somebody who could write


def answer(line: dict[str, Any]) -> None:
    """Writes the one line for the script that has started this process, if that is still there."""
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(line), flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def last_lines(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:])


def _ends_with_parent() -> None:
    """Runs in a child before its program. This process has one thread, so that nothing can be locked there."""
    if sys.platform == "linux":
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


_LIBC = ctypes.CDLL(None)


def _end(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def main() -> int:
    signal.signal(signal.SIGTERM, _end)
    try:
        supervise(json.loads(sys.argv[1]))
    except (Failed, OSError) as failed:
        answer({"failed": str(failed)})
        print(failed, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
