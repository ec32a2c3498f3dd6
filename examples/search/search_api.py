"""A job's search over HTTP, for programs that drive it. Standard library only; docs/search.md says what can be asked for.

SOJOURN_SERVER names the server, or several with commas between; SOJOURN_TOKEN_FILE a file with a token that may
submit; SOJOURN another program than `sojourn`.
"""

import http.client
import json
import os
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from itertools import cycle
from pathlib import Path

PROTOCOL = "3"  # `sojourn openapi` says the version
PAUSE = 0.5  # seconds between two calls
TIMEOUT = 30  # seconds that a call may take
WRONG_CALL = 2  # what `sojourn` exits with where trying again is no use


class Refused(Exception):
    """The server refused a request. `status` is 409 where the search is no longer as the program saw it."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def submitted(file):
    """The number of this file's job. A file that was submitted before is the same job, so that a program can start again."""
    command = [os.environ.get("SOJOURN", "sojourn"), "submit", str(file), "--json"]
    while True:
        done = subprocess.run(command, stdout=subprocess.PIPE)
        if done.returncode == 0:
            return json.loads(done.stdout)["job"]
        if done.returncode == WRONG_CALL:
            raise SystemExit(f"{file} can't be submitted")
        time.sleep(PAUSE)  # the server is away


class Search:
    """The search of a job."""

    def __init__(self, job):
        servers = os.environ.get("SOJOURN_SERVER", "http://127.0.0.1:8642").split(",")
        self.servers, self.path = cycle(servers), f"/v1/jobs/{job}/search"
        self.server = next(self.servers)
        token = Path(os.environ["SOJOURN_TOKEN_FILE"]).read_text().strip()
        self.headers = {"Authorization": f"Bearer {token}", "sojourn-protocol": PROTOCOL, "Content-Type": "application/json"}

    def view(self):
        """How far it is: its trials with their values."""
        return self.call()

    def change(self, **request):
        """Changes it: all that is asked for, or nothing. The nonce names the call: one that is repeated adds nothing twice."""
        return self.call(json.dumps({"nonce": uuid.uuid4().hex, **request}).encode())

    def call(self, body=None):
        """Asks until a server answers: one that is killed may start again."""
        while True:
            request = urllib.request.Request(self.server + self.path, body, self.headers)
            try:
                with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code < 500 and error.code != 429:
                    raise Refused(error.code, json.load(error)["message"]) from error
            except (OSError, http.client.HTTPException):
                self.server = next(self.servers)
            time.sleep(PAUSE)
