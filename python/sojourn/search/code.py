"""The code of a user's model, in a file that the exporter can load.

A class or function of a module is exported from the module's own file. One of a package is imported by a file of one line. One
of `__main__` or of a notebook travels as a file with what it needs of its script: the imports, functions, classes and
assignments that it names, directly or by way of others, each on its own line. The rest of the script, which would run the search
again, stays out. A task that an adapter has made of such code is a file with that code and the adapter's call.
"""

from __future__ import annotations

import ast
import hashlib
import os
import symtable
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, ModuleType

from sojourn.search.models import TaskCode
from sojourn.wrapped import Wrapped

FOLDER = "models"
MADE = "SearchTask"
"""The name of a task that an adapter has made, in the file that travels."""


def entry_of(code: TaskCode, folder: Path) -> str:
    """The entry of a class or function, `FILE:NAME` with an absolute path; files are written into `folder`.

    Raises `ValueError` for code that has no name in its module, or whose source can't be found.
    """
    wrapped = getattr(code, "wrapped", None)
    if isinstance(wrapped, Wrapped):
        return _entry_of_wrapped(wrapped, folder)
    name = getattr(code, "__qualname__", type(code).__qualname__)
    if not name.isidentifier():
        raise ValueError(f"{name} can't be exported: define it at the top of a module or script, and give it a name")
    module = sys.modules.get(code.__module__)
    if module is None:
        raise ValueError(f"{name} is of the module {code.__module__}, which isn't loaded")
    file = getattr(module, "__file__", None)
    if module.__name__ == "__main__":
        return f"{_write(folder, *_of_main(name, module))}:{name}"
    if "." in module.__name__:
        text = f"from {module.__name__} import {name}\n"
        return f"{_write(folder, f'{name}.py', text)}:{name}"
    if file is None:
        raise ValueError(f"{name} is of the module {module.__name__}, which has no file")
    return f"{Path(file).absolute()}:{name}"


def _entry_of_wrapped(wrapped: Wrapped, folder: Path) -> str:
    """The entry of a task that an adapter has made: the user's code, if there is any, and the adapter's call below."""
    file, text = f"{MADE}.py", ""
    if wrapped.code is not None:
        name = wrapped.code.__name__
        module = sys.modules.get(wrapped.code.__module__)
        if not wrapped.code.__qualname__.isidentifier() or module is None:
            raise ValueError(f"{name} can't be exported: define it at the top of a module or script")
        if module.__name__ == "__main__":
            file, text = _of_main(name, module)
        else:
            text = f"from {module.__name__} import {name}\n"
    text += f"\n\nimport {wrapped.home}\n\n{MADE} = {wrapped.call(folder / FOLDER)}\n"
    return f"{_write(folder, file, text)}:{MADE}"


def file_of(code: TaskCode) -> str | None:
    """The file that the user knows the code by: lines of the one that travels are lines of this one. None in a notebook."""
    wrapped = getattr(code, "wrapped", None)
    if isinstance(wrapped, Wrapped):
        code = wrapped.code or code
    file = getattr(sys.modules.get(code.__module__), "__file__", None)
    return str(Path(file).absolute()) if file is not None else None


def search_path() -> str:
    """`PYTHONPATH` for the exporter: the folders from which this process imports, but for those of Python and its libraries."""
    own = {os.path.realpath(path) for path in sysconfig.get_paths().values()}
    folders = [os.path.abspath(path) for path in sys.path]
    kept = [path for path in folders if os.path.isdir(path) and os.path.realpath(path) not in own]
    return os.pathsep.join(dict.fromkeys(kept))


