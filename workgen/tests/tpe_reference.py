#!/usr/bin/env python3
"""Writes tpe_reference.json: histories, places, and the logarithms of l / g there, from the formulas by scipy.

Ranges are in their own units here, and a value with steps has a probability and not a mean density: little of the Rust code's
scales is used. Run it in this folder with scipy installed; `src/search/tpe/tests.rs` compares.
"""

import json
import math
import random

from scipy.stats import norm, truncnorm

SPEC = """
name = "reference"
seed = 7
[data]
train = "t.csv"
label = "y"
shape = [1, 8, 8]
[[model]]
arch = "mlp"
hidden = { choice = [[64], [128, 64], []] }
dropout = { uniform = [0.1, 0.6] }
[[model]]
arch = "resnet"
depth = 11
width = { log_int = [4, 40] }
[training]
epochs = 9
batch_size = { int = [16, 64], step = 8 }
optimizer = { name = "sgd", lr = { log_uniform = [1e-4, 1.0] }, momentum = { normal = [0.9, 0.05], truncate = [0.7, 0.99] } }
[search]
method = "random"
trials = 100
metric = "valid/loss"
"""


# The most observations that count as good.
MOST_GOOD = 25


class Numbers:
    """Gaussians between two ends, of what `scale` makes of numbers; `cell` gives the part that is rounded to a value."""

    def __init__(self, low, high, scale=float, cell=None, centre=None):
        self.low, self.high, self.scale, self.cell = low, high, scale, cell
        self.centre = centre or scale
        self.length = high - low

    def between(self, mean, deviation):
        a, b = (self.low - mean) / deviation, (self.high - mean) / deviation
        return truncnorm(a, b, loc=mean, scale=deviation)

    def density(self, kernel, value):
        """Of a value that isn't rounded its density, else its probability."""
        if self.cell is None:
            return kernel.pdf(self.scale(value))
        low, high = self.cell(value)
        return kernel.cdf(high) - kernel.cdf(low)

    def prior_at(self, value):
        if self.cell is None:
            return 1 / (self.high - self.low)
        low, high = self.cell(value)
        return (high - low) / (self.high - self.low)

    def kernels(self, values, is_good, group_size):
        centres = sorted(self.centre(value) for value in values)
        count = len(centres)
        least = self.length / (min(2 * count + 2, 27) if is_good else min(count + 2, 50))

        def bandwidth(centre):
            if centres.count(centre) > 1:
                return least
            below = [centre - other for other in centres if other < centre]
            above = [other - centre for other in centres if other > centre]
            near = [min(gaps) for gaps in (below, above) if gaps] or [centre - self.low, self.high - centre]
            return min(max([*near, least]), self.length)

        def density(own, value):
            centre = self.centre(own)
            return self.density(self.between(centre, bandwidth(centre)), value)

        return density


class Categories:
    def __init__(self, values):
        self.values = values

    def prior_at(self, _):
        return 1 / len(self.values)

    def kernels(self, _, __, group_size):
        smooth, count = 2 / (group_size + 1), len(self.values)
        return lambda own, value: ((own == value) + smooth) / (1 + count * smooth)


SHARED = {
    "training.batch_size": Numbers(12, 68, cell=lambda v: (v - 4, v + 4)),
    "training.optimizer.lr": Numbers(math.log(1e-4), 0.0, scale=math.log),
    # Normal numbers by the share of their distribution that is below. The second has no ends: the test puts it into the job.
    "training.optimizer.momentum": Numbers(0, 1, scale=truncnorm(-4, 1.8, loc=0.9, scale=0.05).cdf),
    "training.optimizer.weight_decay": Numbers(0, 1, scale=norm(-2.0, 1.5).cdf),
}
TABLES = [
    SHARED
    | {
        "model[0].hidden": Categories([[64], [128, 64], []]),
        "model[0].dropout": Numbers(0.1, 0.6),
    },
    SHARED
    | {
        # A whole number has what lies from its logarithm up to the next one's.
        "model[1].width": Numbers(
            math.log(4),
            math.log(41),
            cell=lambda v: (math.log(v), math.log(v + 1)),
            centre=lambda v: (math.log(v) + math.log(v + 1)) / 2,
        ),
    },
]
MODELS = Categories([0, 1])


def density(group, is_good, model, choices):
    """Of a mixture of a kernel for each observation and the prior."""
    table = TABLES[model]
    kernels = {}
    for name, dimension in table.items():
        values = [own["choices"][name] for own in group if name in own["choices"]]
        kernels[name] = dimension.kernels(values, is_good, len(group))
    of_models = MODELS.kernels(None, None, len(group))
    total = MODELS.prior_at(model) * math.prod(d.prior_at(choices[n]) for n, d in table.items())
    for own in group:
        product = of_models(own["model"], model)
        for name, dimension in table.items():
            if name in own["choices"]:
                product *= kernels[name](own["choices"][name], choices[name])
            else:
                product *= dimension.prior_at(choices[name])
        total += product
    return total / (len(group) + 1)


def split(observations):
    """The loss is compared, so less is better."""
    finite = [own for own in observations if own.get("value") is not None]
    ended = [own for own in observations if own["outcome"] != "running"]
    finite.sort(key=lambda own: (-own["epochs"], own["value"]))
    good = finite[: min(math.ceil(len(ended) / 10), MOST_GOOD)]
    return good, [own for own in observations if not any(own is one for one in good)]


def draw(rng):
    model = rng.randrange(2)
    choices = {
        "training.batch_size": 16 + 8 * rng.randrange(7),
        "training.optimizer.lr": 10 ** rng.uniform(-4, 0),
        "training.optimizer.momentum": min(max(rng.gauss(0.9, 0.05), 0.7), 0.99),
        "training.optimizer.weight_decay": rng.gauss(-2.0, 1.5),
    }
    if model == 0:
        choices["model[0].hidden"] = rng.choice([[64], [128, 64], []])
        choices["model[0].dropout"] = rng.uniform(0.1, 0.6)
    else:
        choices["model[1].width"] = int(math.exp(rng.uniform(math.log(4), math.log(41))))
    return {"model": model, "choices": choices}


def history(rng, count):
    observations = []
    for number in range(count):
        own = draw(rng)
        own["outcome"] = "running" if number % 11 == 10 else "failed" if number % 13 == 12 else "ended"
        if own["outcome"] == "ended":
            own["epochs"] = rng.choice([1, 3, 9])
            own["value"] = abs(math.log10(own["choices"]["training.optimizer.lr"]) + 2) + rng.random() / 10
        observations.append(own)
    return observations


def main():
    rng = random.Random(1)
    histories = []
    for count in (0, 1, 2, 9, 40, 120):
        observations = history(rng, count)
        good, others = split(observations)
        places = [draw(rng) for _ in range(8)]
        for place in places:
            of = [density(group, group is good, place["model"], place["choices"]) for group in (good, others)]
            place["log_ratio"] = math.log(of[0]) - math.log(of[1])
        histories.append({"observations": observations, "places": places})
    with open("tpe_reference.json", "w", encoding="utf-8") as file:
        json.dump({"spec": SPEC, "histories": histories}, file, indent=0)
        file.write("\n")


if __name__ == "__main__":
    main()
