"""Figures of runs that paper.py and facts.py share: accuracies by epoch, their spread, and times of fleets."""

import statistics

from merging import mean_of

SUBSETS = 50
ALPHAS = ["alpha 0.7", "alpha 0.95", "alpha 0.999", "alpha e/(e+1)"]
CHANCE = 0.03  # what two accuracies on 2,000 images may differ by, by chance: twice the standard error of the difference
SERIAL, DEFAULT = "serial", "delayed-nesterov"
MORE, FEWER = "alpha e/(e+1), T = 8", "alpha e/(e+1), T = 1"


def percent(share):
    return f"{100 * share:.1f}"


def after(run, epochs):
    return next(point["value"] for point in run["curve"] if point["results"] == SUBSETS * epochs)


def ranges(run):
    """How far the accuracies of one epoch's versions lie apart, epoch by epoch: the largest less the smallest."""
    of_epoch = {}
    for point in run["curve"]:
        of_epoch.setdefault((point["results"] - 1) // SUBSETS, []).append(point["value"])
    return [max(values) - min(values) for _, values in sorted(of_epoch.items())]


def spread(run):
    """The mean of `ranges` over the second half of the epochs."""
    values = ranges(run)
    return statistics.mean(values[len(values) // 2 :])


def looks(run):
    """How often an epoch's versions are looked at."""
    return sum(1 for point in run["curve"] if point["results"] <= SUBSETS)


def has_tests(runs):
    """Were the versions evaluated on test images as well?"""
    return "test" in runs[SERIAL][0]["curve"][0]


def seeds(runs):
    count = len(runs[SERIAL])
    return f"{count} seed{'s' if count > 1 else ''}"


def minutes(runs):
    return mean_of(runs, lambda run: run["makespan"]) / 60


def ranked(runs, value):
    means = {alpha: mean_of(runs[alpha], value) for alpha in ALPHAS}
    return sorted(means.items(), key=lambda item: -item[1])


def in_words(ranks):
    return ", ".join(f"`{name}` {percent(value)} %" for name, value in ranks)


def fleets(slots):
    """Minutes of each seed, by case, cost of a result, P, and C with T."""
    times = {}
    for row, runs in slots.items():
        case, *varied = row.split(", ")
        of = dict(part.split(" ") for part in varied)
        fleet = f"C{of['count']}T{of['slots']}"
        key = case, float(of["assimilation"]), int(of["assimilators"]), fleet
        times[key] = [run["makespan"] / 60 for run in runs]
    return times


def code(name):
    return name if name == SERIAL else f"`{name}`"
