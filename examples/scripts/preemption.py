#!/usr/bin/env python3
"""Writes examples/merging/PREEMPTION.md: runs the scenario of preemption and says what it shows.

`make -C examples preemption` builds the program and calls this. Every figure comes from a run; what a sentence claims is computed
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

ROOT = Path(__file__).resolve().parent.parent.parent
SCENARIO = ROOT / "examples" / "preemption.toml"
FOLDER = ROOT / "examples" / "merging"
# As the scenario has them, in minutes.
SUBTASKS, SLOTS, UNIT, TIME_OUT, BACK = 2000, 10, 2.4, 5, 1
SHARES = (0.05, 0.2)
FIXED, OURS, NOTICE = SCHEMES = ("fixed", "ours", "ours with notice")
# What a group's cases are called by, and what is different there.
GROUPS = {
    "": "40 epochs of 50 shards, each slot a machine of its own",
    "one epoch: ": "One epoch of 2000 shards",
    "five machines: ": "Five machines of two slots",
}
HEAD = f"""# What preemption costs

{kept.mark("preemption.py", "results/preemption")}

`make -C examples preemption` runs the scenario, keeps its [results](results/preemption) and writes this page from them, figures, tables and
sentences; changes by hand are lost. The text is in `examples/scripts/preemption.py`.

```sh
sojourn simulate examples/preemption.toml
```

One model is trained by merging, in virtual time; the server's own core decides. There are 2000 subtasks of 2.4 minutes, 200 on
each of ten slots: 8 hours if nothing is lost. In the middle of a share p of the subtasks the machine is taken away, and another
one takes its place a minute later. Nothing is really trained, links are free, and all machines are equal. The policy is
`rollout`, the server's default; `reproducible = false`, so that any machine may train any subtask.

- **formula**: n p t_o, with n = 200 subtasks one after the other on a slot and a time-out t_o of 5 minutes. It is the growth of
  training time given with VC-ASGD (Atre, Jha and Rao, 2021, arXiv 2103.08894).
- **fixed**: a subtask that isn't reported 5 minutes after it was handed out is handed out again. There are no heartbeats, no
  notices, no partial checkpoints, no speculative leases.
- **ours**: the default terms of `sojourn serve`. Machines send a heartbeat every 15 s, and a machine that is silent for a minute
  loses its lease. The longer time-outs for units without progress follow from measured times; here nothing hangs, so they never
  end a lease.
- **ours with notice**: machines hear of their end two minutes before. They begin nothing new. 30 s before the end the subtask
  stops after its batch, and the part is merged. Another machine goes on from there.

A growth is the additional time of a run against one without preemption, under the same terms: mean over the seeds (least to
most). **attempts lost**: leases without a used result. **work done twice**: training that was lost and had to be repeated, as a
share of the job's.
"""


def say(message):
    print(f"preemption: {message}", file=sys.stderr)


def result(sojourn, seed):
    command = [sojourn, "simulate", SCENARIO, "--json", "--seed", str(seed), "--seeds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"preemption: {done.stderr.strip()}")
    return kept.slim(json.loads(done.stdout)["cells"], ["makespan", "lost_share", "busy", "lost"])


class Study:
    """All runs, by what their case is called."""

    def __init__(self, given):
        begun = time.monotonic()
        scenario = tomllib.loads(SCENARIO.read_text(encoding="utf-8"))
        first, count = scenario["seed"], given.seeds or scenario["seeds"]
        with ThreadPoolExecutor(given.jobs) as pool:
            kept_or_run = lambda seed: kept.kept(given.results, f"seed-{seed}", lambda: result(given.sojourn.resolve(), seed))
            results = list(pool.map(kept_or_run, range(first, first + count)))
        self.runs = {}
        for cells in results:
            for cell in cells:
                self.runs.setdefault(cell["row"], []).extend(cell["runs"])
        self.seeds = count
        say(f"{count} seeds: {time.monotonic() - begun:.0f} s")

    def growth(self, group, scheme, share):
        """Minutes that each run takes longer than the same without preemption; none where that wasn't run."""
        runs = self.runs.get(case(group, scheme, share))
        still = self.runs.get(case(group, FIXED if scheme == FIXED else OURS, 0))
        return runs and [(run["makespan"] - without["makespan"]) / 60 for run, without in zip(runs, still)]


def case(group, scheme, share):
    return f"{group}{scheme}, {share:.2f}" if share else f"{group}{scheme}, 0"


def formula(share):
    return SUBTASKS / SLOTS * share * TIME_OUT


def minutes(run):
    """Where the minutes of a slot went, the mean of all: beside the work itself, into what was lost, into machines
    that were away, and into waiting."""
    useful = SUBTASKS * UNIT
    trained = useful / (1 - run["lost_share"])
    there = trained / run["busy"]
    away = SLOTS * run["makespan"] / 60 - there
    return [part / SLOTS for part in (trained - useful, away, there - trained)]


def mean_of(runs, value):
    return statistics.mean(value(run) for run in runs)


def error(values):
    """The standard error of their mean."""
    return statistics.stdev(values) / math.sqrt(len(values))


def spread(values):
    return f"{statistics.mean(values):.0f} ({min(values):.0f} to {max(values):.0f})"


def table(header, rows):
    align = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [header, align, *rows]) + "\n"


def growths(study, group):
    schemes = [scheme for scheme in SCHEMES if study.growth(group, scheme, SHARES[0])]
    rows = []
    for share in SHARES:
        shown = [spread(study.growth(group, scheme, share)) for scheme in schemes]
        rows.append([f"{share:.2f}", f"{formula(share):.0f}", *shown])
    return table(["p", "formula", *schemes], rows)


