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
import kept  # noqa: E402
from curves import ALPHAS, CHANCE, DEFAULT, SERIAL, SUBSETS, after, code, fleets, has_tests, looks, minutes, percent, ranked, seeds, spread  # noqa: E402
from facts import beside  # noqa: E402
from linechart import lines  # noqa: E402
from merging import FOLDER, ROOT, final, mean_of, result, table  # noqa: E402

DATA = [ROOT / "examples" / "cifar10" / f"cifar10-{part}.npz" for part in ("train", "test")]
HEAD = """# The VC-ASGD paper's experiment, reduced in size

{mark}

`make -C examples paper` runs the scenarios, keeps their [results](results/paper) and writes this page from them, figures and tables; changes by
hand are lost. The text is in `examples/scripts/paper.py`.{notes}

M. Atre, B. Jha and A. Rao, *Distributed Deep Learning Using Volunteer Computing-Like Paradigm* (2021, arXiv 2103.08894),
train a residual network on CIFAR-10 in 50 subsets, with P parameter servers, C clients and T subsets at a time in each.
A client returns W', which is merged when it arrives: W becomes alpha W + (1 - alpha) W', with a constant alpha or with
e/(e+1) in epoch e. Here that is `rule = "vc-asgd"`. The experiment is repeated with as much as two cores train in half an
hour:

| | the paper | here |
| --- | --- | --- |
| model | a residual network of 4,972,746 parameters | `resnet` of depth 11 and width 8: 76,794 |
| images | all of CIFAR-10 | 8,000 to train on, 2,000 others to compare by{tests} |
| subsets | 50 | 50, of 160 images: five batches of 32 |
| clients | machines of a cloud | C = 3 with T = 4 slots, in virtual time; a subset takes a minute, more or less (`noise = 0.2`) |
| optimiser | Adam with a rate of 0.001 (section IV.A) | Adam with a rate of 0.002; its state is zeroed with each merge (`"reset"`, the default) |

The server's own core decides the order of merges, its assimilators' rules merge, and every subset is really trained. With so
few epochs no model gets far: compare the shape of the curves, not their height.

```sh
ln -s PLACE/cifar10-train-10k.npz examples/cifar10/cifar10-train.npz   # `x`: uint8 [10000, 3, 32, 32], `y`: uint8 [10000]
ln -s PLACE/cifar10-test-2k.npz examples/cifar10/cifar10-test.npz      # 2,000 of the test images, likewise
make -C examples paper               # or one scenario: sojourn simulate examples/merging/cifar10.toml
```
"""


def told(options, file, seeds=None, settings=()):
    """A scenario's runs by the names of its rows, seed after seed."""
    scenario = tomllib.loads(file.read_text(encoding="utf-8"))
    first, count = scenario["seed"], seeds or scenario.get("seeds", 1)
    run = lambda seed: result(options.sojourn.resolve(), file, seed, options.results, settings)
    with ThreadPoolExecutor(options.jobs) as pool:
        cells = [cell for cells in pool.map(run, range(first, first + count)) for cell in cells]
    runs = {}
    for cell in cells:
        runs.setdefault(cell["row"], []).extend(cell["runs"])
    return runs


def head(runs, results):
    """The top of the page, with what the runs measured."""
    tests = ", and 2,000 of the test images" if has_tests(runs) else ""
    return HEAD.replace("{mark}", kept.mark("paper.py", "results/paper")).replace("{notes}", kept.notes(results)).replace("{tests}", tests)


