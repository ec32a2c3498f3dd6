#!/usr/bin/env python3
"""Writes examples/merging/PAPER.md and its charts: the experiment of the VC-ASGD paper, reduced in size.

`make -C examples paper` builds the programs and calls this. Every figure comes from a run; what a sentence claims is computed
beside it.
"""

import argparse
import statistics
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True  # a checkout stays as it is
from linechart import lines  # noqa: E402
from merging import FOLDER, ROOT, final, mean_of, result, table  # noqa: E402

DATA = ROOT / "examples" / "cifar10" / "cifar10-train.npz"
SUBSETS = 50
ALPHAS = ["alpha 0.7", "alpha 0.95", "alpha 0.999", "alpha e/(e+1)"]
CHANCE = 0.03  # what two accuracies on 2,000 images may differ by, by chance: twice the standard error of the difference
SERIAL, DEFAULT = "serial", "delayed-nesterov"
MORE, FEWER = "alpha e/(e+1), T = 8", "alpha e/(e+1), T = 1"
HEAD = """# The VC-ASGD paper's experiment, reduced in size

`make -C examples paper` writes this page, figures and tables; changes by hand are lost. The text is in `examples/scripts/paper.py`.

M. Atre, B. Jha and A. Rao, *Distributed Deep Learning Using Volunteer Computing-Like Paradigm* (2021, arXiv 2103.08894),
train a residual network on CIFAR-10 in 50 subsets, with P parameter servers, C clients and T subsets at a time in each.
A client returns W', which is merged when it arrives: W becomes alpha W + (1 - alpha) W', with a constant alpha or with
e/(e+1) in epoch e. Here that is `rule = "vc-asgd"`. The experiment is repeated with as much as two cores train in half an
hour:

| | the paper | here |
| --- | --- | --- |
| model | a residual network of 4,972,746 parameters | `resnet` of depth 11 and width 8: 76,794 |
| images | all of CIFAR-10 | 8,000 to train on, 2,000 others to compare by |
| subsets | 50 | 50, of 160 images: five batches of 32 |
| clients | machines of a cloud | C = 3 with T = 4 slots, in virtual time; a subset takes a minute, more or less (`noise = 0.2`) |
| optimiser | | Adam with a rate of 0.002; its state is zeroed with each merge (`"reset"`, the default) |

The server's own core decides the order of merges, its assimilators' rules merge, and every subset is really trained. With so
few epochs no model gets far: compare the shape of the curves, not their height.

```sh
ln -s PLACE/cifar10-train-10k.npz examples/cifar10/cifar10-train.npz   # `x`: uint8 [10000, 3, 32, 32], `y`: uint8 [10000]
make -C examples paper               # or one scenario: sojourn simulate examples/merging/cifar10.toml
```
"""


def told(options, file):
    """A scenario's runs by the names of its rows, seed after seed."""
    scenario = tomllib.loads(file.read_text(encoding="utf-8"))
    first, count = scenario["seed"], scenario.get("seeds", 1)
    run = lambda seed: result(options.sojourn.resolve(), file, seed, options.results)
    with ThreadPoolExecutor(options.jobs) as pool:
        seeds = list(pool.map(run, range(first, first + count)))
    runs = {}
    for cell in (cell for cells in seeds for cell in cells):
        runs.setdefault(cell["row"], []).extend(cell["runs"])
    return runs


def percent(share):
    return f"{100 * share:.1f}"


def after(run, epochs):
    return next(point["value"] for point in run["curve"] if point["results"] == SUBSETS * epochs)


