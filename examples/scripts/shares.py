#!/usr/bin/env python3
"""Writes examples/shares/README.md: what dividing a host's processor and moving trials between hosts change.

`make -C examples shares` builds the study and calls this. Every figure comes from that run; what a sentence claims is computed
beside it.
"""

import argparse
import json
import subprocess
import sys
from html import escape
from pathlib import Path

sys.dont_write_bytecode = True  # a checkout stays as it is
import kept  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "examples" / "shares"
STUDY = [ROOT / "target" / "release" / "sojourn-studies", "shares"]

HEAD = """# Sharing a host, and moving between hosts

{mark}

`make -C examples shares` runs `examples/studies`, keeps its [results](results) and writes this page from them, figures, tables
and sentences; changes by hand are lost. The text is in `examples/scripts/shares.py`.

Two questions about trials that share machines. **FlowCon** asks how much of a host's processor each of its trials should have: one whose loss
still falls for the processor time that it takes, or one that has long converged? **SpeCon** asks when a trial should go to another host: it
guesses from how the loss falls that a trial has converged, and moves it out of the way of those that still learn. Both are from one thesis
(2020; W. Zheng and others, "FlowCon", 2019; Y. Mao and others, "Speculative Container Scheduling", 2022).

**Sojourn's hosts share equally unless a job [says otherwise](../../docs/scheduling.md#shares-of-a-host), and its trials
stay on no host unless a job [says so](../../docs/scheduling.md#trials-that-stay-on-a-host).** This page says what the two would change.

**The model** is fluid: a host has capacity 1, which its trials divide without loss (`examples/studies/src/fluid`). A trial is an arrival, an amount
of work, and a loss that falls as 0.02 + 0.98 exp(-k f) once the part f of the work is done, reported each second with a noise of 0.01. The k
are read off the thesis' curves: 5.25 (a variational autoencoder), 11.5 (gated recurrent units), 19.6 (a bidirectional recurrent network). The planners are the
ones of `client/shares` and `workgen/src/residency`. Seeds 1 to {seeds}. All changes are in percent of the same trials with the same
seeds under equal shares, or without moves: below 0 is less time. *Usable* is when 99 % of the reduction of a trial's loss is made.
"""


def percent(value):
    return f"{round(value, 1) + 0.0:.1f}"


def spread(of):
    return f"{percent(of['mean'])} ± {percent(of['deviation'])}"


def table(header, rows, words=1):
    align = ["---" if n < words else "---:" for n in range(len(header))]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [header, align, *rows]) + "\n"


def schedule(study):
    cells = study["schedule"]
    head = ["threshold, interval", *[f"{cell['alpha']:.0%}, {cell['interval']} s" for cell in cells]]
    earlier = lambda of: [percent(-cell[of]["third"]["mean"]) for cell in cells]
    rows = [
        ["the thesis", *[percent(cell["thesis"]) for cell in cells]],
        ["caps, as in the thesis", *earlier("cap")],
        ["weights", *earlier("weight")],
    ]
    distance = sum(abs(-cell["cap"]["third"]["mean"] - cell["thesis"]) for cell in cells) / len(cells)
    second = max(cell["cap"]["second"]["mean"] for cell in cells)
    makespan = max(abs(cell["cap"]["makespan"]["mean"]) for cell in cells)
    low = sum(cell["thesis"] for cell in cells) / len(cells)
    weights = sum(-cell["weight"]["third"]["mean"] for cell in cells) / len(cells)
    return f"""
## FlowCon: the thesis' three jobs

A variational autoencoder begins at 0 s, a network for MNIST at 40 s, another at 80 s. Their work, 259.7, 106.1 and 28.2 seconds, follows from the times
that the thesis gives for equal shares. By how many percent the third ends earlier:

{table(head, rows)}
The mean distance to the thesis' cells is {percent(distance)} percentage points; its own two figures for one cell differ by 7 to 8. The second job ends at
most {percent(second)} % later, all three together within {percent(makespan)} %. With weights nothing is left idle, and the third job ends earlier still:
{percent(weights)} % on average, where the thesis has {percent(low)} %.

What the text leaves open, and the reading here: a window before a trial's first is represented by its first report; a trial of which
nothing is known yet has all that it wants; the least share of each of n trials is 1 / 2n.

**Where the gain comes from**: the third job is short and comes last. It takes from two that have converged. Nothing is won in all: the
last of the three ends when it did.
"""


