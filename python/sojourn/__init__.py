"""Sojourn from Python: searches, jobs and the machines that run them; and models of your own, exported as plain data.

    import sojourn

    search = sojourn.Search(sojourn.mlp(hidden=[64]), data="flowers.csv", label="species", epochs=10)
    job = search.run()
    print(job.best.values, job.best.metrics)

Names are imported when they are used: `from sojourn.torch import Task` and `python -m sojourn.export` load neither HTTP nor
child processes. docs/python.md is the page for users.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.job import Best as Best
    from sojourn.job import Job as Job
    from sojourn.job import Study as Study
    from sojourn.job import Trial as Trial
    from sojourn.job import ask_tell as ask_tell
    from sojourn.search import Data as Data
    from sojourn.search import Search as Search
    from sojourn.search import choice as choice
    from sojourn.search import cnn as cnn
    from sojourn.search import formula as formula
    from sojourn.search import graph as graph
    from sojourn.search import int_uniform as int_uniform
    from sojourn.search import log_int as log_int
    from sojourn.search import log_uniform as log_uniform
    from sojourn.search import mlp as mlp
    from sojourn.search import normal as normal
    from sojourn.search import resnet as resnet
    from sojourn.search import uniform as uniform
    from sojourn.server import CommandFailed as CommandFailed
    from sojourn.server import InvalidSearch as InvalidSearch
    from sojourn.server import JobFailed as JobFailed
    from sojourn.server import LocalServer as LocalServer
    from sojourn.server import Refused as Refused
    from sojourn.server import Server as Server
    from sojourn.server import SojournError as SojournError
    from sojourn.server import Unreachable as Unreachable
    from sojourn.server import connect as connect
    from sojourn.server import local as local

__version__ = "0.1.0"

_HOMES = {
    "job": ("Best", "Job", "Study", "Trial", "ask_tell"),
    "search": (
        "Data",
        "Search",
        "choice",
        "cnn",
        "formula",
        "graph",
        "int_uniform",
        "log_int",
        "log_uniform",
        "mlp",
        "normal",
        "resnet",
        "uniform",
    ),
    "server": (
        "CommandFailed",
        "InvalidSearch",
        "JobFailed",
        "LocalServer",
        "Refused",
        "Server",
        "SojournError",
        "Unreachable",
        "connect",
        "local",
    ),
}
"""The names of this package, by the subpackage that has them."""

_ADAPTERS = ("lightning", "transformers")
"""Modules that are imported when they are named: `sojourn.lightning.task(Net)`."""

# The command brings a copy of the exporter's modules for Pythons that lack this package. A Python that has it finds the rest
# of it behind that copy: a user's module may import `sojourn.Search` beside its models.
if not os.path.isdir(os.path.join(os.path.dirname(__file__), "search")):
    from pkgutil import extend_path

    __path__ = extend_path(__path__, __name__)


def __getattr__(name: str) -> object:
    if name in _ADAPTERS:
        return import_module(f"{__name__}.{name}")
    for subpackage, names in _HOMES.items():
        if name in names:
            value: object = getattr(import_module(f"{__name__}.{subpackage}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'sojourn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *(name for names in _HOMES.values() for name in names)})