def needed(text: str, name: str, *, only_last: bool = False, running: int | None = None) -> str:
    """The lines of a module that a name needs, in their places; other lines are empty.

    `only_last`: of several definitions of a name the last one counts, as in a notebook whose cells were run again. `running`
    is the line that the module is at: its statement and those below haven't been run. Raises `ValueError` where the text
    doesn't define the name.
    """
    statements = [statement for statement in ast.parse(text).body if not _is_guard(statement)]
    if running is not None:
        statements = [statement for statement in statements if _lines(statement).stop <= running]
    binders: dict[str, list[ast.stmt]] = {}
    for statement in statements:
        for bound in _bound(statement):
            binders.setdefault(bound, []).append(statement)
    if name not in binders:
        raise ValueError(f"the source of {name} isn't found: define it in a file")
    kept = [statement for statement in statements if _is_always_needed(statement)]
    names, seen = [name], {name}
    while names:
        found = binders.get(names.pop(), [])
        for statement in found[-1:] if only_last else found:
            if statement not in kept:
                kept.append(statement)
                new = _named(statement) - seen
                seen |= new
                names.extend(sorted(new))
    lines = text.splitlines()
    numbers = {number for statement in kept for number in _lines(statement)}
    return "\n".join(line if number in numbers else "" for number, line in enumerate(lines, 1)).rstrip() + "\n"


def _of_main(name: str, module: ModuleType) -> tuple[str, str]:
    """A name for a file, and its text, of what is defined in the script or the notebook that runs."""
    file = getattr(module, "__file__", None)
    if file is not None:
        text = needed(Path(file).read_text(encoding="utf-8"), name, running=_line_of(module))
        return Path(file).with_suffix(".py").name, _with_file(text, str(Path(file).absolute()))
    cells = getattr(module, "In", None)
    if isinstance(cells, list):
        return "notebook.py", needed("\n".join(_cell(cell) for cell in cells), name, only_last=True)
    raise ValueError(f"{name} was typed in: Python keeps no source of it. Define it in a file or a notebook")


def _line_of(module: ModuleType) -> int | None:
    """The line that a module is at while it runs; None where it has been run, or runs in another thread."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and (frame.f_globals is not vars(module) or frame.f_code.co_name != "<module>"):
        frame = frame.f_back
    return frame.f_lineno if frame else None


def _cell(text: str) -> str:
    """A notebook's cell without its commands (`%time`, `!pip`); nothing of one that isn't Python alone."""
    lines = ["" if line.lstrip().startswith(("%", "!")) else line for line in text.splitlines()]
    plain = "\n".join(lines)
    try:
        ast.parse(plain)
    except SyntaxError:
        return "\n" * plain.count("\n")
    return plain


def _with_file(text: str, file: str) -> str:
    """The text with `__file__` as in the script, where that is named: code finds what lies beside the script."""
    if not any(isinstance(node, ast.Name) and node.id == "__file__" for node in ast.walk(ast.parse(text))):
        return text
    lines = text.splitlines()
    body = [statement for statement in ast.parse(text).body if not _is_future(statement)]
    first = body[0].lineno - 1
    assignment = f"__file__ = {file!r}"
    if first > 0 and not lines[first - 1].strip():
        lines[first - 1] = assignment
    else:
        lines.insert(first, assignment)
    return "\n".join(lines) + "\n"


def _is_guard(statement: ast.stmt) -> bool:
    """Is the statement `if __name__ == "__main__":`?"""
    return isinstance(statement, ast.If) and any(
        isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(statement.test)
    )


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _is_always_needed(statement: ast.stmt) -> bool:
    """Does the statement bind names that can't be seen, or change how the others are read?"""
    return isinstance(statement, ast.ImportFrom) and (_is_future(statement) or statement.names[0].name == "*")


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module defines, within `if`, `try`, `with` and loops too."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _named(statement: ast.stmt) -> set[str]:
    """The names of the module that a statement reads, and not those of variables within its functions."""
    return set(_read(symtable.symtable(ast.unparse(statement), "statement", "exec")))


def _read(scope: symtable.SymbolTable) -> Iterator[str]:
    # A class's body may read a name of the module that it then gives to an attribute: `size = size`.
    is_body = scope.get_type() in ("module", "class")
    for symbol in scope.get_symbols():
        if symbol.is_referenced() and (is_body or symbol.is_global()):
            yield symbol.get_name()
    for inner in scope.get_children():
        yield from _read(inner)


def _lines(statement: ast.stmt) -> range:
    """The lines of a statement, with its decorators."""
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
    return range(first, (statement.end_lineno or statement.lineno) + 1)


def _write(folder: Path, name: str, text: str) -> Path:
    """The file of this text, in a folder of its own by the text's digest."""
    path = folder / FOLDER / hashlib.sha256(f"{name}\n{text}".encode()).hexdigest()[:16] / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{name}.{os.getpid()}.partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    return path
