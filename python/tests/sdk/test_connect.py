"""Which server a script finds: the one that it names, that of the environment, or that of the machine."""

import subprocess
import unittest

from support import Site, environment, poll

from sojourn.server.program import program

ASK = """
import sojourn
from sojourn.server import current
try:
    server = current()
    print("FOUND", server.url, type(server).__name__, len(server.jobs()))
except sojourn.SojournError as error:
    print(type(error).__name__, error)
"""

CONNECT = """
import sys, sojourn
for arguments in (["http://127.0.0.1:9"], [URL, "wrong"], [URL, TOKEN], [URL]):
    try:
        print("CONNECTED", sojourn.connect(*arguments).health()["status"])
    except sojourn.SojournError as error:
        print(type(error).__name__, getattr(error, "kind", ""))
"""


class Servers(Site):
    def serve(self, *arguments):
        """Starts a server of this machine; its address and its data folder."""
        data = self.folder / ".local/share/sojourn/server"
        with open(self.folder / "serve.log", "ab") as log:
            command = [program(), "serve", "--listen", "127.0.0.1:0", *arguments]
            self.server = subprocess.Popen(command, env=environment(self.folder), cwd=self.folder, stdout=log, stderr=log)
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.kill)
        address = poll(lambda: (data / "address").read_text() if (data / "address").exists() else None)
        return f"http://{address.strip()}", data

    def test_the_server_of_the_machine_is_found_without_a_setting(self):
        url, _ = self.serve()
        self.assertEqual(self.ran(ASK).strip(), f"FOUND {url} Server 0")
        self.assertFalse((self.folder / ".sojourn").exists())

    def test_the_environment_goes_over_the_machine_and_a_killed_server_is_none(self):
        url, data = self.serve()
        (self.folder / "token").write_text((data / "admin-token").read_text())
        other = self.ran(ASK, SOJOURN_SERVER=url, SOJOURN_TOKEN_FILE=str(self.folder / "token"), SOJOURN_DATA="/nowhere")
        self.assertEqual(other.strip(), f"FOUND {url} Server 0")
        wrong = self.ran(ASK, "wrong.py", SOJOURN_SERVER=url, SOJOURN_TOKEN="wrong")
        self.assertIn("Refused", wrong)
        self.server.kill()
        self.server.wait()
        self.assertTrue((data / "address").exists())
        self.assertIn("LocalServer 0", self.ran(ASK, "alone.py"), "an address that a killed server has left is no server")

    def test_a_script_connects_with_its_token_or_the_machine_s(self):
        url, data = self.serve()
        token = (data / "admin-token").read_text().strip()
        said = self.ran(f"URL, TOKEN = {url!r}, {token!r}\n" + CONNECT)
        self.assertEqual(said.splitlines(), ["Unreachable ", "Refused unauthorized", "CONNECTED ready", "CONNECTED ready"])


if __name__ == "__main__":
    unittest.main()
