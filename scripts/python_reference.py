#!/usr/bin/env python3
"""Writes docs/python-reference.md from the docstrings of the Python package, and its two tables of what there is beside it.

The source is read and not run, so nothing that the package needs has to be there. `--check` writes nothing, and fails where the page
is another one. `python/tests/sdk/test_reference.py` compares the tables with `sojourn help` and `sojourn openapi`.
"""

import ast
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # a checkout stays as it is
from python_reference_tables import COMMANDS, ENDPOINTS, MISSING_OPTIONS  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "sojourn"
PAGE = ROOT / "docs" / "python-reference.md"
WIDTH = 110
"""Characters of a signature that stands on one line."""

SECTIONS = [
    ("Searches", [("search/search.py", ["Search"]), ("search/data.py", ["Data"])]),
    ("Models", [("search/models.py", ["mlp", "cnn", "resnet", "graph"])]),
    ("Spaces", [("search/space.py", "choice uniform log_uniform int_uniform log_int normal formula Dimension".split())]),
    (
        "Jobs",
        [
            ("job/job.py", ["Job"]),
            ("job/best.py", ["Best"]),
            ("job/views.py", ["Status", "Trial", "Trials", "Point", "Curves", "CurveRow"]),
            ("job/later.py", ["LaterJob"]),
        ],
    ),
    ("Ask and tell", [("job/study.py", ["ask_tell", "Study", "Asked"])]),
    (
        "Servers",
        [
            ("server/server.py", ["connect", "Server"]),
            ("server/embedded.py", ["local", "LocalServer"]),
            ("server/api.py", ["Api"]),
        ],
    ),
    ("Errors", [("server/errors.py", "SojournError Refused Unreachable CommandFailed InvalidSearch Problem JobFailed".split())]),
    (
        "Adapters",
        [
            ("lightning.py", ["task"]),
            ("transformers.py", ["task"]),
            ("adapters/sklearn.py", ["SojournSearchCV"]),
            ("adapters/spaces.py", ["from_optuna", "from_ray", "to_optuna", "values_of", "params_of", "dimension_of"]),
        ],
    ),
]
"""The parts of the page, each with files of the package and the names that are described, in this order."""

TOP = ("search/", "job/", "server/")
"""Folders whose names are those of the package itself."""

INTRODUCTION = """# Python reference

All classes, functions and calls of the package `sojourn`, from its docstrings. [Searches from Python](python.md) is the page to read
first. Shapes are written `[rows, ...]`; times are in seconds, and epochs, trials and shards count from 0.

<!-- scripts/python_reference.py makes this page of the docstrings -->
"""


def page():
    """The text of the page."""
    parts = [INTRODUCTION]
    for title, files in SECTIONS:
        parts.append(f"## {title}\n")
        for file, names in files:
            parts += described(file, names)
    return "\n".join(parts + [commands(), endpoints()])


def described(file, names):
    """The entries of names of a file."""
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    found = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    home = "sojourn" if file.startswith(TOP) else "sojourn." + file.removesuffix(".py").replace("/", ".")
    for name in names:
        node = found[name]
        full = f"{home}.{name}" if home != "sojourn" or is_public(name) else name
        yield f"### `{full}`\n"
        yield from entry(node, full)


def is_public(name):
    """Is this a name of the package `sojourn` itself?"""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    return name in {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}


def entry(node, name):
    """A class with its members, or a function."""
    if isinstance(node, ast.FunctionDef):
        yield signature(name, node)
        yield text_of(node)
        return
    made = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    if made is not None:
        yield signature(name, made)
    yield text_of(node)
    if made is not None and ast.get_docstring(made):
        yield text_of(made)
    fields = [one for one in node.body if isinstance(one, ast.AnnAssign) and one.target.id[0] != "_"]
    if fields:
        yield "Fields: " + ", ".join(f"`{one.target.id}: {ast.unparse(one.annotation)}`" for one in fields) + ".\n"
    later = [one.targets[0].id for one in node.body if isinstance(one, ast.Assign) and ast.unparse(one.value).startswith("_later(")]
    if later:
        yield "As the calls of `Job`: " + ", ".join(f"`{one}`" for one in later) + ".\n"
    for member in node.body:
        if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)) and member.name[0] != "_" and ast.get_docstring(member):
            yield from method(member, name.rpartition(".")[2])


def method(node, owner):
    """A call or a property of a class, as an item of a list."""
    decorators = {ast.unparse(one) for one in node.decorator_list}
    if decorators & {"property", "cached_property"}:
        yield f"#### `{owner}.{node.name}`\n"
    else:
        yield f"#### `{owner}.{node.name}()`\n"
        yield signature(f"{owner.lower()}.{node.name}" if "classmethod" not in decorators else f"{owner}.{node.name}", node)
    yield text_of(node)


def signature(name, node):
    """A call as Python's code, with types; the first argument of a method is left out."""
    given = node.args
    arguments = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(arguments) - len(given.defaults)) + list(given.defaults)
    words = [argument(one, default) for one, default in zip(arguments, defaults) if one.arg not in ("self", "cls")]
    if given.vararg:
        words.append("*" + argument(given.vararg, None))
    elif given.kwonlyargs:
        words.append("*")
    words += [argument(one, default) for one, default in zip(given.kwonlyargs, given.kw_defaults)]
    if given.kwarg:
        words.append("**" + argument(given.kwarg, None))
    answer = f" -> {ast.unparse(node.returns)}" if node.returns is not None and node.name != "__init__" else ""
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    line = f"{prefix}{name}({', '.join(words)}){answer}"
    if len(line) > WIDTH:
        line = f"{prefix}{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){answer}"
    return f"```python\n{line}\n```\n"


def argument(node, default):
    kind = f": {ast.unparse(node.annotation)}" if node.annotation is not None else ""
    if default is None:
        return node.arg + kind
    value = ast.unparse(default).replace("'", '"')
    return f"{node.arg}{kind} = {value}" if kind else f"{node.arg}={value}"


def text_of(node):
    """A docstring as Markdown; links lead from the page."""
    text = ast.get_docstring(node) or ""
    return re.sub(r"\]\(docs/", "](", text) + "\n"


def table(head, rows):
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"


def commands():
    """Every command, with its call; and the options that no call has."""
    rows = [(f"[`{name}`](commands.md#sojourn-{name})", call or f"none: {why}") for name, (call, why) in COMMANDS.items()]
    return (
        "## Commands and calls\n\nEvery command of `sojourn`, with what does the same from Python.\n\n"
        + table(("command", "in Python"), rows)
        + "\nOptions of these commands that no call has:\n\n"
        + table(("option", "instead"), MISSING_OPTIONS)
    )


def endpoints():
    """Every operation of the HTTP interface for people, with its call."""
    rows = [(f"`{name}`", call) for name, call in ENDPOINTS.items() if call]
    others = ", ".join(f"`{name}`" for name, call in ENDPOINTS.items() if not call)
    return (
        "## The HTTP interface and calls\n\nEvery operation of the [HTTP interface](api.md), by its name in the OpenAPI document, with\n"
        "what asks for it from Python. `server.api` has the rights of the script's token.\n\n"
        + table(("operation", "in Python"), rows)
        + f"\nNo call has what clients, trainers, assimilators and autoscalers ask for: {others}.\n"
    )


def main():
    text = page()
    if "--check" in sys.argv[1:]:
        if PAGE.read_text(encoding="utf-8") != text:
            sys.exit(f"{PAGE.relative_to(ROOT)} is out of date: scripts/python_reference.py writes it")
    else:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
