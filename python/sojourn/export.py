"""Exports tasks as graphs: the file format is described in docs/internals/graphs.md.

As a program, `python -m sojourn.export`, it reads one request from standard input and writes JSON lines: see `main`.
"""

import argparse
import hashlib
import importlib.util
import json
import logging
import os
import sys
import traceback
from pathlib import Path

TORCH = "2.11"
BAD_REQUEST = 2
INITIAL = ("recipes", "given")


class BadRequest(Exception):
    """The request itself can't be fulfilled, whatever the configuration."""


def main():
    """Exports each configuration of the request on standard input.

    The request: `folder` and `entry` (`model.py:Cnn`) name the user's code; `data` describes columns, `classes` and `rows`;
    `configs` has the values of each trial; `operators` are those that graphs may have (null: any); `initial` is `recipes` (also
    where it is missing), or `given` for graphs that begin with the numbers that `setup` leaves; files go into the folder `output`.

    Lines that are written: `starting`, then for each configuration `exported` or `refused`, then `done`. What the user's code
    prints goes to standard error.
    """
    parser("sojourn.export", "Exports each configuration of a request as a graph.").parse_args()
    return exit_status(export_all)


def parser(module, purpose):
    """The command line of a module of ours that is run as a program."""
    reads = "It reads the request, one JSON object, from standard input, and writes JSON lines to standard output."
    people = "The command for people is `sojourn check`."
    return argparse.ArgumentParser(f"python -m {module}", description=f"{purpose} {reads} {people}", allow_abbrev=False)


def export_all(answer):
    answer({"starting": "importing torch"})
    check_torch()
    request = read_request()
    entry = load_entry(request["folder"], request["entry"])
    answered = []
    for index, config in enumerate(request["configs"]):
        answer(answer_for(entry, request, index, config, answered))
    answer({"done": True})


def read_request():
    """The request on standard input, whose `folder` has the user's code: that of an entry's file which isn't in the request's."""
    request = json.load(sys.stdin)
    folder = Path(request["folder"]).resolve()
    file = (folder / request["entry"].partition(":")[0]).resolve()
    return request if folder in file.parents else {**request, "folder": str(file.parent)}


def initial_of(request):
    """The request's `initial`."""
    initial = request.get("initial", INITIAL[0])
    if initial not in INITIAL:
        raise BadRequest(f"initial = {json.dumps(initial)} is none of {', '.join(INITIAL)}")
    return initial


def exit_status(work):
    """Calls `work` with the function that answers. The exit status: `BAD_REQUEST` where the request itself is at fault."""
    answer = answers_apart_from_prints()
    try:
        work(answer)
    except BadRequest as error:
        print(error, file=sys.stderr)
        return BAD_REQUEST
    except (KeyError, json.JSONDecodeError) as error:
        print(f"the request lacks or garbles {error}", file=sys.stderr)
        return BAD_REQUEST
    return 0


def answers_apart_from_prints():
    """A function that writes a JSON line to what standard output was; all other prints go to standard error."""
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def answer(line):
        print(json.dumps(line, ensure_ascii=False), file=lines, flush=True)

    return answer


def check_torch():
    """Is PyTorch here, in the version whose operators the trainer has?"""
    how = f"install it: pip install torch=={TORCH}.0"
    try:
        import torch
    except ImportError as error:
        raise BadRequest(f"PyTorch can't be imported by {sys.executable} ({error}); {how}") from error
    if not torch.__version__.startswith(TORCH + "."):
        raise BadRequest(f"the trainer has the operators of PyTorch {TORCH}, and here is {torch.__version__}; {how}")
    logging.getLogger("torch").setLevel(logging.CRITICAL)


def load_entry(folder, entry):
    """The class or function that an entry (`model.py:Cnn`) names."""
    # Keras reads it when it is imported, which the user's file may do before anything of ours.
    os.environ.setdefault("KERAS_BACKEND", "torch")
    file, _, name = entry.partition(":")
    path = Path(folder) / file
    if not name:
        raise BadRequest(f'entry = "{entry}" names no class: write "{file}:NAME"')
    if path.suffix == "":
        path = path.with_suffix(".py")
    if not path.is_file():
        raise BadRequest(f"there is no file {path}")
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadRequest(f"{path} can't be imported:\n{traceback.format_exc()}") from error
    if not hasattr(module, name):
        there = ", ".join(sorted(key for key, value in vars(module).items() if callable(value) and key[0] != "_"))
        raise BadRequest(f"{path} has no {name}; it has {there or 'nothing that can be called'}")
    return getattr(module, name)


def answer_for(entry, request, index, config, answered):
    """The line for one configuration.

    `answered` has earlier ones, pairs of values and line. One that would be exported from the same values, such as one that
    differs in its learning rate alone, isn't exported again.
    """
    from sojourn.description import Values

    for values, line in answered:
        if values.read_same(config):
            ((kind, said),) = line.items()
            return {kind: {**said, "index": index}}
    values = Values("c", config)
    line = export_one(entry, request, index, values)
    answered.append((values, line))
    return line


def export_one(entry, request, index, values):
    """The line for one configuration; its file is written where it isn't there yet."""
    from sojourn.refusal import Refusal

    initial = initial_of(request)
    try:
        exported = export(entry, values, request["data"], request.get("operators"), request["folder"], initial)
    except Refusal as refusal:
        return {"refused": {"index": index, **refusal.to_json()}}
    except Exception as error:
        fault = Refusal(f"The exporter itself failed: {type(error).__name__}: {error}", detail=traceback.format_exc())
        return {"refused": {"index": index, **fault.to_json()}}
    digest = hashlib.sha256(exported.data).hexdigest()
    path = Path(request["output"]) / f"{digest}.safetensors"
    if not path.exists():
        partial = path.with_suffix(".partial")
        partial.write_bytes(exported.data)
        partial.replace(path)
    described = {"index": index, "file": str(path), "sha256": digest, "bytes": len(exported.data)}
    return {"exported": {**described, **exported.summary}}


def export(entry, config, data, operators=None, folder=None, initial="recipes"):
    """The graph of a task's class, or of a function that returns a Keras model.

    `config` has the trial's values, `data` describes the data as in requests, `operators` are the allowed ones (None: any),
    `folder` has the user's code, for places in refusals, `initial` is as in requests. Raises `Refusal`.
    """
    from sojourn import program

    return program.export_task(entry, config, data, operators, folder, initial)


if __name__ == "__main__":
    sys.exit(main())
