"""What can't be a graph is refused, with the line of the user's code and words that say what to do."""

import unittest
from pathlib import Path

import models
import refused
from sojourn.export import export
from sojourn.nodes import NodeList
from sojourn.refusal import Refusal

DATA = models.flat(4, 3)
CONFIG = {"width": 3}
OPERATORS = ["aten.linear.default", "aten.cross_entropy_loss.default", "aten.sum.default", "aten.mul.Tensor", "aten.add.Tensor"]
MARK = "# refused: "


def marked_line(name):
    """The line of a class of `refused.py` that has the mark, and the words after it; None without one."""
    lines = Path(refused.__file__).read_text().splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith(f"class {name}("))
    for number, line in enumerate(lines[begin + 1 :], begin + 2):
        if line.startswith("class "):
            return None
        if MARK in line:
            return number, line.split(MARK)[1]
    return None


class Refusals(unittest.TestCase):
    def refusal(self, name):
        folder = Path(refused.__file__).parent
        with self.assertRaises(Refusal) as caught:
            export(getattr(refused, name), CONFIG, DATA, OPERATORS, folder)
        return caught.exception

    def test_the_line_and_the_reason_are_named(self):
        tasks = [name for name, value in vars(refused).items() if isinstance(value, type) and issubclass(value, refused.Linear)]
        names = [name for name in tasks if marked_line(name)]
        self.assertEqual(len(names), 21)
        for name in names:
            with self.subTest(name):
                refusal, (line, words) = self.refusal(name), marked_line(name)
                self.assertIn(words, refusal.message)
                self.assertEqual((Path(refusal.file).name, refusal.line), ("refused.py", line))
                self.assertLess(len(refusal.message), 200)

    def test_tensors_that_a_graph_cannot_have_are_named(self):
        self.assertIn("net.weight is torch.float64", self.refusal("Double").message)
        self.assertIn("no parameters", self.refusal("Empty").message)
        self.assertIn("evaluate changes seen", self.refusal("MovesBuffersInEvaluation").message)
        self.assertIn("changes the parameter net.weight", self.refusal("MovesParameters").message)

    def test_what_is_no_task_is_refused(self):
        with self.assertRaises(Refusal) as caught:
            export(NodeList, CONFIG, DATA)
        self.assertIn("no Task", caught.exception.message)

    def test_without_a_list_of_operators_any_may_be(self):
        exported = export(refused.UnknownOperator, CONFIG, DATA)
        self.assertGreater(exported.summary["nodes"], 3)


if __name__ == "__main__":
    unittest.main()