def arrivals(study):
    rows, out = study["arrivals"], []
    for sizes in dict.fromkeys(row["sizes"] for row in rows):
        for interference in dict.fromkeys(row["interference"] for row in rows):
            lines = [
                [
                    row["policy"], row["trials"], spread(row["of"]["completion"]), spread(row["of"]["usable"]),
                    percent(row["of"]["makespan"]["mean"]), percent(row["of"]["better"]), percent(row["of"]["worse"]),
                    percent(row["of"]["best"]), percent(row["of"]["worst"]),
                ]
                for row in rows
                if (row["sizes"], row["interference"]) == (sizes, interference)
            ]
            slower = f", each {interference:.0%} slower for every other on the host" if interference else ""
            head = ["policy", "trials", "completion", "usable", "makespan", "better", "worse", "best", "worst"]
            out.append(f"\nSizes: {sizes}{slower}.\n\n{table(head, lines)}")

    def over(name, key):
        values = [row["of"][key]["mean"] for row in rows if row["policy"] == name]
        return f"{percent(min(values))} to {percent(max(values))} %"

    names = [name for name in dict.fromkeys(row["policy"] for row in rows) if name.startswith("FlowCon")]
    flow = [row["of"]["completion"]["mean"] for row in rows if row["policy"] in names]
    usable = {name: over(name, "usable") for name in [*names, "least attained"]}
    beats = "never shortens" if min(flow) > -0.05 else "hardly shortens"
    long = {row["unit"]: row for row in study["long"]}
    return f"""
## FlowCon: trials that come by chance

5, 10 or 15 trials come within 200 seconds, with one of the three curves each. Sizes are even between 28.2 and 259.7 seconds, or heavy-tailed
(Pareto, exponent 1.2, from 28.2 to 2,000 seconds). *Better* and *worse* are trials that end more than 1 % earlier or later; *best* and *worst* the trial that
gains most and the one that loses most; means over the seeds. *FlowCon, thesis*: a threshold of 0.05 a second, 30 seconds, caps. *Weights*:
the same with weights, and a loss that rises is no growth. *Default*: a threshold for each trial's own length too. *Least attained* and *shortest
remaining* give all but a hundredth to one trial, the one that had least so far or has least left to do.
{"".join(out)}
- FlowCon {beats} mean completion: {percent(min(flow))} to {percent(max(flow))} % over all rows. The thesis' 4 of 5, 9 of 10 and 11 of 15 jobs
  that end earlier are single runs, and aren't reproduced on average.
- What it can claim is time to a usable model: {"; ".join(f"*{name}* {value}" for name, value in usable.items())}. It doesn't beat *least attained* there by more
  than the seeds differ, which needs no loss.
- Who knows what is left to do, as Sojourn does, has most: mean completion {over("shortest remaining", "completion")}, usable
  {over("shortest remaining", "usable")} (with a large spread), makespan {over("shortest remaining", "makespan")}.
- Where trials are twenty times as long, a threshold a second counts all as converged at once: the third of the thesis' jobs ends
  {percent(-long["per second"]["third"]["mean"])} % earlier and is usable {percent(-long["per second"]["usable"]["mean"])} % earlier. With a threshold for its own length it ends
  {percent(long["per trial"]["third"]["mean"])} % later and is usable {percent(-long["per trial"]["usable"]["mean"])} % earlier: those that came before learn for longer.
"""


