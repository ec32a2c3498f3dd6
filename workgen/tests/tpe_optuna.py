#!/usr/bin/env python3
"""Writes tpe_optuna.json: how good the best of 30 and of 60 trials of Optuna's TPESampler are on the objectives of
`workgen/benches/objectives`, as means and standard deviations over seeds.

Run it in this folder with Optuna 5, numpy and scipy installed. The sampler has its default settings. Functions and ranges are those of
`workgen/benches/objectives/functions.rs`; `points` has values of each, which a test compares.
"""

import argparse
import json
import math
import multiprocessing
import random
import statistics

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

CHECKS = [30, 60]
MODEL = "model"


def real(low, high):
    return FloatDistribution(low, high)


def log(low, high):
    return FloatDistribution(low, high, log=True)


def whole(low, high, step=1):
    return IntDistribution(low, high, step=step)


def log_whole(low, high):
    return IntDistribution(low, high, log=True)


def one_of(*values):
    return CategoricalDistribution(values)


def many(count, low, high):
    return {f"x{n}": real(low, high) for n in range(count)}


def vector(of):
    return [of[f"x{n}"] for n in range(len(of) - 1)]


def quadratic(of):
    return (math.log10(of["lr"]) + 2.3) ** 2 + 0.3 * (math.log10(of["decay"]) + 4) ** 2


def ackley(of):
    x = vector(of)
    squares = sum(v * v for v in x) / len(x)
    waves = sum(math.cos(2 * math.pi * v) for v in x) / len(x)
    return 20 - 20 * math.exp(-0.2 * math.sqrt(squares)) + math.e - math.exp(waves)


def rosenbrock(of):
    x = vector(of)
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in zip(x, x[1:]))


def branin(of):
    a, b = vector(of)
    c = b - 5.1 / (4 * math.pi**2) * a * a + 5 / math.pi * a - 6
    return c * c + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10


HARTMANN_WEIGHTS = [1.0, 1.2, 3.0, 3.2]
HARTMANN_A = [
    [10, 3, 17, 3.5, 1.7, 8],
    [0.05, 10, 17, 0.1, 8, 14],
    [3, 3.5, 1.7, 10, 17, 8],
    [17, 8, 0.05, 10, 0.1, 14],
]
HARTMANN_P = [
    [1312, 1696, 5569, 124, 8283, 5886],
    [2329, 4135, 8307, 3736, 1004, 9991],
    [2348, 1451, 3522, 2883, 3047, 6650],
    [4047, 8828, 8732, 5743, 1091, 381],
]


def hartmann(of):
    x = vector(of)
    total = 0.0
    for weight, scales, centre in zip(HARTMANN_WEIGHTS, HARTMANN_A, HARTMANN_P):
        away = sum(a * (v - p / 10_000) ** 2 for v, a, p in zip(x, scales, centre))
        total -= weight * math.exp(-away)
    return total


def styblinski_tang(of):
    return sum(v**4 - 16 * v * v + 5 * v for v in vector(of)) / 2


def category(of):
    """Each optimiser has a best learning rate of its own."""
    rate, more = {"sgd": (-1.0, 0.3), "adam": (-3.0, 0.0), "adamw": (-3.5, 0.15)}[of["optimizer"]]
    return (
        more
        + [0.3, 0.1, 0.0, 0.2][of["depth"]]
        + (math.log10(of["lr"]) - rate) ** 2
        + 0.1 * (math.log2(of["batch"]) - 6) ** 2
        + 50 * (of["momentum"] - 0.85) ** 2
        + 2e-4 * (of["warmup"] - 40) ** 2
    )


def tables(of):
    lr = math.log10(of["lr"])
    if of[MODEL] == 1:
        return (lr + 2) ** 2 + 0.3 * (math.log2(of["width"]) - 5) ** 2
    return 0.5 + (lr + 3) ** 2 + 4 * (of["dropout"] - 0.3) ** 2


def steps(of):
    return (
        0.05 * (of["layers"] - 7) ** 2
        + 0.002 * (of["width"] - 88) ** 2 / 8
        + 0.5 * abs(of["kernel"] - 5) * (of["layers"] + 3) / 10
        + 0.1 * (of["patience"] - 12) ** 2
        + 4 * (of["ratio"] - 0.65) ** 2
    )


