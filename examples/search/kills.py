"""Runs procedures.py while server and client are killed again and again, as by `kill -9`.

    SOJOURN=target/release/sojourn python3 examples/search/kills.py --seeds 2

Every search must end all the same, and its best trial be trained again to the same bytes. Server and client are this script's own,
in a folder for the time of the run; trainers are killed with their client.
"""

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = Path(shutil.which(os.environ.get("SOJOURN", "sojourn")) or "sojourn").absolute()
PROCEDURES = Path(__file__).with_name("procedures.py")


class Machines:
    """A server and a client with two slots in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.log = open(folder / "log", "w", encoding="utf-8")
        self.server = self.serve("127.0.0.1:0", stdout=subprocess.PIPE)
        self.address = re.search(r"http://(\S+)", self.server.stdout.readline()).group(1)
        self.client = self.join()

    def start(self, *arguments, **options):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SOJOURN_")}
        options = {"cwd": self.folder, "env": environment, "stderr": self.log, "stdout": self.log, "text": True, **options}
        return subprocess.Popen([PROGRAM, *arguments], **options)

    def serve(self, address, **options):
        return self.start("serve", "--data", "server", "--listen", address, **options)

    def join(self):
        server = f"http://{self.address}"
        return self.start("client", "--server", server, "--token-file", "server/enrol-token", "--data", "client", "--slots", "2")

    def kill_server(self):
        self.server.kill()
        self.server.wait()
        self.server = self.serve(self.address)

    def kill_client(self):
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.client.pid)], capture_output=True, text=True, check=False)
        self.client.kill()
        self.client.wait()
        for trainer in map(int, listed.stdout.split()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(trainer, signal.SIGKILL)
        self.client = self.join()

    def end(self):
        for process in (self.client, self.server):
            process.terminate()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from 1 on")
    parser.add_argument("--seconds", type=float, default=2.5, help="the longest time between two kills")
    arguments = parser.parse_args()
    chance, killed = random.Random(1), {"server": 0, "client": 0}
    with tempfile.TemporaryDirectory() as folder:
        machines = Machines(Path(folder))
        token = str(Path(folder) / "server" / "admin-token")
        environment = {**os.environ, "SOJOURN_SERVER": f"http://{machines.address}", "SOJOURN_TOKEN_FILE": token}
        command = [sys.executable, PROCEDURES, "--seeds", str(arguments.seeds), "--replay"]
        searches = subprocess.Popen(command, env=environment)
        while searches.poll() is None:
            time.sleep(chance.uniform(arguments.seconds / 4, arguments.seconds))
            which = chance.choice(["server", "client"])
            machines.kill_server() if which == "server" else machines.kill_client()
            killed[which] += 1
        machines.end()
    print(f"the server was killed {killed['server']} times, the client {killed['client']} times")
    return searches.returncode


if __name__ == "__main__":
    raise SystemExit(main())
