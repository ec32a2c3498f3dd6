"""The program that the command line runs: requests, answers, files."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import models
from sojourn.run_graph import Graph

HERE = Path(__file__).parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(HERE.parent)}

TASK = """
from torch import nn
from torch.nn import functional as F
from sojourn.torch import Task

class Small(Task):
    def setup(self, c, data):
        print("a print of the user's")
        self.net = nn.Linear(data.x.shape[0], c.width)
        if c.width > 8:
            nn.init.orthogonal_(self.net.weight)
        self.register_buffer("steps", F.one_hot(self.net.bias.long()), persistent=False)
        self.net.bias.data.mul_(0.5)

    def loss(self, batch):
        return self.net(batch.x).square().mean()

    def optimizer(self, c, data):
        raise AssertionError("never called")

class Broken(Small):
    def loss(self, batch):
        return self.missing
"""


def run(request, module="sojourn.export"):
    """Exit status, the lines of standard output, and the text of standard error."""
    command = [sys.executable, "-W", "ignore", "-m", module]
    done = subprocess.run(command, input=json.dumps(request), text=True, capture_output=True, env=ENVIRONMENT, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "model.py").write_text(TASK)

    def request(self, configs, entry="model.py:Small", output="a", data=None):
        (self.folder / output).mkdir(exist_ok=True)
        return {
            "folder": str(self.folder),
            "entry": entry,
            "operators": None,
            "data": data or models.flat(4, 3),
            "configs": configs,
            "output": str(self.folder / output),
        }

    def test_code_in_another_folder_than_the_job_has_lines_and_its_neighbours(self):
        (self.folder / "neighbour.py").write_text("SIZE = 3\n")
        (self.folder / "model.py").write_text("import neighbour\n" + TASK)
        request = {**self.request([{}], entry=f"{self.folder / 'model.py'}:Small"), "folder": str(self.folder / "a")}
        status, lines, errors = run(request)
        self.assertEqual(status, 0, errors)
        refused = lines[1]["refused"]
        self.assertEqual((refused["file"], refused["line"]), (str(self.folder / "model.py"), 10))

    def test_each_config_is_answered_in_order_and_equal_graphs_are_one_file(self):
        configs = [{"width": 2}, {"width": 16, "lr": 0.1}, {}, {"width": 16, "lr": 0.2}]
        status, lines, errors = run(self.request(configs))
        self.assertEqual(status, 0, errors)
        self.assertEqual(lines[0], {"starting": "importing torch"})
        self.assertEqual(lines[-1], {"done": True})
        answers = lines[1:-1]
        self.assertEqual([list(answer) for answer in answers], [["exported"], ["exported"], ["refused"], ["exported"]])
        self.assertEqual([next(iter(answer.values()))["index"] for answer in answers], [0, 1, 2, 3])
        self.assertEqual(answers[1]["exported"]["sha256"], answers[3]["exported"]["sha256"])
        self.assertEqual(len(list((self.folder / "a").iterdir())), 2)
        self.assertIn("c has no 'width'; it has nothing", answers[2]["refused"]["message"])
        self.assertEqual(answers[2]["refused"]["line"], 9)
        self.assertIn("a print of the user's", errors)
        self.assertIn("Small.optimizer is left aside", errors)

    def test_the_answer_describes_the_file(self):
        _, lines, _ = run(self.request([{"width": 16}]))
        answer = lines[1]["exported"]
        data = Path(answer["file"]).read_bytes()
        self.assertEqual(hashlib.sha256(data).hexdigest(), answer["sha256"])
        self.assertEqual(len(data), answer["bytes"])
        graph = Graph(data)
        kept = [tensor for tensor in graph.json["tensors"] if tensor["role"] != "constant"]
        self.assertEqual(answer["tensors"], kept)
        self.assertEqual([tensor["start"] for tensor in kept], ["given", {"fan_in": 16}])
        self.assertEqual((answer["parameters"], answer["flops_per_row"], answer["widest"]), (80, 128, 16))

    def test_all_numbers_are_in_the_file_where_that_is_asked_for(self):
        for initial, starts in [("given", ["given", "given"]), ("recipes", [{"fan_in": 4}, {"fan_in": 16}])]:
            _, lines, errors = run({**self.request([{"width": 2}, {"width": 2, "lr": 1}]), "initial": initial})
            first, second = (line["exported"] for line in lines[1:3])
            self.assertEqual(first["sha256"], second["sha256"], errors)
            self.assertEqual([tensor["start"] for tensor in first["tensors"]], starts)
            begun = []
            for seed in (1, 2):
                graph = Graph(Path(first["file"]).read_bytes())
                graph.begin(seed)
                begun.append([tensor.tolist() for tensor in graph.tensors.values()])
            self.assertEqual(begun[0] == begun[1], initial == "given")

    def test_another_process_gives_the_same_bytes(self):
        digests = []
        for output in ("a", "b"):
            for name in ("resnet50", "language_model", "captioner"):
                entry, config, data, _ = models.FIXTURES[name]
                request = self.request([config], f"models.py:{entry.__name__}", output, data)
                _, lines, errors = run({**request, "folder": str(HERE)})
                digests.append(lines[1]["exported"]["sha256"] if len(lines) > 1 else errors)
        self.assertEqual(digests[:3], digests[3:])

    def test_requests_that_cannot_be_are_told_why(self):
        for entry, words in [
            ("model.py:Smal", "has no Smal; it has Broken, Small"),
            ("modl.py:Small", "there is no file"),
            ("model.py", "names no class"),
        ]:
            status, lines, errors = run(self.request([{}], entry))
            self.assertEqual((status, len(lines)), (2, 1))
            self.assertIn(words, errors)
        status, _, errors = run({**self.request([{}]), "initial": "gven"})
        self.assertEqual((status, errors.strip()), (2, 'initial = "gven" is none of recipes, given'))

    def test_a_refusal_of_one_config_is_no_failure_of_the_program(self):
        status, lines, _ = run(self.request([{"width": 2}], "model.py:Broken"))
        self.assertEqual(status, 0)
        refused = lines[1]["refused"]
        self.assertEqual((refused["file"], refused["line"]), (str(self.folder / "model.py"), 23))


class Usage(unittest.TestCase):
    def call(self, module, *arguments):
        command = [sys.executable, "-m", module, *arguments]
        return subprocess.run(command, stdin=subprocess.DEVNULL, text=True, capture_output=True, env=ENVIRONMENT, check=False)

    def test_help_says_what_is_read_and_which_command_is_for_people(self):
        for module in ("sojourn.export", "sojourn.check"):
            done = self.call(module, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for words in (f"usage: python -m {module}", "standard input", "`sojourn check`"):
                self.assertIn(words, " ".join(done.stdout.split()))

    def test_unknown_arguments_are_refused(self):
        for module in ("sojourn.export", "sojourn.check"):
            done = self.call(module, "model.py:Cnn")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("unrecognized arguments: model.py:Cnn", done.stderr)
            self.assertIn(f"usage: python -m {module}", done.stderr)


if __name__ == "__main__":
    unittest.main()
