"""A server that runs searches, and the rules by which a script finds it.

sojourn.connect(url, token)      else
SOJOURN_SERVER                   with SOJOURN_TOKEN or SOJOURN_TOKEN_FILE, and SOJOURN_CA, else
the server of this machine       that `sojourn serve` runs with its default data folder, or SOJOURN_DATA, else
sojourn.local()                  server and client as child processes
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sojourn.server import program
from sojourn.server.api import DEFAULT_URL, MAX_RETRIES, Api, drawn_pause, part
from sojourn.server.errors import CommandFailed, SojournError

if TYPE_CHECKING:
    from typing_extensions import Self

    from sojourn.job import Job

TOKEN_FILE = "admin-token"
"""The file of a server's data folder that has its token."""
ADDRESS_FILE = "address"
LOCK_FILE = "lock"
LOOPBACK = ("127.0.0.1", "localhost", "::1")

_choice = threading.Lock()
_current: Server | None = None


class Server:
    """A deployment: where searches run, by its HTTP interface and by the program `sojourn`.

    Made by `sojourn.connect` and `sojourn.local`; `api` is the HTTP interface.
    """

    outlives_script = True
    """Does the server go on when this Python ends?"""

    def __init__(self, url: str, token: str | None = None, ca: str | None = None) -> None:
        """`url` is an address, or several with commas between. Raises `ValueError` for one that is none."""
        urls = [one for one in url.split(",") if one.strip()]
        if not urls:
            raise ValueError("there is no address of a server")
        self.api = Api(urls, token, ca, self.revive)
        # A file with another token would go over this one.
        own_token = {"SOJOURN_TOKEN": token, "SOJOURN_TOKEN_FILE": None} if token else {}
        self._environment: dict[str, str | None] = {"SOJOURN_SERVER": ",".join(urls), "SOJOURN_CA": ca, **own_token}

    @property
    def url(self) -> str:
        """The address that is asked now."""
        return self.api.url

    def run(self, *arguments: str, accepted: Sequence[int] = (0,), environment: Mapping[str, str] | None = None) -> Any:
        """The JSON of `sojourn ARGUMENTS --json` against this server. Raises `CommandFailed`.

        A command that finds no server is run again, as often as a call over HTTP.
        """
        attempt = 0
        while True:
            try:
                return program.run(arguments, {**self._environment, **(environment or {})}, accepted)
            except CommandFailed as failed:
                if failed.exit_code != program.UNREACHABLE or attempt == MAX_RETRIES:
                    raise
            self.revive()
            time.sleep(drawn_pause(attempt))
            attempt += 1

    def jobs(self) -> list[Job]:
        """All jobs, the oldest first."""
        from sojourn.job import Job

        return [Job(self, int(view["job"])) for view in self.api.get("jobs")]

    def job(self, job: int | str) -> Job:
        """The job with this number or name.

        Raises `Refused` where there is no such number, `SojournError` where no job or several have the name.
        """
        from sojourn.job import Job

        if isinstance(job, int):
            self.api.get(f"jobs/{part(job)}")
            return Job(self, job)
        numbers = [int(view["job"]) for view in self.api.get("jobs") if view["name"] == job]
        if len(numbers) != 1:
            found = f"jobs {', '.join(map(str, numbers))} have" if numbers else "no job has"
            raise SojournError(f"{found} the name {job!r}")
        return Job(self, numbers[0])

    def hosts(self) -> list[dict[str, Any]]:
        """The machines that work for the server, as `GET /v1/hosts` has them."""
        answer: list[dict[str, Any]] = self.api.get("hosts")
        return answer

    def health(self) -> dict[str, Any]:
        """The state of the server, as `GET /v1/health` has it."""
        answer: dict[str, Any] = self.api.get("health")
        return answer

    def revive(self) -> None:
        """Starts a server again that this process has started and that was killed; called where no server was found."""

    def _move_to(self, url: str) -> None:
        """The server has another address from now on."""
        self.api.move_to(url)
        self._environment["SOJOURN_SERVER"] = url

    def use(self) -> Self:
        """Makes this the server on which searches of this process run."""
        global _current
        with _choice:
            _current = self
        return self

    def close(self) -> None:
        """Searches of this process run elsewhere from now on. A server of `sojourn.local` ends with its last script."""
        global _current
        with _choice:
            if _current is self:
                _current = None

    def __enter__(self) -> Self:
        return self.use()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<sojourn server {self.url}>"


def connect(url: str | None = None, token: str | None = None, *, ca: str | None = None) -> Server:
    """Connects to a server, on which searches of this process run from now on.

    `url` is an address, `http://HOST:PORT`, or several with commas between; `token` a token that may submit; `ca` a PEM file
    to trust instead of the system's authorities. An argument that is left out is taken from `SOJOURN_SERVER`, `SOJOURN_TOKEN`,
    `SOJOURN_TOKEN_FILE` and `SOJOURN_CA`; of a server on this machine the token is found in its data folder.

    Raises `Unreachable` where no server answers, and `Refused` where it doesn't take the token.
    """
    url = url or os.environ.get("SOJOURN_SERVER") or DEFAULT_URL
    token = token or _token_from_environment() or _token_on_this_machine(url)
    server = Server(url, token, ca or os.environ.get("SOJOURN_CA") or None)
    server.api.get("jobs")
    return server.use()


def current() -> Server:
    """The server on which searches of this process run; one is found, or started by `sojourn.local`, where none is chosen yet."""
    with _choice:
        chosen = _current
    if chosen is not None:
        return chosen
    if os.environ.get("SOJOURN_SERVER"):
        return connect()
    port = _port_on_this_machine()
    if port is not None:
        return connect(f"http://127.0.0.1:{port}")
    from sojourn.server.embedded import local

    return local()


def data_folder() -> Path:
    """The data folder of this machine's server, as the program `sojourn` finds it."""
    named = os.environ.get("SOJOURN_DATA")
    if named:
        return Path(named)
    base = os.environ.get("XDG_DATA_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".local/share") / "sojourn/server"


def _token_from_environment() -> str | None:
    file = os.environ.get("SOJOURN_TOKEN_FILE")
    if file:
        return Path(file).read_text(encoding="utf-8").strip()
    return os.environ.get("SOJOURN_TOKEN") or None


def _port_on_this_machine() -> str | None:
    """The port of the server that runs with this machine's data folder."""
    folder = data_folder()
    try:
        address = (folder / ADDRESS_FILE).read_text(encoding="utf-8").strip()
        # A server that lives holds its folder's lock. One that was killed has left its address.
        return address.rpartition(":")[2] if is_locked(folder / LOCK_FILE) else None
    except OSError:
        return None


def _token_on_this_machine(url: str) -> str | None:
    """The token of this machine's server, if `url` is that server: other programs on loopback must not learn it."""
    parts = urlsplit(url)
    if parts.hostname not in LOOPBACK or str(parts.port) != _port_on_this_machine():
        return None
    try:
        return (data_folder() / TOKEN_FILE).read_text(encoding="utf-8").strip()
    except OSError:
        return None


def is_locked(path: Path) -> bool:
    """Has another process locked this file? Raises `OSError` where there is no such file."""
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False
