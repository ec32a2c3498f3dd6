#!/usr/bin/env python3
"""Solves the three cases of the Cerebro thesis (2023), and runs schedules without a plan and the server's own policy beside.

`make -C examples gangs` makes an environment with HiGHS for this, and calls it with `--check`: small problems of which all
schedules can be tried. `proofs.py` calls it for the figures; `cerebro.py` says what they show.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path

sys.dont_write_bytecode = True  # a checkout stays as it is
from gangs import CASES, CHOICES, GANGS, ROWS, TFLOPS, Problem, Slice, Strategy  # noqa: E402
from gangs import check, draw, makespan, problem, quickest  # noqa: E402
from program import in_order, plan  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
MILLISECOND = 2e-3  # seconds that times in events may be off by: they are whole milliseconds
DRAWS = 100  # schedules of each kind without a plan
SEEDS, SECONDS = 20, 20  # problems of each kind, and HiGHS' time for each


def say(message):
    print(f"gangs: {message}", file=sys.stderr, flush=True)


def solved(sojourn, case, costs, seed, seconds):
    """One problem: makespans of all kinds of schedules, each of them checked."""
    of, chance = problem(case, costs, seed), random.Random(seed)
    drawn = {choice: [draw(of, choice, chance) for _ in range(DRAWS)] for choice in CHOICES}
    every = [slices for kind in drawn.values() for slices in kind]
    begun = time.monotonic()
    planned, bound, size = plan(of, min(every, key=makespan), seconds)
    took = time.monotonic() - begun
    for slices in [*every, planned]:
        check(of, slices)
    means = {choice: sum(map(makespan, kind)) / DRAWS for choice, kind in drawn.items()}
    gangs = [gang for gang in (1, *GANGS) if gang <= max(of.nodes)]
    served = {gang: rollout(sojourn, of, gang) for gang in gangs}
    say(f"{case}, {costs} costs, seed {seed}: {makespan(planned):.2f} s, at least {bound:.2f} s; {took:.0f} s")
    return {"case": case, "costs": costs, "seed": seed, "plan": makespan(planned), "bound": bound, "took": took} | {
        "means": means, "served": served, **size
    }


def rollout(sojourn, of, gang):
    """What the server's policy takes where each node has its GPUs in gangs of this size; and the simulator's bound for that."""
    chosen = {hop: quickest(choices, gang) for hop, choices in of.strategies.items()}
    # The server measures models, not tasks. So tasks that cost the same get costs of their own, and speeds that make up for it.
    costs = {task: 1000 * 1.1**n for n, task in enumerate(of.tasks)}
    lines = ['estimates = "known"', "[server]", 'policy = "rollout"']
    sizes = [chosen[of.tasks[0], node].gpus for node in range(len(of.nodes))]
    for node, (gpus, size) in enumerate(zip(of.nodes, sizes)):
        tflops, rows = TFLOPS * size, shard_rows(of)[node]
        speeds = [f'"{task}" = {costs[task] * rows / (tflops * 1e6) / chosen[task, node].seconds}' for task in of.tasks]
        lines += ["[[hosts]]", f"tflops = {tflops}", f"gpus = {gpus // size}", f"speed_by_model = {{ {', '.join(speeds)} }}"]
    lines += ["[job]", 'costs = "costs.csv"', 'pick = "cycle"', f"trials = {len(costs)}", f"rows = {ROWS}"]
    lines += [f"shards = {len(of.nodes)}", 'placement = "pinned"', 'shard_sizes = "speed"']
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "costs.csv").write_text("".join(f"{task},{cost}\n" for task, cost in costs.items()), encoding="utf-8")
        (folder / "gangs.toml").write_text("\n".join(lines), encoding="utf-8")
        command = [sojourn, "simulate", folder / "gangs.toml", "--out", folder / "out"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"gangs: {done.stderr.strip()}")
        (cell,) = json.loads((folder / "out" / "result.json").read_text(encoding="utf-8"))["cells"]
        events = [json.loads(line) for line in (folder / "out" / "events.jsonl").open(encoding="utf-8")]
    check(of, as_slices(of, chosen, events), MILLISECOND)
    return {"makespan": cell["runs"][0]["makespan"], "bound": cell["runs"][0]["bound"]}


def as_slices(of, chosen, events):
    """The schedule that a run's events tell. Their times are whole milliseconds."""
    hops, ended = {}, []
    for event in (entry["event"] | {"at": entry["at"] / 1e3} for entry in events):
        if unit := event.get("lease-granted", {}).get("unit", {}).get("train"):
            hops[event["lease-granted"]["lease"]] = (of.tasks[unit["trial"]], unit["shard"])
        report = event.get("report-acknowledged", {}).get("report", {})
        if trained := report.get("outcome", {}).get("trained"):
            ended.append((event["at"] - trained["train_micros"] / 1e6, trained["train_micros"] / 1e6, hops[report["lease"]]))
    free = {(node, gpu): 0.0 for node, gpus in enumerate(of.nodes) for gpu in range(gpus)}
    slices = []
    for start, took, hop in sorted(ended):
        task, node = hop
        gang = [gpu for gpu in range(of.nodes[node]) if free[node, gpu] <= start + MILLISECOND][: chosen[hop].gpus]
        slices += [Slice(task, node, gpu, chosen[hop].name, start, start + took) for gpu in gang]
        free.update({(node, gpu): start + took for gpu in gang})
    return slices


