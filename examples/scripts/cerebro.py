"""The sections of PROOFS.md that hold experiments of the Cerebro papers against runs of the simulator."""

from platform_paper import REPORTED, platform, reported
from study import chart, milp_note, series, spread, table, tenths

CLOSE = 2  # per cent: what is called close to a plan's makespan
PANELS = {
    "(A)": "equal configurations, equal workers",
    "(between)": "unequal configurations, equal workers",
    "(B)": "unequal configurations, unequal workers",
}
QUITE_CLOSE = 7.4  # per cent: what the thesis calls so, of its random scheduler beside its MILP


def best_saving(study, row):
    """Per cent that the best policy saves of what `randomized` takes."""
    return 100 * (1 - min(cell["normalised"]["mean"] for (of, _), cell in study.cells.items() if of == row))


def figure_6(study, once):
    ran = lambda row, policy: (row, policy) in study.cells
    shown = lambda row, policy: spread(study.cells[row, policy], "normalised") if ran(row, policy) else ""
    lines = [[row, *(shown(row, p) for p in study.policies)] for row in study.rows]
    took = lambda row, policy: f"{study.deciding(row, policy):.3f} s" if ran(row, policy) else ""
    times = [[row, *(took(row, p) for p in study.policies)] for row in study.rows]
    ours = lambda row, policy: study.cells[row, policy]["normalised"]["mean"]
    worse = [row for row, policy in study.cells if ours(row, "rollout") > ours(row, policy) + 0.0005]
    claim = (
        "No policy is better than `rollout` in any row."
        if not worse
        else "`rollout` isn't the best in " + "; ".join(dict.fromkeys(worse)) + "."
    )
    labels = [row.replace(" ", ", ", 2) for row in study.rows]
    panels = []
    for panel, words in PANELS.items():
        rows = [row for row in study.rows if row.startswith(panel)]
        savings = {row: best_saving(study, row) for row in rows}
        close = [row for row in rows if savings[row] <= CLOSE]
        least, most = min(savings.values()), max(savings.values())
        verdict = "yes" if len(close) == len(rows) else "no" if not close else f"in {len(close)} of {len(rows)} rows"
        panels.append([panel, words, f"{tenths(least)} to {tenths(most)} %", verdict])
    parts = [
        study.head() + " Makespan over that of `randomized`, seed by seed: mean (least to most).\n",
        "The figure has two panels, (A) with equal configurations and equal workers, (B) with unequal ones of both, each for 16 and 256 "
        "configurations on 8 and 16 workers (section 5.4). The rows with unequal configurations on equal workers are ours, and so are "
        "64 on 32 and 256 on 128; 256 on 8 isn't run here.\n",
        table(["scenario", *study.policies], lines),
        f"The paper took `randomized` for its system, as its makespans come close to those of plans. Taking {CLOSE} % as close:\n",
        table(["rows", "", "the best policy saves", "agrees"], panels, words=["", "agrees"]),
        claim + "\n",
        milp_note(study),
        chart(study, "1-cerebro.svg", "Makespan over that of randomized", labels, series(study, "normalised"), 0.8),
        "Scheduling time: real time in the core and in planning, for a whole run.\n",
        table(["scenario", *study.policies], times),
    ]
    if "milp" in once.policies:
        parts += five_minutes(study, once)
    return "## 1. Cerebro's Figure 6\n", parts


def five_minutes(study, once):
    """One run in which `milp` had as long as Gurobi had in the paper."""
    lines, best = [], []
    for row in once.rows:
        of = lambda policy, row=row: once.cells[row, policy]["runs"][0]
        seed, second = of("milp")["seed"], study.cells[row, "milp"]["runs"]
        short = next(run["makespan"] for run in second if run["seed"] == seed)
        shown = [f"{of(policy)['makespan']:.2f} s" for policy in ("randomized", "ltrp", "rollout")]
        lines.append([row, *shown, f"{short:.2f} s", f"{of('milp')['makespan']:.2f} s", f"{once.deciding(row, 'milp'):.0f} s"])
        best.append(100 * (of("rollout")["makespan"] / of("milp")["makespan"] - 1))
    return [
        f"Gurobi had five minutes in the paper. {once.head()} HiGHS had them here once, for each plan, beside other work; makespans:\n",
        table(["scenario", "randomized", "ltrp", "rollout", "milp, 1 s", "milp, 5 min", "planning"], lines),
        f"`rollout` takes {' and '.join(f'{100 + more:.1f} %' for more in best)} of what `milp` takes with five minutes.\n",
    ]