def wobble(run):
    """How far a look lies from the middle of its neighbours, in the second half: a straight rise is none."""
    values = [point["value"] for point in run["curve"]]
    values = values[len(values) // 2 :]
    return statistics.mean(abs(at - (before + then) / 2) for before, at, then in zip(values, values[1:], values[2:]))


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


def code(name):
    return name if name == SERIAL else f"`{name}`"


def accuracy(runs, epochs):
    looks = sorted({1, 2, epochs // 2, epochs})
    rows = []
    for name, of in runs.items():
        shown = [percent(mean_of(of, lambda run, at=at: after(run, at))) for at in looks]
        if len(of) > 1:
            shown[-1] += f" ({', '.join(percent(final(run)) for run in of)})"
        staleness = f"{mean_of(of, lambda run: run['staleness']):.1f}"
        rows.append([code(name), *shown, percent(mean_of(of, wobble)), staleness, f"{minutes(of):.0f} min"])
    heads = [f"epoch {look}" for look in looks[:-1]] + [f"epoch {looks[-1]}" + (" (each seed)" if len(of) > 1 else "")]
    return table(["accuracy in % after", *heads, "wobble", "staleness", "time"], rows)


def over(runs, along):
    curves = {}
    for name, of in runs.items():
        points = zip(*(run["curve"] for run in of))
        curves[name] = [(mean_of(look, along), mean_of(look, lambda point: point["value"])) for look in points]
    return curves


def charts(runs, epochs):
    by_epoch = over(runs, lambda point: point["results"] / SUBSETS)
    rules = [name for name in runs if name not in ALPHAS or name == ranked(runs, final)[0][0]]
    panels = {
        "alpha": {name: by_epoch[name] for name in [*ALPHAS, SERIAL]},
        "the best alpha and others": {name: by_epoch[name] for name in rules},
    }
    most = max(y for curve in by_epoch.values() for _, y in curve)
    title = "Accuracy on images that nobody trains on, over epochs"
    (FOLDER / "paper.svg").write_text(lines(title, panels, "epochs", 0.1, most), encoding="utf-8")
    end = max(minutes(runs[name]) for name in ALPHAS)
    by_time = over(runs, lambda point: point["at"] / 60)
    by_time = {name: [(x, y) for x, y in by_time[name] if x <= end] for name in [*ALPHAS, SERIAL]}
    late = "The same over virtual minutes, until the fleet is done"
    (FOLDER / "paper-time.svg").write_text(lines(late, {"": by_time}, "minutes", 0.1, most), encoding="utf-8")
    return f"![{title}](paper.svg)\n\n![{late}](paper-time.svg)\n"


def learned(runs, epochs):
    return [
        "## Accuracy\n",
        f"`sojourn simulate examples/merging/cifar10.toml`, {seeds(runs)}, {epochs} epochs.\n",
        accuracy(runs, epochs),
        "Wobble: how far a look lies from the middle of its two neighbours, in points, the mean of the second half; versions "
        "are looked at twice in an epoch. Staleness: versions made between a result's base and its merge, the mean. Serial: "
        "one client with one slot, one subset after the other. T = 1 and T = 8 are of the same three clients.\n",
        charts(runs, epochs),
    ]


def fleets(slots):
    """Makespans by case, cost of a result, P, and C with T."""
    times = {}
    for row, runs in slots.items():
        case, *varied = row.split(", ")
        of = dict(part.split(" ") for part in varied)
        fleet = f"C{of['count']}T{of['slots']}"
        times[case, float(of["assimilation"]), int(of["assimilators"]), fleet] = minutes(runs)
    return times


def differs(times, case):
    """Does the number of assimilators make a difference?"""
    return any(times[case, cost, 1, fleet] != time for (of, cost, _, fleet), time in times.items() if of == case)


def threads(slots):
    times = fleets(slots)
    cases, costs, counts, places = (list(dict.fromkeys(key[n] for key in times)) for n in range(4))
    rows = [
        [f"{case}, {cost:g} s", f"P{count}", *(f"{times[case, cost, count, place]:.1f}" for place in places)]
        for case in cases
        for cost in costs
        for count in counts
    ]
    one, several = cases
    dear, cheap, few, many = costs[-1], costs[0], "C3T4", "C3T8"
    saved = lambda cost: 100 * (1 - times[one, cost, 1, many] / times[one, cost, 1, few])
    faster = times[several, dear, 1, many] / times[several, dear, max(counts), many]
    return [
        "## P assimilators, C clients, T slots\n",
        "`sojourn simulate examples/merging/slots.toml`: minutes that two epochs take where nothing is trained, by what one "
        "result takes of an assimilator (`server.assimilation`), and by how many of these there are. 1.29 s is what an update "
        "takes in the paper with MySQL, 0.06 s is this project's own limit; 6 s, a tenth of a subset, is there to show a slow assimilator.\n",
        table(["", "", *places], rows),
        f"With one trial P makes {'a' if differs(times, one) else 'no'} difference: each version is made from the one before, so "
        "the server's threads take the results of one trial one after the other, whichever is free. They help where there are "
        f"several trials: with four and {dear:g} s, {max(counts)} are {faster:.1f} times as fast as one at {many}. With {dear:g} s "
        f"the {2 * SUBSETS} results of one trial take {2 * SUBSETS * dear / 60:.0f} min whatever the fleet: from {few} to {many} "
        f"{saved(dear):.0f} % of the time is saved, and {saved(cheap):.0f} % with {cheap:g} s.\n",
        "Parameter servers that write to one store side by side (eventual consistency) are another design: an update may be "
        "made from a version that another has just replaced. That buys time by losing updates, and can't be replayed. It isn't "
        "offered here: what is done instead is to make a merge cheap. No run here shows what such losses cost.\n",
    ]


def beside(runs, slots, epochs):
    """What the paper says or asks, what is seen here, and if that agrees."""
    first, last = ranked(runs, lambda run: after(run, 1)), ranked(runs, final)
    best, early, merges = last[0][0], first[0][0], SUBSETS * epochs
    near = [f"`{name}`" for name, value in last[1:] if last[0][1] - value <= CHANCE] or ["none"]
    wobbles = ranked(runs, wobble)
    ahead = [
        mean_of(runs[SERIAL], lambda run, at=at: after(run, at)) > mean_of(runs[best], lambda run, at=at: after(run, at))
        for at in range(1, epochs + 1)
    ]
    end = minutes(runs[best]) * 60
    serial = [[point for point in run["curve"] if point["at"] <= end] for run in runs[SERIAL]]
    serial = [points[-1] for points in serial if points]
    done = mean_of(serial, lambda point: point["results"]) / SUBSETS if serial else 0
    reached = percent(mean_of(serial, lambda point: point["value"])) if serial else "-"
    rest = mean_of(runs["alpha 0.999"], final)
    used = mean_of(runs[best], lambda run: run["merged"])
    faster = minutes(runs[SERIAL]) / minutes(runs[best])
    rows = [
        [
            "abstract: a rule for clients that come and go, without waiting for each other",
            "in part",
            f"twelve slots are done {faster:.1f} times as soon as one, and {used:.0f} of {merges} results are used; clients that "
            "go are in [the comparison of the rules](README.md)",
        ],
        ["abstract: preemptible machines cost 70 to 90 % less", "not measured", "money isn't simulated"],
        ["which alpha learns most in the first epoch?", "", in_words(first)],
        [
            f"which is best after {epochs} epochs?",
            "",
            f"{in_words(last)}; not to be told from chance: {', '.join(near)}; after the first it was `{early}`",
        ],
        [
            "whose curve is the least steady?",
            "",
            "wobble, in points: " + ", ".join(f"`{name}` {percent(value)}" for name, value in wobbles),
        ],
        [
            "does 0.999 learn?",
            "",
            f"{percent(rest)} % after {epochs} epochs, where guessing gives 10.0: {merges} merges of a thousandth each go at "
            f"most {100 * (1 - 0.999**merges):.0f} % of the way to what clients have trained",
        ],
        ["is one client alone ahead, epoch by epoch?", "", f"of `{best}`, after {sum(ahead)} of {epochs} epochs"],
        [
            "and in equal time?",
            "",
            f"when the fleet is done, one client is at epoch {done:.1f} with {reached} %, "
            f"the fleet with `{best}` at {percent(last[0][1])} %",
        ],
        ["do more subsets at once (T) help?", "", slots_in_words(runs)],
        [
            "do more parameter servers (P) help?",
            "",
            ("one trial, too" if differs(fleets(slots), "one trial") else "not one trial, by design")
            + ": see the table above",
        ],
    ]
    return [
        "## Beside the paper\n",
        "Only the paper's abstract, and what this project's design took from it, were at hand when this was written. Findings of "
        "its pages aren't repeated from hearsay. A line with an empty middle column is a question that the paper's experiment "
        "asks; compare the answer with its curves.\n",
        table(["the paper says or asks", "", "here"], rows).replace("| --- | ---: | ---: |", "| --- | --- | --- |"),
    ]


def slots_in_words(runs):
    names = {FEWER: "T = 1", "alpha e/(e+1)": "T = 4", MORE: "T = 8"}
    values = {name: (minutes(runs[name]), mean_of(runs[name], final)) for name in names}
    words = [f"{names[name]}: {time:.0f} min, {percent(value)} %" for name, (time, value) in values.items()]
    lost = values[FEWER][1] - values[MORE][1]
    words = f"{'; '.join(words)} with `alpha e/(e+1)`"
    return f"in time, at the cost of accuracy: {words}" if lost > CHANCE else f"in time: {words}"


def conclusions(runs, epochs):
    best, value = ranked(runs, final)[0]
    rule = mean_of(runs[DEFAULT], final)
    return [
        "## What can be concluded, and what not\n",
        f"- After {epochs} epochs the default rule, `{DEFAULT}`, is at {percent(rule)} %, the best alpha (`{best}`) at "
        f"{percent(value)} %, one client alone at {percent(mean_of(runs[SERIAL], final))} %.\n"
        f"- {seeds(runs)}: two accuracies on 2,000 images may differ by {100 * CHANCE:.0f} points by chance alone.\n"
        "- A network 65 times smaller, a sixth of the images and few epochs: levels can't be compared with anybody's, and what a "
        "constant does late in a long training isn't seen here.\n",
    ]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sojourn", default=ROOT / "target" / "release" / "sojourn", type=Path)
    options.add_argument("--jobs", type=int, default=2, help="seeds at a time")
    options.add_argument("--results", type=Path, help="keep results in this folder, and take them from there")
    given = options.parse_args()
    if not DATA.exists():
        sys.exit(f"paper: put 10,000 images of CIFAR-10 at {DATA.relative_to(ROOT)}, as examples/merging/resnet.toml says")
    runs, slots = told(given, FOLDER / "cifar10.toml"), told(given, FOLDER / "slots.toml")
    epochs = runs[SERIAL][0]["curve"][-1]["results"] // SUBSETS
    parts = [learned(runs, epochs), threads(slots), beside(runs, slots, epochs), conclusions(runs, epochs)]
    text = "\n".join([HEAD, *("\n".join(paragraphs) for paragraphs in parts)])
    (FOLDER / "PAPER.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
