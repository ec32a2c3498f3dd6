#!/usr/bin/env python3
"""A trainer for Sojourn in numpy: the reference for whoever writes one in another framework.

    sojourn client --server URL --trainer examples/trainer/numpy_trainer.py

The client starts it, and the two speak JSON lines over stdin and stdout, one request at a time (`docs/internals/wire.md`,
"Trainer"). It trains and evaluates `mlp` without dropout and batch norm, on the CPU, and refuses everything else.
"""

import argparse
import hashlib
import json
import os
import queue
import resource
import sys
import threading
import time
from pathlib import Path

PROTOCOL = 7  # of the lines; a client of another version refuses us


def arguments(words):
    parser = argparse.ArgumentParser(description="Trains units that come as JSON lines on stdin; `sojourn client` starts it.")
    parser.add_argument("--threads", type=int, default=1, help="threads of each operation")
    parser.add_argument("--device", choices=["cpu"], default="cpu")
    return parser.parse_args(words)


if __name__ == "__main__":
    OPTIONS = arguments(sys.argv[1:])
    # Threads and instruction set change the order of sums, and so the bytes. The client pins the instruction set by the
    # variables of libtorch, of which one is taken here. Numpy reads its own when it is imported.
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(OPTIONS.threads)
    CORES = {"avx2": "Haswell", "avx512": "SkylakeX"}
    if core := CORES.get(os.environ.get("ATEN_CPU_CAPABILITY")):
        os.environ["OPENBLAS_CORETYPE"] = core

import exact  # noqa: E402
import mlp  # noqa: E402
import numpy as np  # noqa: E402
from mlp import F32, Failed, Model, Trial, fields  # noqa: E402
from units import Training, evaluate, predict  # noqa: E402

ENGINE = {"name": "numpy", "framework": f"numpy {np.__version__}", "models": ["mlp"]}
PROGRESS_EVERY = 0.2  # seconds
MIN_PAUSE = 0.002  # seconds: shorter pauses are added up
MAX_CREDIT = 0.5  # seconds of too long pauses that are made up for


# The process: one thread reads stdin, so that a message reaches a unit in the middle of its training; another one works.


class Control:
    """The client's messages: the pace, which holds from unit to unit, and those about one unit."""

    def __init__(self):
        self.changed = threading.Condition()
        self.pace = 100


class Messages:
    """Those about one unit; for a unit that has ended meanwhile they do nothing."""

    def __init__(self):
        self.stop, self.files = False, {}


class Listener:
    """Tells the client how far a unit is, and has the unit wait where the client wants that."""

    def __init__(self, control, messages):
        self.control, self.messages = control, messages
        self.told_at, self.owed = time.monotonic(), 0.0
        self.since = (time.monotonic(), time.thread_time())

    def is_stopped(self):
        return self.messages.stop

    def tell(self, update):
        say({"told": update})

    def progress(self, done, of):
        """After each batch. Waits as the pace says, and gives the seconds that were spent at pace 0."""
        update = {"progress": {"done": done, "of": of}}
        if time.monotonic() - self.told_at >= PROGRESS_EVERY:
            self.told_at = time.monotonic()
            self.tell(update)
        passed, worked = time.monotonic() - self.since[0], time.thread_time() - self.since[1]
        stood, is_told = 0.0, False
        with self.control.changed:
            pace = self.control.pace
            owed = worked * 100 / pace - passed if 0 < pace < 100 else 0.0
            self.owed = max(self.owed + owed, -MAX_CREDIT) if 0 < pace < 100 else 0.0
            while not self.messages.stop:
                began = time.monotonic()
                if self.control.pace == 0:
                    if not is_told:
                        is_told = True
                        self.tell(update)  # the server must know how far a unit is that stands still
                    self.control.changed.wait()
                    stood += time.monotonic() - began
                    self.owed = 0.0
                elif self.owed >= MIN_PAUSE:
                    self.control.changed.wait(self.owed)
                    self.owed = 0.0 if self.control.pace == 100 else self.owed - (time.monotonic() - began)
                else:
                    break
        self.since = (time.monotonic(), time.thread_time())
        return stood

    def file(self, digest):
        """The path of a shard that is still being fetched; none where the unit is to stop instead."""
        has_waited = False
        with self.control.changed:
            while not self.messages.stop:
                if digest in self.messages.files and (self.control.pace > 0 or not has_waited):
                    return self.messages.files[digest]
                if not has_waited:
                    has_waited = True
                    self.tell({"waits": digest})
                self.control.changed.wait()
        return None


LINES = sys.stdout
WRITING = threading.Lock()


def say(line):
    """Writes one line to the client. No number in it may be infinite or NaN: JSON has no words for them."""
    with WRITING:
        LINES.write(json.dumps(line, allow_nan=False) + "\n")
        LINES.flush()


