"""One hop of training in PyTorch's eager mode, as one would write it: for each line on stdin (a model, the
shape of a row, rows, batch, classes) one pass over as many rows, and rows a second on stdout.

`client/trainer/benches/hop.rs` runs it beside the trainer: the same models, one thread, Adam; losses and
hits are counted as there.
"""

import json
import sys
import time

import torch
from torch import nn


class Block(nn.Module):
    """A pre-activation bottleneck (see `Resnet` in `protocol/src/spec/architecture.rs`)."""

    def __init__(self, inputs, inner, outputs, stride, first):
        super().__init__()
        self.inside = nn.Sequential(
            nn.BatchNorm2d(inputs), nn.ReLU(), nn.Conv2d(inputs, inner, 1, stride),
            nn.BatchNorm2d(inner), nn.ReLU(), nn.Conv2d(inner, inner, 3, padding=1),
            nn.BatchNorm2d(inner), nn.ReLU(), nn.Conv2d(inner, outputs, 1),
        )
        self.skip = nn.Conv2d(inputs, outputs, 1, stride) if first else nn.Identity()

    def forward(self, x):
        return self.inside(x) + self.skip(x)


def mlp(inputs, hidden, classes):
    layers = []
    for units in hidden:
        layers += [nn.Linear(inputs, units), nn.ReLU()]
        inputs = units
    return [*layers, nn.Linear(inputs, classes)]


def cnn(shape, channels, classes):
    depth, height, width = shape
    layers = [nn.Unflatten(1, tuple(shape))]
    for outputs in channels:
        layers += [nn.Conv2d(depth, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        depth, height, width = outputs, height // 2, width // 2
    return [*layers, nn.Flatten(), nn.Linear(depth * height * width, classes)]


def resnet(shape, depth, width, classes):
    layers = [nn.Unflatten(1, tuple(shape)), nn.Conv2d(shape[0], width, 3, padding=1)]
    layers += [nn.BatchNorm2d(width), nn.ReLU()]
    inputs = width
    for stage in range(3):
        outputs = width * 4 * 2**stage
        inner = width if stage == 0 else outputs // 2
        for block in range((depth - 2) // 9):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(Block(inputs, inner, outputs, stride, block == 0))
            inputs = outputs
    layers += [nn.BatchNorm2d(inputs), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return [*layers, nn.Linear(inputs, classes)]


def network(model, shape, classes):
    if model["arch"] == "mlp":
        inputs = 1
        for side in shape:
            inputs *= side
        layers = mlp(inputs, model["hidden"], classes)
    elif model["arch"] == "cnn":
        layers = cnn(shape, model["channels"], classes)
    else:
        layers = resnet(shape, model["depth"], model["width"], classes)
    return nn.Sequential(*layers)


def turn(case):
    """Rows a second."""
    shape, rows, classes = case["shape"], case["rows"], case["classes"]
    features = 1
    for side in shape:
        features *= side
    torch.manual_seed(3)
    x, y = torch.rand(rows, features) - 0.5, torch.randint(classes, (rows,))
    order = torch.randperm(rows)
    model = network(case["model"], shape, classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses, hits = 0.0, 0
    started = time.perf_counter()
    for pick in order.split(case["batch"]):
        batch, labels = x[pick], y[pick]
        outputs = model(batch)
        loss = nn.functional.cross_entropy(outputs, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses += loss.item()
        hits += (outputs.argmax(1) == labels).sum().item()
    took = time.perf_counter() - started
    assert losses < float("inf") and hits <= rows
    return rows / took


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    print(json.dumps(torch.__version__), flush=True)
    for line in sys.stdin:
        print(json.dumps(turn(json.loads(line))), flush=True)
