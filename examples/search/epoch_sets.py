"""A search procedure of your own, epoch by epoch: change `next_set`. The job's method is "epochs".

    python3 examples/search/epoch_sets.py examples/search/epochs.toml

All that it knows is in the server's view of the search, so it may be killed and started again.
"""

import argparse
import time
from math import inf
from random import Random

from search_api import PAUSE, Search, submitted

SET = 8  # trials that train at a time


def next_set(results, random):
    """The next set of trials, which train for one epoch each: numbers of those that go on, and new ones.

    `results` are those of the set before, the lowest loss first; there are none at first. The others of them stop; where
    nothing goes on and nothing is new, the search ends.

    Here the better half go on. Each of the others is replaced by a clone of one of these, which goes on from its weights
    with another learning rate: population-based training, with truncation selection.
    """
    if not results:
        return [], [{"values": {"lr": 10 ** random.uniform(-5, -1)}} for _ in range(SET)]
    better = results[: (len(results) + 1) // 2]
    clones = [(one, one["choices"]["training.optimizer.lr"] * random.choice([0.5, 2.0])) for one in better]
    new = [{"from": one["trial"], "values": {"lr": min(max(lr, 1e-5), 1e-1)}} for one, lr in clones]
    return [one["trial"] for one in better], new[: SET - len(better)]


def loss(trial):
    """A trial's last loss; one that is no number is the worst."""
    last = trial["values"][-1] if trial["values"] else None
    return inf if last is None else last


def run(search):
    """Asks for sets until the search has ended; the last view."""
    while (view := search.view())["running"]:
        states = {trial["trial"]: trial["state"] for trial in view["trials"]}
        if "running" in states.values():
            time.sleep(PAUSE)
            continue
        waiting = sorted((one for one in view["trials"] if one["state"] == "waiting"), key=loss)
        if states and not waiting:
            search.change(end=True, why="the set has trained all epochs")
            continue
        # The same results give the same set, also where this program has started again.
        go_on, new = next_set(waiting, Random(len(states)))
        search.change(
            go_on=[{"trial": one["trial"], "epochs": one["epochs"] + 1} for one in waiting if one["trial"] in go_on],
            stop=[one["trial"] for one in waiting if one["trial"] not in go_on],
            add=new,
            end=not go_on and not new,
            why="the next set of epoch_sets.py",
        )
    return view


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="the job file")
    view = run(Search(submitted(parser.parse_args().file)))
    best = min(view["trials"], key=lambda trial: inf if trial["best"] is None else trial["best"])
    print(f"{len(view['trials'])} trials; best: {best['best']:.4f}, trial {best['trial']} with {best['choices']}")


if __name__ == "__main__":
    main()
