"""Calls of a server's HTTP interface, made again as the command line makes them again.

An `Api` owns the list of addresses and which of them answered last. Each call has a connection of its own, so that threads
may share an `Api`.
"""

from __future__ import annotations

import http.client
import json
import random
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from email.message import Message
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from sojourn.server.errors import Refused, SojournError, Unreachable

PROTOCOL = "3"
PROTOCOL_HEADER = "sojourn-protocol"
DEFAULT_URL = "http://127.0.0.1:8642"
TIMEOUT = 60.0
"""Seconds that an answer may stand still."""
MAX_RETRIES = 5
FIRST_PAUSE = 0.4
"""Seconds: the ceiling of the first pause. Each further ceiling is twice as high."""
MAX_PAUSE = 10.0
BUSY = (429, 503)
_NOT_A_SERVER = "the answer isn't one of a sojourn server"


class Api:
    """The HTTP interface of one deployment: one server, or several of which one is active."""

    def __init__(
        self,
        urls: Sequence[str],
        token: str | None = None,
        ca: str | None = None,
        away: Callable[[], None] | None = None,
    ) -> None:
        """`urls` are `http://HOST:PORT` or `https://HOST:PORT`; `ca` is a PEM file to trust instead of the system's authorities.

        `away` is called where no server was found, before the call is made again. Raises `ValueError` for an address that is none.
        """
        self._away = away
        self._urls = [_checked(url) for url in urls]
        self._token = token
        self._tls = ssl.create_default_context(cafile=ca) if any(url.startswith("https:") for url in self._urls) else None
        self._lock = threading.Lock()
        self._current = 0

    @property
    def url(self) -> str:
        """The address that is asked now."""
        with self._lock:
            return self._urls[self._current]

    def move_to(self, url: str) -> None:
        """Asks at this address alone from now on, also in calls that are being made again."""
        with self._lock:
            self._urls, self._current = [_checked(url)], 0

    def get(self, path: str, **query: object) -> Any:
        """The JSON answer of a `GET`; `path` begins behind `/v1/`."""
        asked = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
        asked = {name: value for name, value in asked.items() if value is not None}
        return self.call("GET", path + ("?" + urlencode(asked) if asked else ""))

    def post(self, path: str, body: Mapping[str, object] | None = None) -> Any:
        """The JSON answer of a `POST`."""
        return self.call("POST", path, body)

    def call(self, method: str, path: str, body: Mapping[str, object] | None = None, retries: int = MAX_RETRIES) -> Any:
        """The JSON answer of one call.

        A call that finds no server, or a busy one, is made again up to `retries` times: the interface is idempotent, or the
        call carries a nonce. Raises `Refused` with the server's words, and `Unreachable`.
        """
        attempt = 0
        while True:
            url = self.url
            pause: float | None = None
            try:
                status, headers, text = self._once(url, method, path, body)
                if 200 <= status < 300:
                    return json.loads(text) if text else None
                failure: SojournError = _refusal(url, status, text)
                if status in BUSY:
                    pause = _retry_after(headers)
                elif status < 500:
                    raise failure
            except (OSError, http.client.HTTPException) as error:
                failure = Unreachable(url, str(error) or type(error).__name__)
                failure.__cause__ = error
            except json.JSONDecodeError as error:
                raise Unreachable(url, _NOT_A_SERVER) from error
            if attempt >= retries or (pause is not None and pause > MAX_PAUSE):
                raise failure
            self._turn_from(url)
            if self._away is not None and isinstance(failure, Unreachable):
                self._away()
            time.sleep(max(pause or 0.0, drawn_pause(attempt)))
            attempt += 1

    def _once(self, url: str, method: str, path: str, body: Mapping[str, object] | None) -> tuple[int, Message, bytes]:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT, context=self._tls)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT)
        headers = {PROTOCOL_HEADER: PROTOCOL, "Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, f"{parts.path.rstrip('/')}/v1/{path}", content, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def _turn_from(self, url: str) -> None:
        """Asks the next address from now on, unless another thread has turned from this one already."""
        with self._lock:
            if self._urls[self._current] == url:
                self._current = (self._current + 1) % len(self._urls)


def drawn_pause(attempt: int) -> float:
    """Seconds to pause after an attempt, counted from 0."""
    return random.uniform(0, min(FIRST_PAUSE * 2**attempt, MAX_PAUSE))


def part(name: object) -> str:
    """A part of a path."""
    return quote(str(name), safe="")


def _checked(url: str) -> str:
    url = url.strip().rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no address of a server, such as {DEFAULT_URL}")
    return url


def _refusal(url: str, status: int, text: bytes) -> SojournError:
    try:
        body = json.loads(text)
        return Refused(status, str(body["kind"]), str(body["message"]))
    except (ValueError, KeyError, TypeError):
        return Unreachable(url, f"{_NOT_A_SERVER}: status {status}")


def _retry_after(headers: Message) -> float | None:
    value = headers.get("Retry-After", "")
    return float(value) if value.isdigit() else None
