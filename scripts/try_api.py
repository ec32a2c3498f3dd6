#!/usr/bin/env python3
"""Tries a running server against the document that it gives of its API, with schemathesis: requests that the document allows
and requests that it doesn't, for every operation that one kind of token opens. Every answer must be one that the document has.

The token is in SOJOURN_TOKEN. The server should be one that nobody needs: jobs are cancelled, tokens and hosts revoked.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent
METHODS = {"get", "put", "post", "delete"}
LEFT_OUT = {
    "changes": "a stream that ends after an hour",
    "rotateServerToken": "it would take the token away with which the others are tried",
}


def operations(document, kind):
    """The operations that this kind of token opens, and those that are open to all."""
    for path in document["paths"].values():
        for method, about in path.items():
            if method not in METHODS or about["operationId"] in LEFT_OUT:
                continue
            security = about.get("security")
            if security is None or any(kind in one for one in security):
                yield about["operationId"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("server", help="the address of a server that nobody needs")
    parser.add_argument("kind", choices=["admin", "host"], help="the kind of the token")
    much = parser.add_mutually_exclusive_group(required=True)
    much.add_argument("--examples", type=int, help="requests for each operation and phase, from a fixed seed")
    much.add_argument("--seconds", type=int, help="goes on for so long, from another seed each time")
    given = parser.parse_args()
    address = f"{given.server}/v1/openapi.json"
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address) as answer:
        document = json.load(answer)
    names = list(operations(document, given.kind))
    command = [str(pathlib.Path(sys.executable).parent / "schemathesis")]
    command += ["--config-file", str(ROOT / "try_api.toml"), "run", address, "--checks", "all", "--continue-on-failure"]
    command += ["--header", f"Authorization: Bearer {os.environ['SOJOURN_TOKEN']}", "--no-color"]
    for name in names:
        command += ["--include-operation-id", name]
    if given.examples:
        command += ["--max-examples", str(given.examples), "--seed", "1", "--generation-deterministic"]
    else:
        command += ["--max-time", str(given.seconds)]
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "try_api_hooks", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    print(len(names), "operations with the token of a", given.kind, flush=True)
    sys.exit(subprocess.run(command, env=environment, check=False).returncode)


main()
