#!/usr/bin/env python3
"""Writes examples/scheduling/PROOFS.md and its charts: runs the scenarios there and says what they show.

`make -C examples proofs` builds the program and calls this. Every figure comes from a run; what a sentence claims is
computed beside it, so that another result gives another sentence.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # a checkout stays as it is
import kept  # noqa: E402
from cerebro import figure_6, figure_8, thesis  # noqa: E402
from drawn import drawn  # noqa: E402
from platform_paper import summary  # noqa: E402
from study import FOLDER, ROOT, Study, chart, planned_gangs, say, series, spread, table  # noqa: E402
from traffic import traffic  # noqa: E402


def can_build_milp():
    """HiGHS needs cmake and libclang."""
    places = [
        *Path("/usr/lib").glob("llvm-*/lib"),
        *Path("/usr/lib").glob("*-linux-gnu"),
        Path("/usr/lib64"),
    ]
    places += [Path(os.environ["LIBCLANG_PATH"])] if "LIBCLANG_PATH" in os.environ else []
    libclang = any(True for place in places for _ in place.glob("libclang*.so*"))
    return libclang and shutil.which("cmake") is not None


GOALS = {
    "ltrp": [1.01, 1.01, 1.01, 1.13],
    "rollout": [1.002, 1.002, 1.005, 1.000],
    "randomized": [1.04, 1.06, 1.09, 1.15],
}


def order(study):
    lines, missed = [], []
    for n, row in enumerate(study.rows):
        cells = []
        for policy in study.policies:
            ratio = study.cells[row, policy]["ratio"]
            goal = GOALS.get(policy, [None] * 9)[n]
            cells.append(
                spread(study.cells[row, policy], "ratio", 4) + (f", {goal:.3f}" if goal else "")
            )
            if policy != "randomized" and goal and ratio["mean"] > goal + 0.0005:
                missed.append(f"`{policy}` in {row} ({ratio['mean']:.4f}, not {goal:.3f})")
        lines.append([row, *cells])
    claim = (
        "All goals of `ltrp` and `rollout` are reached."
        if not missed
        else "Missed: " + "; ".join(missed) + "."
    )
    picture = chart(
        study,
        "2-order.svg", "Makespan over the lower bound", study.rows, series(study, "ratio"), 1.0
    )
    return "## 2. Where the order matters\n", [
        study.head()
        + " Makespan over the lower bound: mean (least to most), and what is to be reached; "
        "for `randomized` that is what was measured on paper.\n",
        table(["scenario", *study.policies], lines),
        claim + "\n",
        picture,
    ]


# The pilot study: makespan over all work / all capacity.
PAPER = {
    "16x8, one host each": {"randomized": 2.23, "ltrp": 2.19},
    "16x8, three replicas": {"randomized": 1.90, "ltrp": 1.48},
    "16x8, anywhere": {"randomized": 1.86, "ltrp": 1.23},
    "256x16, one host each": {"randomized": 2.00, "ltrp": 2.00},
    "256x16, sizes by speed": {"randomized": 1.00, "ltrp": 1.00},
}

# Why figures of the core aren't those of the paper.
REASONS = [
    "`randomized` chooses among hops by chance; but of the hosts that wait the core lets the fastest choose first, "
    "under every policy. The pilot study's baseline asked idle hosts in any order.",
    "With three replicas the core gives each shard homes of different speeds, a fast one where there are enough; the "
    "pilot study's replicas lay by chance.",
    "256 trials pinned to one host each take all work over the speed of the slowest host: what that is over the mean "
    "speed depends on which 16 hosts are drawn, 1.85 to 2.40 here.",
]


def placement(study, seconds):
    over = lambda row, p: study.mean(row, p, lambda run: run["makespan"] / run["capacity"])
    lines, off = [], []
    for row in study.rows:
        cells = []
        for policy in study.policies:
            value, paper = over(row, policy), PAPER.get(row, {}).get(policy)
            cells.append(f"{value:.2f}" + (f", {paper:.2f}" if paper else ""))
            if paper and abs(value - paper) > 0.05:
                off.append(f"`{policy}`, {row}: {value:.2f}, not {paper:.2f}")
        lines.append([row, *cells])
    claim = (
        "All figures of the pilot study are met within 0.05."
        if not off
        else "Of the pilot study's figures these differ by more than 0.05: " + "; ".join(off) + ". Why: " + " ".join(REASONS)
    )
    ratios = {p: [(over(row, p),) * 3 for row in study.rows] for p in study.policies}
    picture = chart(study, "4-placement.svg", "Makespan over all work / all capacity", study.rows, ratios, 1.0)
    return "## 4. Where placement matters\n", [
        study.head() + " Makespan over all work / all capacity, and the figures of the pilot study.\n",
        table(["scenario", *study.policies], lines),
        claim
        + " Where shards live decides more than the order: pinned to one host each, no policy uses the fleet.\n",
        picture,
        *with_seconds(seconds),
    ]


def with_seconds(study):
    """What the defaults come to where bytes take time: a scenario's, and a job file's."""
    policy = study.policies[0]
    lines = []
    for row in study.rows:
        cell = study.cells[row, policy]
        moved = lambda key, row=row: f"{study.mean(row, policy, lambda run: run[key]) / 1e9:.1f} GB"
        sizes = [moved(key) for key in ("checkpoints_up", "checkpoints_down", "shard_bytes")]
        lines.append([row, f"{cell['makespan']['mean']:.0f} s", spread(cell, "ratio"), *sizes])
    header = ["scenario", "makespan", "over the bound", "checkpoints up", "checkpoints down", "shards down"]
    worst = lambda kind: max(study.cells[row, policy]["ratio"]["mean"] for row in study.rows if row.startswith(kind))
    reached = lambda value: "reached" if value <= 1.10 else "not reached"
    free, same = worst("any host"), worst("reproducible")
    return [
        study.head() + " With seconds and bytes: makespan over the lower bound, and bytes moved. Shards are cut as the server "
        "would; hosts tell their operations per second (`estimates = \"prior\"`). A job file's own default is "
        "`reproducible = true`. The bound leaves that out, as if any host could train any trial.\n",
        table(header, lines),
        f"At most 1.10 is wanted. With any host that is {reached(free)}: {free:.3f} at the most. With a job file's default it is "
        f"{reached(same)}: {same:.3f} at the most.\n",
    ]


def failures(study, replicas):
    of = study.policies[0]
    percent = lambda row, key: f"{100 * study.mean(row, of, lambda run: run[key]):.1f} %"
    lines = [
        [
            row,
            spread(study.cells[row, of], "normalised"),
            percent(row, "lost_share"),
            percent(row, "twice_share"),
            f"{study.mean(row, of, lambda run: run['departures']):.0f}",
        ]
        for row in study.rows
    ]
    mean = {row: study.cells[row, of]["normalised"]["mean"] for row in study.rows}
    slower = [a for a, b in zip(study.rows[1::2], study.rows[2::2]) if mean[a] > mean[b] + 0.005]
    claim = (
        "Notice never makes it slower."
        if not slower
        else "With notice it is slower than without at " + "; ".join(slower) + "."
    )
    picture = chart(
        study,
        "5-failures.svg",
        "Makespan over that without losses",
        study.rows,
        {of: series(study, "normalised")[of]},
        0.9,
    )
    return "## 5. Failures\n", [
        study.head() + " Makespan over that of the first row; shares of all training.\n",
        table(["hosts lost", "over none lost", "work lost", "work done twice", "machines lost"], lines),
        claim + "\n",
        picture,
        *figure_8(replicas),
    ]


def fleets(study, title, note):
    moved = lambda run: run["shard_bytes"] + run["checkpoints_down"] + run["checkpoints_up"]
    lines, worse, wide, heavy = [], [], [], []
    for row in study.rows:
        lines.append([row, *(spread(study.cells[row, p], "ratio") for p in study.policies)])
        best = min(study.cells[row, p]["ratio"]["mean"] for p in study.policies if p != "rollout")
        if study.cells[row, "rollout"]["ratio"]["mean"] > best + 0.0005:
            worse.append(row)
        most = study.cells[row, "rollout"]["normalised"]["max"]
        if most > 1.03:
            wide.append(f"{row} ({most:.3f})")
        least = min(study.mean(row, p, moved) for p in study.policies)
        if study.mean(row, "rollout", moved) > 1.10 * least:
            heavy.append(row)
    claim = (
        "`rollout` is on average no worse than the others in any row."
        if not worse
        else "`rollout` is on average worse in: " + "; ".join(worse) + "."
    )
    single = (
        "No seed of it takes over 1.03 times as long as `ltrp`."
        if not wide
        else "Some seed of it takes over 1.03 times as long as `ltrp` in: " + "; ".join(wide) + "."
    )
    weight = (
        "It moves at most 1.10 times the bytes of the policy that moves the fewest."
        if not heavy
        else "It moves over 1.10 times the bytes of the policy that moves the fewest in: " + "; ".join(heavy) + "."
    )
    picture = chart(
        study,
        f"{study.name}.svg", "Makespan over the lower bound", study.rows, series(study, "ratio"), 1.0
    )
    bytes_of = [
        [row, *(f"{study.mean(row, p, moved) / 1e9:.1f} GB" for p in study.policies)] for row in study.rows
    ]
    return f"## {title}\n", [
        f"{study.head()} Makespan over the lower bound: mean (least to most).{note}\n",
        table(["scenario", *study.policies], lines),
        "Bytes of shards and checkpoints that were moved:\n",
        table(["scenario", *study.policies], bytes_of),
        f"{claim} {single} {weight}\n",
        picture,
    ]


def priority(study):
    """Rows in threes: the second job alone, beside the first, and there with a higher priority."""
    policy = study.policies[0]
    second = lambda row: study.mean(row, policy, lambda run: run["jobs"][-1]["ended"] - run["jobs"][-1]["submitted"])
    lines, beside, first = [], [], []
    for n, row in enumerate(study.rows):
        alone = second(study.rows[n - n % 3])
        over = second(row) / alone
        if n % 3 == 1:
            beside.append(over)
        if n % 3 == 2:
            first.append(over)
        both = "" if n % 3 == 0 else f"{study.cells[row, policy]['makespan']['mean']:.1f} s"
        lines.append([row, f"{second(row):.1f} s", f"{over:.3f}", both])
    claim = (
        f"With priority the second job takes {min(first):.2f} to {max(first):.2f} times what it takes alone, without it "
        f"{min(beside):.2f} to {max(beside):.2f} times."
    )
    return "## 8. Jobs of two priorities\n", [
        f"{study.head()} How long the second job takes from its submission.\n",
        table(["scenario", "the second job", "over alone", "both have ended after"], lines),
        claim + "\n",
    ]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sojourn", default=ROOT / "target" / "release" / "sojourn", type=Path)
    options.add_argument("--seeds", type=int, help="fewer than the files say, for a try")
    kept.options(options, FOLDER)
    options.add_argument("--features", action="store_true", help="print what to build the program with")
    given = options.parse_args()
    if given.features:
        print("--features milp" if can_build_milp() else "")
        return
    run = lambda name: Study(given, name)
    parts = [
        figure_6(run("1-cerebro"), run("1-milp")),
        order(run("2-order")),
        thesis(run("3-thesis"), planned_gangs(given, summary)),
        placement(run("4-placement"), run("4-seconds")),
        failures(run("5-failures"), run("5-replicas")),
        fleets(
            run("6-fleets"),
            "6. Fleets of several kinds of machines",
            " `reproducible = true` is a job file's default: each trial stays on machines of one kind.",
        ),
        fleets(
            run("7-bytes"),
            "7. Slow lines and small caches",
            "",
        ),
        priority(run("8-priority")),
        traffic(run("9-traffic")),
        drawn(given),
    ]
    text = (
        f"# What the simulator shows\n\n{kept.mark('proofs.py')}\n\n`make -C examples proofs` runs the scenarios in this folder, keeps "
        "their [results](results) and writes this page from them, sentences included; changes by hand are lost. [README.md](README.md) explains "
        f"the scenarios and the words.{kept.notes(given.results)}\n\n"
    )
    text += "\n".join(title + "\n" + "\n".join(paragraphs) for title, paragraphs in parts)
    (given.to / "PROOFS.md").write_text(text, encoding="utf-8")
    say(f"{given.to / 'PROOFS.md'} is written")


if __name__ == "__main__":
    main()