def interaction(of):
    """Held out: a product of rate and batch matters, in logarithms."""
    lr, decay, eps = (math.log10(of[name]) for name in ("lr", "decay", "eps"))
    return (lr + decay + 5) ** 2 + 0.2 * (lr - decay - 1) ** 2 + 0.05 * abs(eps + 6) + 0.1 * abs(math.sin(4 * lr))


def three_tables(of):
    """Held out: three model tables, each with settings of its own, one of which is better by little."""
    lr = math.log10(of["lr"])
    if of[MODEL] == 0:
        return 0.4 + 0.5 * (lr + 1.5) ** 2 + 3 * (of["momentum"] - 0.8) ** 2
    if of[MODEL] == 1:
        return 0.15 + (lr + 3) ** 2 + 0.2 * (math.log2(of["width"]) - 6) ** 2 + (0 if of["norm"] else 0.3)
    return (lr + 3.3) ** 2 + 0.1 * (of["heads"] - 6) ** 2 + 4 * (of["dropout"] - 0.1) ** 2 + 0.3 * of["depth"] / 12


def noise(*numbers):
    """A number between -1 and 1, the same at the same place and random otherwise."""
    mixed = math.sin(sum((n + 1.7) * 12.9898 * v for n, v in enumerate(numbers))) * 43758.5453
    return 2 * (mixed - math.floor(mixed)) - 1


def noisy(of):
    x = vector(of)
    return sum((n + 1) * (v - 0.3) ** 2 for n, v in enumerate(x)) + 0.15 * noise(*x)


def mixed(of):
    """Held out: whole numbers, a category and numbers together."""
    bonus = {"relu": 0.2, "gelu": 0.0, "tanh": 0.5, "elu": 0.3, "silu": 0.05}[of["activation"]]
    units = of["layers"] * math.log2(of["width"])
    return (
        bonus
        + 0.004 * (units - 40) ** 2
        + (of["dropout"] - 0.04 * of["layers"]) ** 2 * 10
        + 0.02 * abs(of["seed_share"] - 30)
        + 0.3 * (math.log10(of["lr"]) + 2.5) ** 2
    )


def network(of):
    """Held out: a validation loss as networks have it. Rates that are too high diverge, more so with momentum and small batches."""
    rate = math.log10(of["lr"]) - math.log10(1 - of["momentum"]) - 0.5 * math.log10(of["batch"] / 64)
    capacity = math.log2(of["width"]) + of["layers"]
    fit = 0.3 * math.exp(-0.35 * (capacity - 5))
    overfit = 0.02 * max(0, capacity - 9 - 6 * of["dropout"] - 0.5 * (math.log10(of["decay"]) + 6)) ** 2
    slow = 0.25 * max(0, -2.0 - rate) ** 1.5
    diverged = 2.3 / (1 + math.exp(-8 * (rate + 0.3)))
    return 0.1 + fit + overfit + slow + diverged + 0.4 * of["dropout"] ** 2 + (0.1 if of["schedule"] == "constant" else 0.0)


def levy(of):
    w = [1 + (v - 1) / 4 for v in vector(of)]
    middle = sum((v - 1) ** 2 * (1 + 10 * math.sin(math.pi * v + 1) ** 2) for v in w[:-1])
    return math.sin(math.pi * w[0]) ** 2 + middle + (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)


def corner(of):
    """Held out: a slope down to a corner of the space, in eight dimensions of which four matter."""
    x = vector(of)
    return sum((n + 1) * abs(v - t) for n, (v, t) in enumerate(zip(x, (0.0, 1.0, 0.93, 0.5))))


