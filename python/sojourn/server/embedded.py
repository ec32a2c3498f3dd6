"""A server and a client of this machine as child processes, in a folder of the user's, shared by all scripts that use the folder.

    script ---.  holds `users` (a FIFO) open for writing
    script ---+---> supervisor ---> sojourn serve     FOLDER/server
                     reads `users`  sojourn client    FOLDER/client

When the last script has ended, however it ended, the system closes its end of the FIFO. The supervisor then ends the children.
`start.lock` is held by whoever starts a supervisor or ends one, so that no script counts on a supervisor that is about to end.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import sojourn
from sojourn.server.errors import SojournError
from sojourn.server.server import TOKEN_FILE, Server

FOLDER = ".sojourn"
USERS = "users"
START_LOCK = "start.lock"
STATE = "supervisor.json"
LOG = "supervisor.log"
END_TIMEOUT = 20.0
"""Seconds that a script waits for the children to end."""
GPUS_VARIABLE = "SOJOURN_GPUS"
NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")

_servers: dict[Path, LocalServer] = {}
_starting = threading.Lock()


def local(*, slots: int | None = None, gpus: str | None = None, folder: str | os.PathLike[str] = FOLDER) -> LocalServer:
    """A server and a client on this machine, which end with the last script that uses them; searches of this process run there.

    - `slots`: units that train at once; by default one for each GPU, or one for each core where there is no GPU.
    - `gpus`: `auto`, `none`, or numbers such as `0,1`; by default what `SOJOURN_GPUS` says.
    - `folder` keeps jobs, models and logs: with the same folder the same jobs go on.

    Scripts that use the folder at the same time share one server, and the first one's `slots` and `gpus` hold.

    Raises `SojournError` where the programs can't be started, with the end of their log.
    """
    path = Path(folder).absolute()
    gpus = gpus or os.environ.get(GPUS_VARIABLE) or None
    with _starting:
        server = _servers.get(path)
        if server is None or server.has_ended():
            server = LocalServer(path, slots, gpus)
            _servers[path] = server
    server.use()
    return server


class LocalServer(Server):
    """A server of `sojourn.local`. As a context manager it ends at the end of the block, unless another script uses it."""

    outlives_script = False

    def __init__(self, folder: Path, slots: int | None, gpus: str | None) -> None:
        self.folder = folder
        self._settings = (slots, gpus)
        self._supervisor: subprocess.Popen[str] | None = None
        self._users: int | None = None
        state = self._begin()
        self.slots = str(state["slots"])
        """Units that train at once, or `auto`: one for each GPU."""
        if slots is not None and str(slots) != self.slots:
            print(f"sojourn: another script has started the server in {folder}, with {self.slots} slots", file=sys.stderr)
        token = (folder / "server" / TOKEN_FILE).read_text(encoding="utf-8").strip()
        super().__init__(state["url"], token)
        atexit.register(self.close)

    def _begin(self) -> dict[str, Any]:
        """Joins the supervisor of the folder, or starts it; what it says of itself."""
        _prepare(self.folder)
        with _locked(self.folder / START_LOCK):
            users = _join(self.folder)
            if users is None:
                users, self._supervisor = _start(self.folder, *self._settings)
            self._users = users
            state: dict[str, Any] = json.loads((self.folder / STATE).read_text(encoding="utf-8"))
            return state

    def revive(self) -> None:
        """Starts the server again where its supervisor was killed."""
        with _starting:
            if self._users is not None and not _is_read(self._users):
                os.close(self._users)
                self._users = None
                self._move_to(self._begin()["url"])

    def has_ended(self) -> bool:
        """Is the server closed, or has its supervisor been killed?"""
        return self._users is None or not _is_read(self._users)

    def close(self) -> None:
        """Stops using the server, and waits until its processes have ended, unless another script uses them."""
        super().close()
        atexit.unregister(self.close)
        users, self._users = self._users, None
        if users is not None:
            os.close(users)
        if self._supervisor is not None and not _is_shared(self.folder):
            try:
                self._supervisor.wait(END_TIMEOUT)
            except subprocess.TimeoutExpired:
                print(f"sojourn: the server in {self.folder} takes long to end; see {self.folder / LOG}", file=sys.stderr)

    def __repr__(self) -> str:
        return f"<sojourn server {self.url} in {self.folder}>"


def default_slots(gpus: str | None) -> int | None:
    """A slot for each core that this process may use; None, which is one for each GPU, where there may be GPUs."""
    if gpus != "none" and NVIDIA_DRIVER.exists():
        return None
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ignored = folder / ".gitignore"
        if not ignored.exists():
            ignored.write_text("*\n", encoding="utf-8")
        if not (folder / USERS).exists():
            os.mkfifo(folder / USERS, 0o600)
    except FileExistsError:
        pass  # another script was faster
    except OSError as error:
        raise SojournError(f"{folder} can't hold a server: {error}; `folder=` names another folder") from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds the lock of a file, which other processes wait for."""
    with open(path, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _join(folder: Path) -> int | None:
    """The writing end of `users`; None where no supervisor reads it."""
    try:
        return os.open(folder / USERS, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return None
        raise


def _start(folder: Path, slots: int | None, gpus: str | None) -> tuple[int, subprocess.Popen[str]]:
    """Starts a supervisor, and waits until its server answers; the writing end of `users`, and the supervisor."""
    from sojourn.server import program

    reading = os.open(folder / USERS, os.O_RDONLY | os.O_NONBLOCK)
    # The supervisor finds a user from its first instant on.
    users = os.open(folder / USERS, os.O_WRONLY | os.O_NONBLOCK)
    slots = slots if slots is not None else default_slots(gpus)
    settings: dict[str, Any] = {
        "folder": str(folder),
        "program": program.program(),
        "users": reading,
        "slots": "auto" if slots is None else str(slots),
        "gpus": gpus,
    }
    package = str(Path(sojourn.__file__).parent.parent)
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    try:
        with open(folder / LOG, "ab") as log:
            supervisor = subprocess.Popen(
                [sys.executable, "-m", "sojourn.server.supervise", json.dumps(settings)],
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                pass_fds=[reading],
                # Ctrl-C in a terminal is for the script alone.
                start_new_session=True,
            )
    finally:
        os.close(reading)
    answer = _first_line(supervisor)
    if "failed" in answer:
        os.close(users)
        supervisor.wait()
        raise SojournError(answer["failed"])
    return users, supervisor


def _first_line(supervisor: subprocess.Popen[str]) -> dict[str, Any]:
    stdout: IO[str] | None = supervisor.stdout
    line = stdout.readline() if stdout else ""
    if stdout:
        stdout.close()
    if not line:
        return {"failed": f"the local server could not be started: its supervisor ended with {supervisor.wait()}"}
    answer: dict[str, Any] = json.loads(line)
    return answer


def _is_read(users: int) -> bool:
    """Does a supervisor read the FIFO of which this is a writing end?"""
    import select

    poll = select.poll()
    poll.register(users, 0)
    return not any(event & select.POLLERR for _, event in poll.poll(0))


def _is_shared(folder: Path) -> bool:
    """Does another script use the server of this folder?"""
    try:
        reading = os.open(folder / USERS, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return False  # the folder was deleted
    try:
        return os.read(reading, 1) != b""
    except BlockingIOError:
        return True  # nothing to read, and somebody who could write
    finally:
        os.close(reading)