def thesis(study, figures):
    lines = [
        [
            row,
            f"{study.cells[row, 'randomized']['makespan']['mean']:.1f} s",
            *(spread(study.cells[row, p], "normalised") for p in study.policies[1:]),
        ]
        for row in study.rows
    ]
    makespan = lambda row, policy: study.cells[row, policy]["makespan"]["mean"]
    texts, beside = [], []
    if "milp" in study.policies:
        gains = {row: 100 * (1 - study.cells[row, "milp"]["normalised"]["mean"]) for row in study.rows}
        least, most = min(gains, key=gains.get), max(gains, key=gains.get)
        close = [row for row in study.rows if gains[row] <= QUITE_CLOSE]
        texts.append(
            f"Here `milp` saves {tenths(gains[least])} % of what `randomized` takes in the row {least} and {tenths(gains[most])} % in the "
            f"row {most}: quite close, in the thesis' sense, in {len(close)} of {len(study.rows)} rows. But the thesis' MILP chooses gangs "
            "as well, and `milp` here the order alone."
        )
    for case in REPORTED:
        gpu, node = (f"{case}, one on each {what}" for what in ("GPU", "node"))
        here = [makespan(gpu, policy) / makespan(node, policy) for policy in ("randomized", "rollout")]
        beside.append([case, f"{reported(case)[0]:.2f}", *(f"{ratio:.2f}" for ratio in here)])
    rows = [row.replace(" on ", ", on ", 1) for row in study.rows]
    return "## 3. The Cerebro thesis' cases\n", [
        study.head() + " Makespan of `randomized`, and that of the others over it: mean (least to most).\n",
        table(["case", *study.policies], lines),
        "The thesis (section 4.4) compares three schedulers. Its multi-GPU MOP trains one model on each GPU, its random scheduler one model "
        "on all GPUs of each node, both in random order; so they are `randomized` in the rows *one on each GPU* and *one on each node*. Its "
        "MILP is in the second part of this section. It reports MOP over random, and its MILP within 7.4 % of random, which it calls quite "
        "close, or behind it. MOP over random, there and here:\n",
        table(["case", "there", "here, `randomized`", "here, `rollout`"], beside),
        "A trial that uses several GPUs loses nothing by that, there (equation 4.15) and in these rows. The thesis doesn't list its costs; here "
        "they are drawn from a table.\n",
        " ".join(texts) + "\n",
        milp_note(study),
        chart(study, "3-thesis.svg", "Makespan over that of randomized", rows, series(study, "normalised"), 0.8),
        *platform(figures),
    ]


AWAY = (160, 590)  # seconds in which a worker of 5-replicas.toml is away


def figure_8(study):
    """Times of epochs, with two workers lost for a while and without."""
    still, lost = study.rows
    policy = study.policies[0]
    ends = {row: [[0, *run["jobs"][0]["epochs"]] for run in study.cells[row, policy]["runs"]] for row in study.rows}
    mean = lambda values: sum(values) / len(values)
    shown = lambda values: f"{mean(values):.0f} ({min(values):.0f} to {max(values):.0f})"
    lengths = lambda row, epoch: [of[epoch + 1] - of[epoch] for of in ends[row]]
    lines = []
    for epoch in range(len(ends[still][0]) - 1):
        behind = [a[epoch + 1] - b[epoch + 1] for a, b in zip(ends[lost], ends[still])]
        lines.append([epoch + 1, shown(lengths(still, epoch)), shown(lengths(lost, epoch)), shown(behind)])
    usual = mean([length for epoch in range(len(lines)) for length in lengths(still, epoch)])
    parts = {"away": [], "after": []}
    for of in ends[lost]:
        for begun, ended in zip(of, of[1:]):
            if begun >= AWAY[1]:
                parts["after"].append(ended - begun)
            elif ended > AWAY[0]:
                parts["away"].append(ended - begun)
    away, after = (mean(parts[part]) / usual for part in ("away", "after"))
    makespan = study.cells[lost, policy]["normalised"]
    return [
        study.head() + " As in Cerebro's Figure 8(B), time per epoch: each shard lies on three workers; one of eight is away from 160 s "
        "to 480 s, another from 270 s to 590 s. An epoch lasts from the last result of the one before, of any trial, to its own "
        "last result. Seconds, mean (least to most); and how much later each epoch ends than without losses:\n",
        table(["epoch", "nobody lost", "two lost", "ends later by"], lines),
        f"While a worker is away an epoch takes {away:.2f} times as long as without losses, the mean of these epochs and all seeds; "
        f"after that {after:.2f} times. The paper's text says that the workload is executed despite the failures (section 6.2), and leaves "
        f"times to the figure. {'Here epochs are longer while workers are away, and trials that fell behind catch up' if away > 1.05 and after < 1.05 else 'Longer epochs while workers are away are not seen here'}. Single epochs differ, because "
        "trials don't wait for each other: one that lost a hop waits for its lease (60 s) and ends its epoch late, while the "
        f"others go on. The makespan is {makespan['mean']:.3f} ({makespan['min']:.3f} to {makespan['max']:.3f}) times that without.\n",
    ]