def scenarios(study):
    rows = study["scenarios"]
    out = []
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        lines = []
        of = [row for row in rows if row["scenario"] == scenario]
        for policy in dict.fromkeys(row["policy"] for row in of):
            random, few = (next(row for row in of if (row["policy"], row["placement"]) == (policy, placement)) for placement in ("random", "fewest residents"))
            moves = f"{percent(random['of']['speculative'])}, {percent(random['of']['rebalanced'])}"
            lines.append([
                policy, spread(random["of"]["completion"]), spread(random["of"]["makespan"]),
                f"{percent(random['of']['better'])} of {random['trials']}", moves,
                spread(few["of"]["completion"]), spread(few["of"]["makespan"]),
            ])
        head = ["policy", "completion", "makespan", "better", "moves M, R", "completion", "makespan"]
        out.append(f"\n**{scenario}** (first four columns: random placement; last two: fewest residents)\n\n{table(head, lines)}")

    def harm(policy):
        """By how much mean completion or makespan get worse in the scenario in which it looks worst."""
        few = [row["of"] for row in rows if row["policy"] == policy and row["placement"] == "fewest residents"]
        worst = percent(max(max(of["completion"]["mean"], of["makespan"]["mean"]) for of in few))
        return "nothing gets worse" if float(worst) <= 0 else f"nothing gets worse by more than {worst} %"

    def best(policy, placement, key="completion"):
        of = [row["of"][key]["mean"] for row in rows if row["policy"] == policy and row["placement"] == placement]
        return f"{percent(min(of))} to {percent(max(of))} %"

    sweep = [
        [row["reading"], f"{row['alpha']:g}", f"{row['interval']} s", row["placement"], spread(row["of"]["completion"]), spread(row["of"]["makespan"]),
         percent(row["of"]["speculative"]), percent(row["of"]["rebalanced"])]
        for row in study["sweep"]
    ]
    head = ["reading", "threshold", "interval", "placement", "completion", "makespan", "M", "R"]
    return f"""
## SpeCon: five scenarios

Trials come to 4 or 8 hosts, VAE of 150 seconds or mixed ones of 70 to 300 seconds. Each is put on a host by chance, or where the fewest are. The thesis'
own baseline does neither: Kubernetes' default scheduler places by the resources in use at that moment, processor, memory and network, which left one
host with more than its share there (section 6.2.3). How unbalanced that was isn't said; placement by chance stands for it here. A move takes 5 seconds
without progress. *As printed*: the thesis' listings, literally. *Thesis*: as its text and examples describe them, threshold 0.01, every 30 seconds. *Default*: a threshold of 0.3 of a trial's own pace, and a move has to lower the larger of the two scores. *Known
remaining work*: by what is left to do, without a guess. Beside them hosts that have one trial at a time, from one queue: who came first; who has least
left; and model hopper parallelism, which after hops of 10 seconds takes who has most left, to end all together. M are moves by speculation,
R those that rebalance.

The thesis' figures for mean completion and makespan: -14.7 and -5.6 % in the first scenario, -13.6 and -24.7 % with 20 mixed trials, -5.9 and -16.4 % with 30,
-7.2 and -11.1 % with 50. In the second it has mean completion alone: -1.1, -5.2 and -8.0 % with a threshold of 0.05 every 20, 25 and 30 seconds, and
-7.2, -3.2 and -9.5 % with thresholds of 0.01, 0.05 and 0.1 every 30 seconds (Figures 6.17 and 6.18).
{"".join(out)}
- **Most of SpeCon's gain here is the repair of a bad placement.** With random placement the mean completion changes by {best("SpeCon, thesis", "random")} (thesis) and
  {best("SpeCon, default", "random")} (default); where trials are put where the fewest are, by {best("SpeCon, thesis", "fewest residents")} and {best("SpeCon, default", "fewest residents")}.
  The makespan gains there too: {best("SpeCon, thesis", "fewest residents", "makespan")} and {best("SpeCon, default", "fewest residents", "makespan")}. With that placement {harm("SpeCon, default")} under the default, {harm("SpeCon, thesis")} under the thesis' reading.
- The listings as they are printed move nothing.
- **Whoever doesn't share at all does better**: hosts that take one trial at a time, in the order of arrival, change mean completion by
  {best("one trial a host, first come", "random")} beside random placement, and by {best("one trial a host, first come", "fewest residents")} beside the better one.
- Model hopper parallelism lets all trials end together: the makespan is the least of all, mean completion isn't. That is what a search wants that compares
  all its trials, and what `spread = "breadth"` does; `spread = "depth"`, the default, lets the trials that were begun end first.

Thresholds and intervals, with 20 mixed trials on 4 hosts:

{table(head, sweep, 2)}
"""


COLOURS = ["#1f77b4", "#e07b00", "#2a9d4a", "#d1495b"]
STYLE = """<style>
text { fill: #24292f; font: 11px sans-serif } .title { font-size: 14px } .grid { stroke: #d0d7de }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .grid { stroke: #3d444d } }
</style>"""
WIDTH, HEIGHT, LEFT, TOP = 760, 70, 60, 40