def parts(study, group):
    rows = []
    for share in SHARES:
        for scheme in SCHEMES:
            runs = study.runs.get(case(group, scheme, share))
            if not runs:
                continue
            lost, away, waiting = (mean_of(runs, lambda run, n=n: minutes(run)[n]) for n in range(3))
            still = study.runs[case(group, FIXED if scheme == FIXED else OURS, 0)]
            before = mean_of(still, lambda run: minutes(run)[2])
            rows.append(
                [
                    f"{share:.2f}, {scheme}",
                    f"{mean_of(runs, lambda run: run['lost']):.0f}",
                    f"{100 * mean_of(runs, lambda run: 1 / (1 - run['lost_share']) - 1):.1f} %",
                    f"{lost:.0f}",
                    f"{away:.0f}",
                    f"{waiting - before:.0f}",
                ]
            )
    header = ["p", "attempts lost", "work done twice", "lost work, min", "machines away, min", "waiting, min"]
    return table(header, rows)


def against(study, group, scheme, share):
    """What a scheme's growth is beside the formula."""
    values, wanted = study.growth(group, scheme, share), formula(share)
    mean, of = statistics.mean(values), error(values)
    named = f"{mean:.0f} ± {of:.0f} min for {wanted:.0f}"
    if abs(mean - wanted) <= 2 * of:
        return True, f"{named}: agrees"
    return False, f"{named}: {abs(mean / wanted - 1) * 100:.0f} % {'more' if mean > wanted else 'less'}"


def conclusions(study):
    lines = []
    for group, words in list(GROUPS.items())[:2]:
        said = [f"p = {share:.2f}: {against(study, group, FIXED, share)[1]}" for share in SHARES]
        lines.append(f"- The formula beside the fixed time-out, {words[0].lower()}{words[1:]} (mean ± standard error): {'; '.join(said)}.")
    for group, words in GROUPS.items():
        for share in SHARES:
            base = study.growth(group, FIXED, share) or study.growth(group, OURS, share)
            others = (OURS, NOTICE) if study.growth(group, FIXED, share) else (NOTICE,)
            beside = "fixed time-out" if len(others) == 2 else "same without notice"
            said = []
            for scheme in others:
                pairs = [mine - other for mine, other in zip(study.growth(group, scheme, share), base)]
                mean, of = statistics.mean(pairs), error(pairs)
                part = 100 * statistics.mean(study.growth(group, scheme, share)) / statistics.mean(base)
                verdict = "a tie" if abs(mean) <= 2 * of else f"{part:.0f} % of it"
                said.append(f"{scheme} {mean:+.0f} ± {of:.0f} min ({verdict})")
            lines.append(f"- {words}, p = {share:.2f}, against the {beside}: {', '.join(said)}.")
    return "\n".join(lines) + "\n"


def attempts(study):
    said = []
    for share in SHARES:
        lost = mean_of(study.runs[case("", FIXED, share)], lambda run: run["lost"])
        said.append(
            f"{lost:.0f} for p = {share:.2f}, where p / (1 - p) of 2000 is {SUBTASKS * share / (1 - share):.0f} and p of "
            f"2000 is {SUBTASKS * share:.0f}"
        )
    return f"- An attempt that replaces a lost one can be lost too; n p leaves that out: {'; '.join(said)}.\n"


def both_lost(study, group):
    lost = lambda group, share: mean_of(study.runs[case(group, OURS, share)], lambda run: run["lost"])
    times = [f"{lost(group, share) / lost('', share):.1f} times for p = {share:.2f}" for share in SHARES]
    return (
        "A machine that is taken away takes both its subtasks with it. The attempts that are lost without notice are,\n"
        f"against the first table, {' and '.join(times)}. The formula counts each subtask alone, and isn't\n"
        "meant for that. A fixed time-out isn't simulated here: a machine that asks for its other slot says what it holds, and\n"
        "would renew it.\n"
    )


def waits(study):
    """What the end of an epoch costs under the fixed time-out, and how long the formula lets each loss take."""
    said = []
    for share in SHARES:
        many, one = (statistics.mean(study.growth(group, FIXED, share)) for group in list(GROUPS)[:2])
        said.append(f"{many - one:.0f} min for p = {share:.2f}")
    return (
        "- The formula lets a slot stand still for a time-out. Really it goes on with other subtasks of the epoch. Only at the "
        "end of an epoch do all wait for what was lost, and there are forty epochs here. Forty ends instead of one "
        f"cost, with the fixed time-out: {', '.join(said)}.\n"
    )


def page(study):
    text = [HEAD]
    for group, words in GROUPS.items():
        text.append(f"## {words}\n")
        if group.startswith("five"):
            text.append(both_lost(study, group))
        text += [f"Growth of training time in minutes, {study.seeds} seeds.\n", growths(study, group)]
        text += ["Where the minutes of a slot went, the mean of all slots and seeds:\n", parts(study, group)]
    text += ["## What agrees, and what doesn't\n", conclusions(study) + attempts(study) + waits(study)]
    text.append(
        "One size of subtask and one time-out were simulated, with equal machines, free links and nothing that hangs. Of the "
        "paper\nonly its formula is compared (section IV.E); its own run of 8 hours lost no machine.\n"
    )
    return "\n".join(text)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sojourn", default=ROOT / "target" / "release" / "sojourn", type=Path)
    options.add_argument("--seeds", type=int, help="fewer than the file says, for a try")
    options.add_argument("--jobs", type=int, default=2, help="seeds at a time")
    kept.options(options, FOLDER, "results/preemption")
    given = options.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    (given.to / "PREEMPTION.md").write_text(page(Study(given)), encoding="utf-8")
    say(f"{given.to / 'PREEMPTION.md'} is written")


if __name__ == "__main__":
    main()