# By objective: its function and the settings of each model table. The search was changed by these, not by those held out.
OBJECTIVES = {
    "quadratic": (quadratic, [{"lr": log(1e-5, 1.0), "decay": log(1e-6, 0.1)}]),
    "ackley-10": (ackley, [many(10, -10, 10)]),
    "rosenbrock-4": (rosenbrock, [many(4, -2, 2)]),
    "branin": (branin, [{"x0": real(-5, 10), "x1": real(0, 15)}]),
    "hartmann-6": (hartmann, [many(6, 0, 1)]),
    "styblinski-tang-5": (styblinski_tang, [many(5, -5, 5)]),
    "category": (
        category,
        [
            {
                "optimizer": one_of("sgd", "adam", "adamw"),
                "depth": one_of(0, 1, 2, 3),
                "batch": log_whole(8, 512),
                "lr": log(1e-5, 1.0),
                "momentum": real(0.0, 0.99),
                "warmup": whole(0, 100, 5),
            }
        ],
    ),
    "tables": (
        tables,
        [
            {"lr": log(1e-5, 1.0), "dropout": real(0.0, 0.9)},
            {"lr": log(1e-5, 1.0), "width": log_whole(4, 64)},
        ],
    ),
    "steps": (
        steps,
        [
            {
                "layers": whole(1, 16),
                "width": whole(8, 256, 8),
                "kernel": whole(1, 11, 2),
                "patience": whole(1, 20),
                "ratio": FloatDistribution(0.0, 1.0, step=0.05),
            }
        ],
    ),
}
HELD_OUT = {
    "interaction": (
        interaction,
        [{"lr": log(1e-5, 1.0), "decay": log(1e-6, 0.1), "eps": log(1e-10, 1e-3), "floor": real(0, 1)}],
    ),
    "three-tables": (
        three_tables,
        [
            {"lr": log(1e-5, 1.0), "momentum": real(0, 0.99)},
            {"lr": log(1e-5, 1.0), "width": log_whole(8, 512), "norm": one_of(False, True)},
            {"lr": log(1e-5, 1.0), "heads": whole(1, 12), "dropout": real(0, 0.6), "depth": whole(1, 12)},
        ],
    ),
    "noisy": (noisy, [many(4, -1, 1)]),
    "mixed": (
        mixed,
        [
            {
                "activation": one_of("relu", "gelu", "tanh", "elu", "silu"),
                "layers": whole(1, 12),
                "width": log_whole(8, 1024),
                "dropout": real(0, 0.7),
                "seed_share": whole(5, 95, 5),
                "lr": log(1e-5, 1.0),
            }
        ],
    ),
    "network": (
        network,
        [
            {
                "lr": log(1e-5, 1.0),
                "momentum": real(0, 0.99),
                "batch": log_whole(8, 512),
                "width": log_whole(8, 512),
                "layers": whole(1, 6),
                "dropout": real(0, 0.7),
                "decay": log(1e-6, 0.1),
                "schedule": one_of("constant", "cosine"),
            }
        ],
    ),
    "levy-6": (levy, [many(6, -10, 10)]),
    "corner-8": (corner, [many(8, 0, 1)]),
}
ALL = OBJECTIVES | HELD_OUT


def draw(trial, spaces):
    model = 0 if len(spaces) == 1 else trial.suggest_categorical(MODEL, range(len(spaces)))
    values = {MODEL: model}
    for name, of in spaces[model].items():
        values[name] = trial._suggest(name, of)
    return values


def study(job):
    """The best values of the first trials of one search."""
    name, seed = job
    function, spaces = ALL[name]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    search = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    search.optimize(lambda trial: function(draw(trial, spaces)), n_trials=CHECKS[-1])
    values = [trial.value for trial in search.trials]
    return [min(values[:count]) for count in CHECKS]


def points(name):
    """Random combinations and their values."""
    function, spaces = ALL[name]
    search = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    found = []
    for _ in range(4):
        values = draw(search.ask(), spaces)
        found.append({"values": values, "objective": function(values)})
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    report = {"optuna": optuna.__version__, "seeds": options.seeds, "trials": CHECKS, "objectives": {}}
    with multiprocessing.Pool(options.processes) as pool:
        for name in ALL:
            bests = pool.map(study, [(name, seed) for seed in range(options.seeds)], chunksize=5)
            columns = list(zip(*bests))
            report["objectives"][name] = {
                "held_out": name in HELD_OUT,
                "means": [statistics.mean(of) for of in columns],
                "deviations": [statistics.stdev(of) for of in columns],
                "points": points(name),
            }
            print(name, report["objectives"][name]["means"], flush=True)
            with open("tpe_optuna.json", "w", encoding="utf-8") as file:
                json.dump(report, file, indent=1)
                file.write("\n")


if __name__ == "__main__":
    main()