def read_requests(requests, control):
    """Takes messages as they come, and queues requests. The end of stdin ends the process, in the middle of a unit too:
    a trainer must not outlive its client."""
    messages = Messages()
    for text in sys.stdin:
        try:
            request = json.loads(text)
        except ValueError:
            request = None
        with control.changed:
            if request == "stop":
                messages.stop = True
            elif isinstance(request, dict) and "pace" in request:
                control.pace = request["pace"]
            elif isinstance(request, dict) and "here" in request:
                messages.files[request["here"]["blob"]] = request["here"]["path"]
            else:
                messages = Messages()
                requests.put((request, messages))
            control.changed.notify_all()
    os._exit(0)


def answer(request, control, messages):
    """The line that ends a request. Whatever happens, there is one, and the trainer is ready for the next."""
    try:
        match request:
            case {"run": {"unit": {"train": _}} as run}:
                fields(run, "the request", "unit files output", "coming until keep_every")
                return {"trained": Training(run, Listener(control, messages)).result()}
            case {"run": {"unit": {"evaluate": _}} as run}:
                fields(run, "the request", "unit files output", "coming until keep_every")
                return {"evaluated": evaluate(run, Listener(control, messages))}
            case {"predict": prediction}:
                return {"predicted": predict(prediction)}
            case {"run": _}:
                raise Failed("unsupported", "this trainer doesn't know such units")
        raise Failed("trainer", "the request can't be understood")
    except Failed as failure:
        kind, message = failure.kind, str(failure)
    except MemoryError as error:
        kind, message = "out-of-memory", str(error)
    except Exception as error:  # noqa: BLE001: a unit that fails in another way is a failed unit, not the trainer's end
        kind, message = "trainer", f"{type(error).__name__}: {error}"
    return {"failed": {"kind": kind, "message": message}}


def count_memory_anew():
    """Linux: "5" takes what is resident now for the most that was."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        pass  # then it is the peak of the process


def peak_memory():
    """The most bytes that were resident since then."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def calibrate():
    """The numeric class, and floating-point operations per second: a small fixed model is trained on fixed numbers.

    Equal classes promise equal bytes, so the digest covers the framework's version as well as the numbers that it makes.
    """
    rows, features, outputs, hidden = 768, 256, 10, [256, 128]
    training = {
        "epochs": 1,
        "batch_size": 32,
        "loss": "cross-entropy",
        "optimizer": {"name": "adam", "lr": 1e-3, "momentum": 0, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 1e-4},
        "schedule": {"name": "constant", "warmup": 0, "every": 1, "gamma": 1, "floor": 0},
        "clip_norm": 1.0,
    }
    config = {"model": {"arch": "mlp", "hidden": hidden}, "training": training}
    context = {"config": config, "shape": [features], "outputs": outputs, "scaling": "none", "total_steps": 100}
    trial, seed = Trial(context), 1
    words = exact.stream(exact.derive("calibration", features), 0, exact.batches(rows * (features + 1), 16))
    x = ((words[: rows * features] >> np.uint32(8)) / F32(1 << 23) - 1).astype(F32).reshape(rows, features)
    y = (words[rows * features :][:rows] % outputs).astype(np.int64)
    model = Model(trial, trial.first_checkpoint(seed, dict(trial.first_weights(seed))))
    started = time.perf_counter()
    for step, at in enumerate(range(0, rows, 32)):
        out, inputs = model.forward(x[at : at + 32])
        model.backward(inputs, mlp.mean_loss(trial, out, y[at : at + 32])[1])
        mlp.update(trial.optimizer, trial.clip_norm, model.weights, model.gradient, model.state, step + 1, 1.0)
    seconds = time.perf_counter() - started
    position = {"epoch": 0, "shard": 0, "batch": 24, "step": 24}
    name = f"{ENGINE['name']}\0{ENGINE['framework']}\0".encode()
    # Two operations for each weight and row forward, and twice as many backward.
    flops = 3 * 2 * rows * sum(a * b for a, b in trial.layers) / seconds
    return hashlib.sha256(name + model.file(seed, position, 0)).hexdigest(), flops


def main(options):
    global LINES
    # Whatever else prints goes to the log, which is stderr: stdout is for lines alone.
    LINES = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    numeric_class, flops = calibrate()
    requests, control = queue.Queue(), Control()
    threading.Thread(target=read_requests, args=(requests, control), daemon=True).start()
    hello = {"protocol": PROTOCOL, "engine": ENGINE, "threads": options.threads, "numeric_class": numeric_class}
    say({"hello": {**hello, "flops": flops, "device": options.device}})
    while True:
        request, messages = requests.get()
        count_memory_anew()
        line = answer(request, control, messages)
        if "predicted" not in line:
            say({"told": {"peak": peak_memory()}})
        say(line)


if __name__ == "__main__":
    main(OPTIONS)
