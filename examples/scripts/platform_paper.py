"""The part of PROOFS.md that holds the platform paper's program, schedules without a plan and the server's policy side by side."""

from study import table

# What the paper's plans gain over its random schedules, case by case.
REPORTED = {"6 on 8x2": 1.85, "6 on 4+2+2": 1.48, "10 on 4+2+2": 1.14}
# What hops do in schedules without a plan.
READINGS = {"random": "a random strategy", "one GPU": "one GPU each", "whole node": "all GPUs of the node"}
CLOSED = 1e-4  # HiGHS calls a plan the best when it is so close to the bound


def mean(values):
    return sum(values) / len(values)


def percent(ratio):
    return f"{100 * ratio:.1f} %"


def platform(figures):
    kinds = {}
    for one in figures["problems"]:
        kinds.setdefault((one["case"], one["costs"]), []).append(one)
    return [*program(figures, kinds), *gains(figures, kinds), *served(kinds)]


def program(figures, kinds):
    """What is planned, and how far HiGHS comes."""
    lines = []
    for kind, of in kinds.items():
        gaps = [max(0, one["plan"] / one["bound"] - 1) for one in of]
        proved = f"{sum(gap <= CLOSED for gap in gaps)} of {len(of)}"
        size = [f"{of[0][part]:,}" for part in ("binaries", "rows")]
        lines.append([*kind, *size, proved, percent(mean(gaps)), percent(max(gaps)), f"{mean([one['took'] for one in of]):.1f} s"])
    return [
        "The platform paper (2023, section 4.3, equations 4.1 to 4.14) plans more: each task's strategy, its gang of GPUs, their "
        "starts and their order, in one mixed-integer program. `examples/scripts/program.py` is that program with two mends: there "
        "is one start for each task and node, and of two tasks that share a GPU one order is demanded. A task trains a model for "
        "an epoch. There is a shard for each GPU. A hop is a task's training on all shards of a node. A task has one hop on each "
        "node, in any order, and never two at once. The paper's text isn't at hand: that a hop is on a node follows from the first "
        "mend. That each hop chooses its own strategy is our choice, because nodes differ.\n",
        "The paper's models and times aren't at hand either; these are ours. A GPU has 11.3 TFLOP/s, and an epoch 50,000 rows, as "
        "in `3-thesis.toml`. Costs are `drawn` from its table without repetition, or `equal` for all tasks (4,000 MFLOPs a row). A "
        "hop takes one GPU, or two or four of a node that has them, by one of three strategies (data parallel, fully sharded, "
        "pipeline). Each further GPU adds 0.5 to 0.95 of the first one's speed, drawn for each task, strategy and number of GPUs. "
        f"{figures['seeds']} seeds. HiGHS has one thread and {figures['seconds']:.0f} s of real time for each problem, beside "
        "other work. It begins with the best of the schedules without a plan, which follow. On another machine it may find other "
        "plans. The gap is between its plan and its lower bound of all schedules:\n",
        table(["case", "costs", "binaries", "rows", "proved the best", "gap, mean", "largest", "time, mean"], lines, ["costs"]),
    ]


def gains(figures, kinds):
    """What plans gain over schedules without one, and which reading of these comes nearest to the paper."""
    lines, off = [], {}
    for (case, costs), of in kinds.items():
        cells = []
        for reading in READINGS:
            ratios = [one["means"][reading] / one["plan"] for one in of]
            cells.append(f"{mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
            off.setdefault((costs, reading), []).append(abs(mean(ratios) / REPORTED[case] - 1))
        lines.append([case, costs, f"{REPORTED[case]:.2f}", *cells])
    heads = [f"{words}, here" for words in READINGS.values()]
    (costs, nearest), apart = min(off.items(), key=lambda item: max(item[1]))
    with_random = {kind: max(off[kind, "random"]) for kind in ("drawn", "equal")}
    seen = "are" if min(with_random.values()) <= 0.05 else "aren't"
    return [
        "Without a plan a random hop is started whenever its task and enough GPUs of its node are free. All hops take a random "
        "strategy, or one GPU, or all GPUs of the node by their fastest strategy. Makespan over that of the plan: for each seed "
        f"the mean of {figures['draws']} draws, and of the seeds the mean (least to most):\n",
        table(["case", "costs", "multi-GPU MOP over random, there", *heads], lines, ["costs"]),
        f"With random strategies the paper's three figures {seen} seen here: those of here are off by up to "
        f"{100 * with_random['drawn']:.0f} % with drawn costs, and by up to {100 * with_random['equal']:.0f} % with equal ones. Of "
        f"the {len(off)} readings the nearest in all three cases is {READINGS[nearest]} with {costs} costs: off by "
        f"{', '.join(f'{100 * one:.0f} %' for one in apart)}. Whether the paper's random schedules were like that isn't known "
        "here.\n",
    ]


def served(kinds):
    """What the server's policy makes of the same hops."""
    lines, at_best, over_bound, shorter = [], [], [], 0
    for kind, of in kinds.items():
        sizes = {size: mean([one["served"][size]["makespan"] / one["plan"] for one in of]) for size in of[0]["served"]}
        best = [min(one["served"].values(), key=lambda run: run["makespan"]) for one in of]
        at_best.append(mean([run["makespan"] / one["plan"] for run, one in zip(best, of)]))
        over_bound.append(mean([run["makespan"] / run["bound"] for run in best]))
        shorter += sum(run["makespan"] < one["plan"] * (1 - CLOSED) for run, one in zip(best, of))
        cells = [f"{sizes[size]:.2f}" if size in sizes else "" for size in ("1", "2", "4")]
        lines.append([*kind, *cells, f"{at_best[-1]:.3f}", f"{over_bound[-1]:.3f}"])
    lost = "more in the sizes of gangs than in the order" if max(over_bound) < max(at_best) else "not in the sizes of gangs alone"
    return [
        "Sojourn doesn't choose gangs, and a trainer sees one GPU alone. But a slot of the simulator may stand for a gang, and all "
        "slots of a host for gangs of one size. So `rollout` gets the same hops, with times that are known (`estimates = "
        "\"known\"`). The size of the gangs is given, the same for all tasks: one GPU, two, or four on the node that has four and "
        "two on the others. Each task has its fastest strategy for it. `rollout` chooses the order alone. Its schedules are among "
        "those of the program, and pass the same check of every hop and GPU. Its makespan over that of the plan: for each size, "
        "and for the best size of each seed; and that over the simulator's lower bound for this size. Means of the seeds:\n",
        table(["case", "costs", "one GPU", "two GPUs", "four GPUs", "best size", "best size over its bound"], lines, ["costs"]),
        f"At the best size `rollout` takes {min(at_best):.3f} to {max(at_best):.3f} times as long as the plan in these means, and "
        f"at most {max(over_bound):.3f} times its bound for that size: what it loses is {lost}. In {shorter} of "
        f"{sum(map(len, kinds.values()))} problems it is shorter than HiGHS' plan, which isn't proved the best in these.\n",
    ]
