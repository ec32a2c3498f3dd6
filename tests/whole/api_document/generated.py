"""Uses the client that openapi-python-client made: every operation has a function, and a job's seed arrives whole.

Arguments: the document, the folder around the package `client`, the server, a user's token, a job and its seed.
"""

import importlib
import json
import pathlib
import sys

from openapi_python_client.strings import PythonIdentifier

METHODS = {"get", "put", "post", "delete", "patch", "head"}


def operations(document):
    for path in document["paths"].values():
        for method, operation in path.items():
            if method in METHODS:
                yield operation


def function(folder, operation):
    """The module of an operation."""
    name = PythonIdentifier(operation["operationId"], "")
    found = list((folder / "client" / "api").glob(f"*/{name}.py"))
    assert len(found) == 1, f"`{operation['operationId']}` has {len(found)} functions"
    module = importlib.import_module(f"client.api.{found[0].parent.name}.{name}")
    assert callable(module.sync_detailed), name
    return module


def main():
    document, folder, server, token, job, seed = sys.argv[1:]
    document, folder = json.loads(pathlib.Path(document).read_text(encoding="utf-8")), pathlib.Path(folder)
    sys.path.insert(0, str(folder))
    modules = {of["operationId"]: function(folder, of) for of in operations(document)}
    client = importlib.import_module("client").AuthenticatedClient(base_url=server, token=token)
    with client:
        jobs = modules["jobs"].sync(client=client)
        assert [of.job for of in jobs] == [int(job)], jobs
        detail = modules["job"].sync(int(job), client=client)
        assert detail.spec.seed == seed, detail.spec.seed
        events = modules["events"].sync(int(job), client=client)
        submitted = [of for of in events if type(of).__name__ == "JobSubmittedEvent"]
        assert len(submitted) == 1 and submitted[0].event.spec.seed == seed, events
        nobody = modules["job"].sync(int(job) + 1, client=client)
        assert type(nobody).__name__ == "ApiError", nobody
    print(len(modules), "operations")


main()
