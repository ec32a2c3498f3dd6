"""Checks that a task and its graph train alike: `python -m sojourn.check` with a request as `sojourn.export` takes it.

The request has one configuration. Further keys: `rows` names a shard, such as a safetensors file with `x` and `y` (made-up rows
without it), `batch_size` (8), `threads` (1). Eight batches are trained three times from equal first numbers: by the user's code,
by the graph, and by the graph in two processes, cut after four batches. One JSON object is written:

- `repeatable`: true where all three end with the same bytes;
- `differs`: the first tensor that doesn't, and `between` what;
- `describes`: parameters, tensors and costs, as `sojourn.export` says them;
- `seconds_per_batch` and `peak_memory`, in bytes, of the user's code;
- or `refused`, why the task can't be a graph.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sojourn.export import check_torch, exit_status, export, initial_of, load_entry, parser, read_request

BATCHES = 8
CUT = 4
SEED = 7
CONTINUE = "--continue"


def main():
    arguments = parser("sojourn.check", "Checks that a task and its graph train alike.")
    arguments.add_argument(CONTINUE, dest="cut", type=Path, help=argparse.SUPPRESS)
    cut = arguments.parse_args().cut
    return exit_status(lambda answer: check_or_go_on(answer, cut))


def check_or_go_on(answer, cut):
    """Answers a request, or trains on from the file `cut`."""
    check_torch()
    if cut:
        go_on(cut)
    else:
        answer(check(read_request()))


def check(request):
    """The answer to a request."""
    import torch

    from sojourn import rows, run_graph
    from sojourn.refusal import Refusal
    from sojourn.tracing import of_trial

    torch.set_num_threads(request.get("threads", 1))
    entry = load_entry(request["folder"], request["entry"])
    config = request["configs"][0]
    data = of_trial(request["data"], config)
    try:
        exported = export(entry, config, data, request.get("operators"), request["folder"], initial_of(request))
    except Refusal as refusal:
        return {"refused": refusal.to_json()}
    graph = run_graph.Graph(exported.data)
    graph.begin(SEED)
    begin = {name: tensor.detach().clone() for name, tensor in graph.tensors.items()}
    parts = list(rows.batches(columns_of(request, data), request.get("batch_size", 8)))[:BATCHES]

    eager = Eager(entry, config, data, request["folder"])
    eager.load(begin)
    eager.task.train()
    started = time.monotonic()
    run_graph.train(eager.stages(), parts, SEED)
    seconds = (time.monotonic() - started) / len(parts)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    run_graph.train(graph.stages(), parts, SEED)
    cut = trained_in_two_processes(exported.data, begin, parts)
    answer = {"repeatable": True, "describes": exported.summary, "seconds_per_batch": seconds, "peak_memory": peak}
    for between, other in [("PyTorch and its graph", eager.tensors), ("a whole run and one that was cut", cut)]:
        name = first_difference(graph.tensors, other)
        if name:
            answer |= {"repeatable": False, "differs": {"tensor": name, "between": between}}
            break
    return answer


def columns_of(request, data):
    """The rows to train on: those of the request's file, or made-up ones; the last batch of them is smaller."""
    from sojourn import canonical, rows

    if request.get("rows"):
        return rows.of_shard(data, canonical.decode(Path(request["rows"]).read_bytes()))
    size = request.get("batch_size", 8)
    return rows.made_up(data, (BATCHES - 1) * size + (size + 1) // 2, SEED)


def first_difference(tensors, others):
    """The name of the first tensor whose bytes differ, or None."""
    from sojourn.canonical import tensor_bytes

    return next((name for name in tensors if tensor_bytes(tensors[name]) != tensor_bytes(others[name])), None)


def trained_in_two_processes(data, begin, parts):
    """The tensors after training on `parts`, the first four here and the others in a process of its own."""
    import torch

    from sojourn import run_graph

    graph = run_graph.Graph(data)
    graph.load(begin)
    _, states = run_graph.train(graph.stages(), parts[:CUT], SEED)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cut.pt"
        cut = {"graph": data, "tensors": graph.tensors, "states": states, "parts": parts, "threads": torch.get_num_threads()}
        torch.save(cut, file)
        subprocess.run([sys.executable, "-m", "sojourn.check", CONTINUE, str(file)], check=True)
        return torch.load(file)


def go_on(file):
    """Trains on what remains of a cut run, and puts the tensors into its file."""
    import torch

    from sojourn import run_graph

    cut = torch.load(file)
    torch.set_num_threads(cut["threads"])
    graph = run_graph.Graph(cut["graph"])
    graph.load(cut["tensors"])
    run_graph.train(graph.stages(), cut["parts"][CUT:], SEED, first=CUT, states=cut["states"])
    torch.save({name: tensor.detach() for name, tensor in graph.tensors.items()}, file)


class Eager:
    """A task that PyTorch itself computes. `tensors` has its parameters and buffers by name."""

    def __init__(self, entry, config, data, folder):
        from sojourn.model import Model
        from sojourn.program import set_up, task_class
        from sojourn.tracing import of_trial

        self.data = of_trial(data, config)
        self.task, recorder = set_up(task_class(entry), config, self.data, folder)
        self.model = Model(self.task, recorder.start)
        self.tensors = self.model.tensors

    def load(self, tensors):
        """Takes numbers from tensors by name."""
        for name, tensor in tensors.items():
            self.tensors[name].detach().copy_(tensor)

    def stages(self):
        """As `run_graph.Graph.stages`."""
        from sojourn.program import moved_by

        for stage in self.task.stages or [None]:
            method = "loss" if stage is None else f"loss_{stage}"
            yield self.computed(method), [self.tensors[name] for name in moved_by(self.task, self.model, stage)]

    def computed(self, method):
        """A method of the task as a function of a batch's columns."""
        from sojourn.tracing import batch_of

        return lambda columns: getattr(self.task, method)(batch_of(self.data, columns))


if __name__ == "__main__":
    sys.exit(main())
