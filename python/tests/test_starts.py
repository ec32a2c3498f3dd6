"""How tensors begin is recognised from how `setup` fills them."""

import math
import unittest

import torch
from torch import nn

from sojourn.starts import StartRecorder


def starts(make):
    """The starts of the tensors that `make` gives, a list."""
    recorder = StartRecorder()
    with recorder:
        tensors = make()
    return [recorder.start(tensor) for tensor in tensors]


class Starts(unittest.TestCase):
    def test_layers_of_pytorch_have_recipes(self):
        self.assertEqual(starts(lambda: nn.Linear(20, 3).parameters()), [{"fan_in": 20}] * 2)
        self.assertEqual(starts(lambda: nn.Conv2d(6, 4, 3, groups=2).parameters()), [{"fan_in": 27}] * 2)
        self.assertEqual(starts(lambda: nn.LSTM(3, 5).parameters()), [{"fan_in": 5}] * 4)
        self.assertEqual(starts(lambda: nn.Embedding(9, 4).parameters()), [{"normal": [0.0, 1.0]}])
        self.assertEqual(starts(lambda: nn.PReLU().parameters()), [{"constant": 0.25}])
        norm = starts(lambda: nn.BatchNorm1d(3).state_dict(keep_vars=True).values())
        self.assertEqual(norm, ["ones", "zeros", "zeros", "ones", "zeros"])

    def test_initialisers_have_recipes(self):
        def made(initialise, *arguments):
            return starts(lambda: [initialise(nn.Linear(8, 4).weight, *arguments)])[0]

        self.assertEqual(made(nn.init.normal_, 0.0, 0.02), {"normal": [0.0, 0.02]})
        self.assertEqual(made(nn.init.uniform_, -0.1, 0.3), {"uniform": [-0.1, 0.3]})
        self.assertEqual(made(nn.init.xavier_uniform_), {"fan_in": 2})
        self.assertEqual(made(nn.init.constant_, 0.5), {"constant": 0.5})
        self.assertEqual(made(nn.init.zeros_), "zeros")
        deviation = made(nn.init.kaiming_normal_)["normal"][1]
        self.assertAlmostEqual(deviation, math.sqrt(2 / 8))

    def test_scaled_fills_have_recipes(self):
        (start,) = starts(lambda: [nn.Parameter(torch.randn(4, 4) * 0.5 + 1.0)])
        self.assertEqual(start, {"normal": [1.0, 0.5]})
        (start,) = starts(lambda: [torch.rand(4, 4).sub_(0.5).mul_(2)])
        self.assertEqual(start, {"fan_in": 1})
        (start,) = starts(lambda: [torch.empty(4, 4).copy_(torch.rand(4, 4) / 2)])
        self.assertEqual(start, {"uniform": [0.0, 0.5]})

    def test_anything_else_is_given(self):
        self.assertEqual(starts(lambda: [nn.init.orthogonal_(torch.empty(4, 4))]), ["given"])
        self.assertEqual(starts(lambda: [nn.init.trunc_normal_(torch.empty(4, 4))]), ["given"])
        self.assertEqual(starts(lambda: [nn.Embedding(9, 4, padding_idx=0).weight]), ["given"])
        self.assertEqual(starts(lambda: [torch.tensor([1.0, 2.0])]), ["given"])
        self.assertEqual(starts(lambda: [torch.rand(4, 4)[:2]]), ["given"])
        self.assertEqual(starts(lambda: [torch.rand(4, 4).square_()]), ["given"])

    def test_numbers_that_were_written_unseen_are_given(self):
        def written():
            tensor = torch.rand(4, 4)
            tensor.numpy()[0, 0] = 5.0
            return [tensor]

        self.assertEqual(starts(written), ["given"])

    def test_numbers_that_are_loaded_are_given(self):
        other = nn.Linear(3, 3)

        def loaded():
            layer = nn.Linear(3, 3)
            layer.load_state_dict(other.state_dict())
            return [layer.weight]

        self.assertEqual(starts(loaded), ["given"])


if __name__ == "__main__":
    unittest.main()
