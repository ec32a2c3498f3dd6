"""A scenario file's results for proofs.py: runs them or takes them from a folder, and shows them as tables and charts."""

import json
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

import kept
from barchart import bars

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "examples" / "scheduling"
CHARTS = "proofs"
# What the page shows of a cell, and of a run.
OF_CELLS = ["row", "policy", "makespan", "ratio", "normalised"]
OF_RUNS = [
    "seed", "makespan", "capacity", "lost_share", "twice_share", "departures", "shard_bytes", "checkpoints_up", "checkpoints_down", "jobs",
]  # fmt: skip
SCRIPTS = Path(__file__).resolve().parent
SOLVER = ROOT / ".cache" / "solver" / "bin" / "python"


def say(message):
    print(f"proofs: {message}", file=sys.stderr)


def seed_count(cell):
    """The number of a cell's runs; where only their means are kept, as one run, it is said."""
    return cell.get("seeds", len(cell["runs"]))


class Study:
    """One scenario file's cells, by row and policy, and what deciding took."""

    def __init__(self, given, name):
        result = kept.kept(given.results, name, lambda: run(given.sojourn, name, given.seeds))
        self.name, self.to = name, given.to
        self.cells = {(cell["row"], cell["policy"]): cell for cell in result["cells"]}
        self.rows = list(dict.fromkeys(row for row, _ in self.cells))
        self.policies = list(dict.fromkeys(policy for _, policy in self.cells))
        self.times = dict(zip(self.cells, result["times"]))
        self.scenario = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))

    def mean(self, row, policy, value):
        runs = self.cells[row, policy]["runs"]
        return sum(value(run) for run in runs) / len(runs)

    def deciding(self, row, policy):
        return self.times[row, policy]

    def head(self):
        """The file, its seeds, its policies, and where trials may go."""
        counts = {row: seed_count(self.cells[row, self.policies[0]]) for row in self.rows}
        most = max(counts.values())
        fewer = [f"{count} in {row}" for row, count in counts.items() if count < most]
        seeds = f"{most} seed{'s' if most > 1 else ''}" + (f" ({', '.join(fewer)})" if fewer else "")
        names = [f"`{policy}`" for policy in self.policies]
        policies = f"Polic{'ies' if len(names) > 1 else 'y'} {', '.join(names)}"
        default = ", the server's default" if self.policies == ["rollout"] else ""
        return f"`{self.name}.toml`, {seeds}. {policies}{default}; {self.reproducible()}."

    def reproducible(self):
        """What the rows say of `reproducible`."""
        base = self.scenario.get("job", {}).get("reproducible", False)
        cases = [case.get("job", {}).get("reproducible", base) for case in self.scenario.get("case", [])]
        if not any([base, *cases]):
            return "`reproducible = false`, a scenario's default: any host may train any trial"
        if cases and not all(cases):
            return "`reproducible = true` in the rows that say so, `false` in the others"
        return "`reproducible = true`"


def run(sojourn, name, seeds):
    """The cells that a scenario file gives, and the real time of deciding of each."""
    say(f"{name} ...")
    begun = time.monotonic()
    command = [sojourn, "simulate", FOLDER / f"{name}.toml"] + (["--seeds", str(seeds)] if seeds else [])
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run([*command, "--out", out], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"proofs: {name}: {done.stderr.strip()}")
        cells = json.loads((Path(out) / "result.json").read_text(encoding="utf-8"))["cells"]
    say(f"{name}: {time.monotonic() - begun:.0f} s")
    return {"cells": kept.slim(cells, OF_RUNS, OF_CELLS), "times": real_times(done.stdout)}


def planned_gangs(given, summary):
    """What gang_study.py measures, in the environment that scripts/solver.py makes."""

    def make():
        if not SOLVER.exists():
            sys.exit("proofs: there is no solver: run `make -C examples gangs` first")
        say("gangs ...")
        seeds = ["--seeds", str(given.seeds)] if given.seeds else []
        with tempfile.TemporaryDirectory() as out:
            file = Path(out) / "gangs.json"
            command = [SOLVER, SCRIPTS / "gang_study.py", "--sojourn", given.sojourn, "--out", file, *seeds]
            if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode != 0:
                sys.exit("proofs: gang_study.py failed")
            return summary(json.loads(file.read_text(encoding="utf-8")))

    return kept.kept(given.results, "gangs", make)


def real_times(printed):
    """Seconds of deciding and planning of each line of the table: real time, so only printed."""
    header, *lines = [re.split(r"\s{2,}", line.strip()) for line in printed.strip().splitlines()]
    columns = [n for n, name in enumerate(header) if name in ("deciding", "planning")]
    return [sum(float(line[n].removesuffix(" s").replace(",", "")) for n in columns) for line in lines]


def tenths(value):
    """With one digit, and never as -0.0."""
    return f"{round(value, 1) + 0.0:.1f}"


def table(header, rows, words=()):
    """Numbers to the right; columns whose headers are among `words` to the left."""
    align = ["---" if n == 0 or name in words else "---:" for n, name in enumerate(header)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [header, align, *rows]) + "\n"


def spread(cell, key, digits=3):
    of = cell[key]
    return f"{of['mean']:.{digits}f} ({of['min']:.{digits}f} to {of['max']:.{digits}f})"


def chart(study, file, title, groups, values, least):
    folder = study.to / CHARTS
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(bars(title, groups, values, least), encoding="utf-8")
    return f"![{title}]({CHARTS}/{file})\n"


def series(study, key):
    def of(row, policy):
        cell = study.cells.get((row, policy))
        return cell and tuple(cell[key][part] for part in ("mean", "min", "max"))

    return {policy: [of(row, policy) for row in study.rows] for policy in study.policies}


def milp_note(study):
    """How long `milp` had, and where it is missing or is what it started from."""
    if "milp" not in study.policies:
        return "`milp` is missing: the program was built without it.\n"
    limit = f"`milp` plans within {study.scenario['server']['milp_limit']} s of real time, beside other work, from what `ltrp` plans"
    if any((row, "milp") not in study.cells for row in study.rows):
        return f"{limit}. It is left out where that is too short for it to find a better plan, or its program is too large to be built.\n"
    return f"{limit}; where it finds nothing better, or its program is too large to be built, that is what it gives.\n"
