"""Where searches run: servers over HTTP, the program `sojourn`, and a server of one's own as child processes."""

from sojourn.server.errors import CommandFailed, InvalidSearch, JobFailed, Problem, Refused, SojournError, Unreachable
from sojourn.server.embedded import LocalServer, local
from sojourn.server.server import Server, connect, current

__all__ = [
    "CommandFailed",
    "InvalidSearch",
    "JobFailed",
    "LocalServer",
    "Problem",
    "Refused",
    "Server",
    "SojournError",
    "Unreachable",
    "connect",
    "current",
    "local",
]