def shard_rows(of):
    """Rows that each node has."""
    return [ROWS * gpus // sum(of.nodes) for gpus in of.nodes]


def least(of):
    """The least makespan of a small problem: all strategies, gangs and orders are tried."""
    hops = list(of.strategies)
    gangs = {hop: [list(range(first, first + one.gpus)) for one in choices for first in range(of.nodes[hop[1]] - one.gpus + 1)]
             for hop, choices in of.strategies.items()}
    best = float("inf")
    for held in product(*gangs.values()):
        of_hop = dict(zip(hops, held))
        chosen = {hop: quickest(of.strategies[hop], len(gang)) for hop, gang in of_hop.items()}
        best = min([best, *(makespan(in_order(chosen, of_hop, order)) for order in permutations(hops))])
    return best


def small(seed):
    """Few tasks on nodes of at most two GPUs."""
    chance = random.Random(seed)
    nodes, tasks = chance.choice([((2, 1), ("a", "b", "c")), ((2, 2), ("a", "b")), ((1, 2, 1), ("a", "b"))])
    strategies = {}
    for hop in product(tasks, range(len(nodes))):
        alone = chance.randint(2, 20)
        strategies[hop] = [Strategy("one GPU", 1, float(alone))]
        if nodes[hop[1]] == 2:
            strategies[hop].append(Strategy("both", 2, alone / chance.uniform(1.2, 1.9)))
    return Problem(nodes, tasks, strategies)


def refused(of, slices):
    """If the check finds the fault."""
    try:
        check(of, slices)
    except ValueError:
        return True
    return False


def self_check():
    for seed in range(20):
        of, chance = small(seed), random.Random(seed)
        planned, bound, _ = plan(of, draw(of, "one GPU", chance), 60)
        check(of, planned)
        best = least(of)
        if abs(makespan(planned) - best) > 1e-3 or bound > best + 1e-3:
            sys.exit(f"gangs: small problem {seed}: planned {makespan(planned)}, bound {bound}, the best is {best}")
    of = problem("6 on 4+2+2", "drawn", 0)
    slices = draw(of, "whole node", random.Random(0))
    check(of, slices)
    first, *others = sorted(slices, key=lambda part: part.start)
    later = lambda part, by: replace(part, start=part.start + by, end=part.end + by)
    last = max(slices, key=lambda part: part.end)
    of_last = [part for part in slices if (part.task, part.node) == (last.task, last.node)]
    rest = [part for part in slices if part not in of_last]
    faults = {
        "a hop that isn't done": rest,
        "a gang that lacks a GPU": others,
        "a gang that doesn't start together": [later(first, 0.5), *others],
        "a GPU that its node hasn't": [replace(first, gpu=9), *others],
        "a GPU twice in a gang": [replace(first, gpu=others[0].gpu), *others],
        "a strategy that there isn't": [replace(part, strategy="none") for part in slices],
        "a hop that takes too short": [replace(part, end=part.end - 0.5) for part in of_last] + rest,
        "a GPU with two hops at once": [later(part, -0.5) for part in of_last] + rest,
        "a start before time 0": [later(part, -0.5) for part in slices],
    }
    for fault, of_it in faults.items():
        if not refused(of, of_it):
            sys.exit(f"gangs: the check doesn't find {fault}")
    say(f"20 small problems are solved, {len(faults)} faults are found")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="small problems only")
    options.add_argument("--sojourn", default=ROOT / "target" / "release" / "sojourn", type=Path)
    options.add_argument("--seeds", type=int, default=SEEDS)
    options.add_argument("--seconds", type=float, default=SECONDS, help="HiGHS' time for each problem")
    options.add_argument("--out", type=Path, help="where the figures go, as JSON")
    given = options.parse_args()
    os.nice(10)
    if given.check:
        self_check()
        return
    kinds = product(CASES, ("drawn", "equal"), range(given.seeds))
    problems = [solved(given.sojourn.resolve(), *kind, given.seconds) for kind in kinds]
    figures = {"draws": DRAWS, "seeds": given.seeds, "seconds": given.seconds, "problems": problems}
    if given.out:
        given.out.write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
