"""The part of PROOFS.md that holds the Cerebro thesis' program, schedules without a plan and the server's policy side by side."""

from study import table

# The makespans that the thesis reports, case by case (Figures 4.1 to 4.3): seconds of its random scheduler, of multi-GPU MOP and of its MILP.
REPORTED = {"6 on 8x2": (8603, 15926, 7967), "6 on 4+2+2": (5252, 7780, 5255), "10 on 4+2+2": (8956, 10172, 8995)}
# What hops do in schedules without a plan. The last two are the thesis' multi-GPU MOP and its random scheduler.
READINGS = {"random": "a random strategy", "one GPU": "one GPU each", "whole node": "all GPUs of the node"}
MOP, RANDOM = "one GPU", "whole node"
CLOSED = 1e-4  # HiGHS calls a plan the best when it is so close to the bound


def mean(values):
    return sum(values) / len(values)


def percent(ratio):
    return f"{100 * ratio:.1f} %"


def reported(case):
    """The thesis' makespan of multi-GPU MOP over that of its random scheduler, and that of its MILP over the same."""
    random, mop, milp = REPORTED[case]
    return mop / random, milp / random


def summary(figures):
    """The figures of gang_study.py's problems that the page shows, by case and costs."""
    kinds = {}
    for one in figures["problems"]:
        kinds.setdefault((one["case"], one["costs"]), []).append(one)
    shorter = [best_size(one)["makespan"] < one["plan"] * (1 - CLOSED) for one in figures["problems"]]
    return {key: figures[key] for key in ("draws", "seeds", "seconds")} | {
        "problems": len(shorter),
        "shorter": sum(shorter),
        "kinds": [of_kind(*kind, of) for kind, of in kinds.items()],
    }


def best_size(one):
    """The server's policy at the size of gangs that suits a problem best."""
    return min(one["served"].values(), key=lambda run: run["makespan"])


def of_kind(case, costs, of):
    gaps = [max(0, one["plan"] / one["bound"] - 1) for one in of]
    ratios = {reading: [one["means"][reading] / one["plan"] for one in of] for reading in READINGS}
    best = [best_size(one) for one in of]
    return {
        "case": case,
        "costs": costs,
        "problems": len(of),
        "binaries": of[0]["binaries"],
        "rows": of[0]["rows"],
        "proved": sum(gap <= CLOSED for gap in gaps),
        "gap": [mean(gaps), max(gaps)],
        "took": mean([one["took"] for one in of]),
        "over_plan": {reading: [mean(values), min(values), max(values)] for reading, values in ratios.items()},
        "served": {str(size): mean([one["served"][size]["makespan"] / one["plan"] for one in of]) for size in of[0]["served"]},
        "best_size": mean([run["makespan"] / one["plan"] for run, one in zip(best, of)]),
        "best_size_over_bound": mean([run["makespan"] / run["bound"] for run in best]),
    }


def platform(figures):
    return [*program(figures), *gains(figures), *served(figures)]


def program(figures):
    """What is planned, and how far HiGHS comes."""
    lines = []
    for of in figures["kinds"]:
        proved = f"{of['proved']} of {of['problems']}"
        size = [f"{of[part]:,}" for part in ("binaries", "rows")]
        lines.append([of["case"], of["costs"], *size, proved, *map(percent, of["gap"]), f"{of['took']:.1f} s"])
    return [
        "The thesis (section 4.3, equations 4.1 to 4.14) plans more: each task's strategy, its gang of GPUs, their starts and their "
        "order, in one mixed-integer program. `examples/scripts/program.py` is that program with two mends: there is one start for "
        "each task and node, and of two tasks that share a GPU one order is demanded. A task trains a model for an epoch. There is a "
        "shard for each GPU. A hop is a task's training on all shards of a node. A task has one hop on each node, in any order, and "
        "never two at once. That each hop chooses its own strategy is our choice, because nodes differ.\n",
        "The thesis doesn't list its models and times; these are ours. A GPU has 11.3 TFLOP/s, and an epoch 50,000 rows, as in "
        "`3-thesis.toml`. Costs are `drawn` from its table without repetition, or `equal` for all tasks (4,000 MFLOPs a row). A "
        "hop takes one GPU, or two or four of a node that has them, by one of three strategies (data parallel, fully sharded, "
        "pipeline). Each further GPU adds 0.5 to 0.95 of the first one's speed, drawn for each task, strategy and number of GPUs. "
        "The thesis assumes a linear speed-up (equation 4.15). "
        f"{figures['seeds']} seeds. HiGHS has one thread and {figures['seconds']:.0f} s of real time for each problem, beside "
        "other work. It begins with the best of the schedules without a plan, which follow. On another machine it may find other "
        "plans. The gap is between its plan and its lower bound of all schedules:\n",
        table(["case", "costs", "binaries", "rows", "proved the best", "gap, mean", "largest", "time, mean"], lines, ["costs"]),
    ]


def gains(figures):
    """What plans gain over schedules without one, beside the thesis' two schedulers without a plan."""
    lines, beside, saved = [], [], {}
    for of in figures["kinds"]:
        case, costs, over = of["case"], of["costs"], of["over_plan"]
        lines.append([case, costs, *("{:.2f} ({:.2f} to {:.2f})".format(*over[reading]) for reading in READINGS)])
        here, (there, milp) = over[MOP][0] / over[RANDOM][0], reported(case)
        saved[case, costs] = 100 * (1 - 1 / over[RANDOM][0])
        beside.append([case, costs, f"{there:.2f}", f"{here:.2f}", f"{100 * (1 - milp):+.1f} %", f"{saved[case, costs]:+.1f} %"])
    heads = list(READINGS.values())
    return [
        "Without a plan a random hop is started whenever its task and enough GPUs of its node are free. All hops take a random "
        "strategy, or one GPU, or all GPUs of the node by their fastest strategy. Makespan over that of the plan: for each seed "
        f"the mean of {figures['draws']} draws, and of the seeds the mean (least to most):\n",
        table(["case", "costs", *heads], lines, ["costs"]),
        "The thesis' random scheduler gives a task all GPUs of a node; its multi-GPU MOP gives it one GPU, and the task visits all "
        "(section 4.4). So its makespan of MOP over that of random stands beside the second column over the third, and what its "
        "MILP saves of random beside what the plan saves of the third:\n",
        table(["case", "costs", "MOP over random, there", "here", "MILP saves, there", "the plan saves, here"], beside, ["costs"]),
        "The speed-up here isn't linear, which makes the first ratio smaller; costs that differ make it larger, as the rows show. There the MILP "
        "had 300 s and hadn't converged in any of the three cases. With it the thesis saves 7.4 % in one case, which it calls quite "
        f"close, and nothing in the others; here the plan saves {min(saved.values()):.1f} to {max(saved.values()):.1f} %.\n",
    ]


def served(figures):
    """What the server's policy makes of the same hops."""
    lines = []
    for of in figures["kinds"]:
        cells = [f"{of['served'][size]:.2f}" if size in of["served"] else "" for size in ("1", "2", "4")]
        lines.append([of["case"], of["costs"], *cells, f"{of['best_size']:.3f}", f"{of['best_size_over_bound']:.3f}"])
    at_best, over_bound = ([of[key] for of in figures["kinds"]] for key in ("best_size", "best_size_over_bound"))
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
        f"at most {max(over_bound):.3f} times its bound for that size: what it loses is {lost}. In {figures['shorter']} of "
        f"{figures['problems']} problems it is shorter than HiGHS' plan, which isn't proved the best in these.\n",
    ]