def residents(study, folder):
    """Trials on each host over time, with who comes by a move marked M or R."""
    points, moves = study["residents"]["residents"], study["residents"]["moves"]
    end = points[-1][0]
    most = max(max(counts) for _, counts in points)
    hosts = len(points[0][1])
    title = "Trials on each of four hosts"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {TOP + hosts * (HEIGHT + 16) + 30}">',
        STYLE,
        f'<text class="title" x="{LEFT}" y="18">{escape(title)}</text>',
    ]
    for host in range(hosts):
        top = TOP + host * (HEIGHT + 16)
        x = lambda at: LEFT + WIDTH * at / end
        y = lambda count, top=top: top + HEIGHT * (1 - count / most)
        path, last = [f"{LEFT},{y(0):.1f}"], 0
        for at, counts in points:
            path += [f"{x(at):.1f},{y(last):.1f}", f"{x(at):.1f},{y(counts[host]):.1f}"]
            last = counts[host]
        out.append(f'<text x="{LEFT - 8}" y="{top + HEIGHT / 2}" text-anchor="end">host {host + 1}</text>')
        out.append(f'<text x="{LEFT - 8}" y="{top + 8}" text-anchor="end">{most}</text>')
        out.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y(0):.1f}" y2="{y(0):.1f}"/>')
        out.append(f'<polyline points="{" ".join(path)}" fill="none" stroke="{COLOURS[host % 4]}" stroke-width="1.6"/>')
        for at, kind, trial, _, to in moves:
            if to == host:
                out.append(f'<text x="{x(at):.1f}" y="{y(0) + 11:.1f}" text-anchor="middle">{kind}<title>trial {trial}</title></text>')
    for n in range(5):
        at = end * n / 4
        out.append(f'<text x="{LEFT + WIDTH * n / 4:.1f}" y="{TOP + hosts * (HEIGHT + 16) + 18}" text-anchor="middle">{at:.0f} s</text>')
    out.append("</svg>\n")
    (folder / "residents.svg").write_text("\n".join(out), encoding="utf-8")
    return f"""
20 mixed trials, random placement, SpeCon's default, seed 1: {len(moves)} moves, each marked at the host that the trial goes to.

![{title}](residents.svg)
"""


def recommendation(study):
    def over(rows, policy, key):
        return [row["of"][key]["mean"] for row in rows if row["policy"] == policy]

    flow = [name for name in dict.fromkeys(row["policy"] for row in study["arrivals"]) if name.startswith("FlowCon")]
    fails = [name for name in flow if max(over(study["arrivals"], name, "completion")) > 1]
    few = [row for row in study["scenarios"] if row["placement"] == "fewest residents"]
    specon, together = (over(few, "SpeCon, default", key) for key in ("completion", "makespan"))
    return f"""
## What follows

A policy becomes the default only where it is better in mean completion or time to a usable model, and worsens nothing by more than 1 %.

- Shares: **equal**. {len(fails)} of {len(flow)} ways to run FlowCon lengthen mean completion by more than 1 % in some row. Shortest remaining time is far better
  in this model, where the work that is left is known exactly and trials are independent.
- Residence: **none**. Over a placement that counts trials SpeCon gains {percent(-min(specon))} % of mean completion and {percent(-min(together))} % of the makespan at
  most, and less completion than hosts that take one trial at a time. That is
  how Sojourn's slots work: a slot has one trial, and a trial that waits waits on the server.

This is a model: no data to fetch, no checkpoints, no memory that runs short. It says which policies are worth trying on machines, not how much they gain there:
that is on [a page of its own](MACHINES.md).
"""


def run(seeds):
    command = [*STUDY, *(["--seeds", str(seeds)] if seeds else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"shares: {done.stderr.strip()}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, help="so many seeds instead of 20")
    kept.options(parser, FOLDER)
    given = parser.parse_args()
    study = kept.kept(given.results, "shares", lambda: run(given.seeds))
    given.to.mkdir(parents=True, exist_ok=True)
    head = HEAD.format(seeds=study["seeds"], mark=kept.mark("shares.py"))
    parts = [head, schedule(study), arrivals(study), scenarios(study), residents(study, given.to), recommendation(study)]
    (given.to / "README.md").write_text("".join(parts).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