def accuracy(runs, epochs):
    looks = sorted({1, 2, epochs // 2, epochs})
    rows = []
    for name, of in runs.items():
        shown = [percent(mean_of(of, lambda run, at=at: after(run, at))) for at in looks]
        if len(of) > 1:
            shown[-1] += f" ({', '.join(percent(final(run)) for run in of)})"
        staleness = f"{mean_of(of, lambda run: run['staleness']):.1f}"
        rows.append([code(name), *shown, percent(mean_of(of, spread)), staleness, f"{minutes(of):.0f} min"])
    heads = [f"epoch {look}" for look in looks[:-1]] + [f"epoch {looks[-1]}" + (" (each seed)" if len(of) > 1 else "")]
    return table(["accuracy in % after", *heads, "spread", "staleness", "time"], rows)


def over(runs, along):
    curves = {}
    for name, of in runs.items():
        points = zip(*(run["curve"] for run in of))
        curves[name] = [(mean_of(look, along), mean_of(look, lambda point: point["value"])) for look in points]
    return curves


def charts(runs, to):
    by_epoch = over(runs, lambda point: point["results"] / SUBSETS)
    rules = [name for name in runs if name not in ALPHAS or name == ranked(runs, final)[0][0]]
    panels = {
        "alpha": {name: by_epoch[name] for name in [*ALPHAS, SERIAL]},
        "the best alpha and others": {name: by_epoch[name] for name in rules},
    }
    most = max(y for curve in by_epoch.values() for _, y in curve)
    title = "Accuracy on images that nobody trains on, over epochs"
    (to / "paper.svg").write_text(lines(title, panels, "epochs", 0.1, most), encoding="utf-8")
    end = max(minutes(runs[name]) for name in ALPHAS)
    by_time = over(runs, lambda point: point["at"] / 60)
    by_time = {name: [(x, y) for x, y in by_time[name] if x <= end] for name in [*ALPHAS, SERIAL]}
    late = "The same over virtual minutes, until the fleet is done"
    (to / "paper-time.svg").write_text(lines(late, {"": by_time}, "minutes", 0.1, most), encoding="utf-8")
    return f"![{title}](paper.svg)\n\n![{late}](paper-time.svg)\n"


def learned(runs, epochs, to):
    return [
        "## Accuracy\n",
        f"`sojourn simulate examples/merging/cifar10.toml`, {seeds(runs)}, {epochs} epochs, policy `rollout` (the default), "
        "`reproducible = false`. On the 2,000 images that were held back from training.\n",
        accuracy(runs, epochs),
        f"Spread: the largest less the smallest accuracy of one epoch's versions, in points, of which {looks(runs[SERIAL][0])} are "
        f"looked at; the mean of the second half of the epochs. Staleness: versions made between a result's base and its merge, the "
        "mean. Serial: one client with one slot, one subset after the other. T = 1 and T = 8 are of the same three clients.\n",
        charts(runs, to),
    ]


def threads(slots):
    times = {key: statistics.mean(values) for key, values in fleets(slots).items()}
    cases, costs, counts, places = (list(dict.fromkeys(key[n] for key in times)) for n in range(4))
    rows = []
    for case in cases:
        for cost in costs:
            lines = {count: [f"{times[case, cost, count, place]:.1f}" for place in places] for count in counts}
            if len(set(map(tuple, lines.values()))) == 1:
                lines = {f"{counts[0]} to {counts[-1]}": lines[counts[0]]}
            rows += [[f"{case}, {cost:g} s", f"P{count}", *line] for count, line in lines.items()]
    one, several = cases[0], cases[-1]
    dear, cheap, few, many = costs[-1], costs[0], "C3T4", "C3T8"
    saved = lambda cost: 100 * (1 - times[one, cost, 1, many] / times[one, cost, 1, few])
    faster = times[several, dear, 1, many] / times[several, dear, max(counts), many]
    count = len(next(iter(slots.values())))
    return [
        "## P assimilators, C clients, T slots\n",
        f"`sojourn simulate examples/merging/slots.toml`, {count} seeds, policy `rollout` (the default), `reproducible = false`: minutes "
        "that two epochs take where nothing is trained, the mean. They depend on what one result takes of an assimilator "
        "(`server.assimilation`), and on how many of these there are. 1.29 s is what an update takes in the paper with MySQL, 0.06 s "
        "is this project's own limit; 6 s, a tenth of a subset, is there to show a slow assimilator.\n",
        "Where nothing else is said, each slot has a core of its own. With `cores = 4` more slots than four share four cores: n of them "
        "run at 4 / n of their speed, and with `contention = 0.25` at (4 / n) / (1 + 0.25 (n / 4 - 1)). So eight slots take "
        "a quarter longer than four for the same work. That number was chosen here; the paper gives none.\n",
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


def differs(times, case):
    """Does the number of assimilators make a difference?"""
    return any(times[case, cost, 1, fleet] != time for (of, cost, _, fleet), time in times.items() if of == case)


def conclusions(runs, epochs):
    best, value = ranked(runs, final)[0]
    rule = mean_of(runs[DEFAULT], final)
    return [
        "## What can be concluded, and what not\n",
        f"- After {epochs} epochs `{DEFAULT}`, the default before `adasum`, is at {percent(rule)} %, the best alpha (`{best}`) at "
        f"{percent(value)} %, one client alone at {percent(mean_of(runs[SERIAL], final))} %.\n"
        f"- {seeds(runs)}: two accuracies on 2,000 images may differ by {100 * CHANCE:.0f} points by chance alone.\n"
        "- A network 65 times smaller, a sixth of the images and few epochs: levels can't be compared with anybody's, and what a "
        "constant does late in a long training isn't seen here.\n",
    ]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sojourn", default=ROOT / "target" / "release" / "sojourn", type=Path)
    options.add_argument("--jobs", type=int, default=2, help="seeds at a time")
    kept.options(options, FOLDER, "results/paper")
    options.add_argument("--seeds", type=int, help="of what is really trained, instead of the file's number")
    options.add_argument("--epochs", type=int, help="of what is really trained, instead of the file's number")
    options.add_argument("--curve", type=int, help="look at every so many results of what is really trained")
    given = options.parse_args()
    missing = [str(file.relative_to(ROOT)) for file in DATA if not file.exists()]
    if missing and not any(given.results.glob("cifar10-*.json")):
        sys.exit(f"paper: images of CIFAR-10 are missing, as examples/merging/resnet.toml says: {', '.join(missing)}")
    settings = [f"job.{key}={value}" for key, value in (("epochs", given.epochs), ("curve", given.curve)) if value]
    runs = told(given, FOLDER / "cifar10.toml", given.seeds, settings)
    slots = told(given, FOLDER / "slots.toml")
    epochs = runs[SERIAL][0]["curve"][-1]["results"] // SUBSETS
    given.to.mkdir(parents=True, exist_ok=True)
    parts = [learned(runs, epochs, given.to), threads(slots), beside(runs, slots, epochs), conclusions(runs, epochs)]
    text = "\n".join([head(runs, given.results), *("\n".join(paragraphs) for paragraphs in parts)])
    (given.to / "PAPER.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
