"""The sections of PROOFS.md that hold experiments of the Cerebro papers against runs of the simulator."""

from platform_paper import platform
from study import chart, milp_note, series, spread, table, tenths

CLOSE = 2  # per cent: what is called close to a plan's makespan
PANELS = {
    "(A)": "equal configurations, equal workers",
    "(B)": "unequal configurations, equal workers",
    "(C)": "both unequal",
}


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
        "The three panels of the figure: " + "; ".join(f"{panel} {words}" for panel, words in PANELS.items()) + ".\n",
        table(["scenario", *study.policies], lines),
        f"The paper took `randomized` for its system, as its makespans come close to those of plans. Taking {CLOSE} % as close:\n",
        table(["panel", "", "the best policy saves", "agrees"], panels, words=["", "agrees"]),
        claim + "\n",
        milp_note(study),
        chart("1-cerebro.svg", "Makespan over that of randomized", labels, series(study, "normalised"), 0.8),
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
    pairs = list(zip(study.rows[0::2], study.rows[1::2]))
    makespan = lambda row, policy: study.cells[row, policy]["makespan"]["mean"]
    texts = []
    if "milp" in study.policies:
        gains = {row: 100 * (1 - study.cells[row, "milp"]["normalised"]["mean"]) for row in study.rows}
        least, most = min(gains, key=gains.get), max(gains, key=gains.get)
        close = [row for row in study.rows if gains[row] <= CLOSE]
        verdict = (
            "confirmed"
            if len(close) == len(study.rows)
            else "refuted"
            if not close
            else f"confirmed in {len(close)} of {len(study.rows)} rows and refuted in the others"
        )
        texts.append(
            f"The thesis found `randomized` close to `milp`. Taking {CLOSE} % as close, that is {verdict}: `milp` saves "
            f"{tenths(gains[least])} % in the row {least} and {tenths(gains[most])} % in the row {most}."
        )
    gain = [makespan(one, "rollout") / makespan(node, "rollout") for one, node in pairs]
    texts.append(
        "A trial on all GPUs of a node, with shards in proportion to them, is faster than one on each GPU by "
        f"{min(gain):.2f} to {max(gain):.2f} times under `rollout`; that a trial uses several GPUs without loss is assumed."
    )
    rows = [row.replace(" on ", ", on ", 1) for row in study.rows]
    return "## 3. The Cerebro thesis' cases\n", [
        study.head() + " Makespan of `randomized`, and that of the others over it: mean (least to most).\n",
        table(["case", *study.policies], lines),
        " ".join(texts) + "\n",
        milp_note(study),
        chart("3-thesis.svg", "Makespan over that of randomized", rows, series(study, "normalised"), 0.8),
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
        f"after that {after:.2f} times. In the paper epochs are longer while workers are away, and as long as before when they "
        f"are back: {'that agrees, and trials that fell behind even catch up' if away > 1.05 and after < 1.05 else 'that is not seen here'}. Single epochs differ more than there, because "
        "trials don't wait for each other: one that lost a hop waits for its lease (60 s) and ends its epoch late, while the "
        f"others go on. The makespan is {makespan['mean']:.3f} ({makespan['min']:.3f} to {makespan['max']:.3f}) times that without.\n",
    ]
