"""A search procedure of your own, epoch by epoch: change `next_set`. The job's method is "epochs".

    python3 examples/search/epoch_sets.py examples/search/epochs.toml

All that it knows is in the server's view of the search, so it may be killed and started again.
"""

import argparse
from math import inf
from random import Random

import sojourn

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
    clones = [(one, one.values["lr"] * random.choice([0.5, 2.0])) for one in better]
    new = [{"from": one.trial, "values": {"lr": min(max(lr, 1e-5), 1e-1)}} for one, lr in clones]
    return [one.trial for one in better], new[: SET - len(better)]


def loss(trial):
    """A trial's last loss; one that is no number is the worst."""
    last = trial.curve[-1] if trial.curve else None
    return inf if last is None else last


def run(study):
    """Asks for sets until the search has ended."""
    for trials in study.watch():
        if any(one.state == "running" for one in trials):
            continue
        waiting = sorted((one for one in trials if one.state == "waiting"), key=loss)
        if trials and not waiting:
            study.end()
            continue
        # The same results give the same set, also where this program has started again.
        go_on, new = next_set(waiting, Random(len(trials)))
        study.job.change(
            go_on=[{"trial": one.trial, "epochs": one.epochs + 1} for one in waiting if one.trial in go_on],
            stop=[one.trial for one in waiting if one.trial not in go_on],
            add=new,
            end=not go_on and not new,
            why="the next set of epoch_sets.py",
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="the job file")
    study = sojourn.ask_tell(parser.parse_args().file)
    run(study)
    trials = study.trials()
    best = min(trials, key=lambda trial: inf if trial.value is None else trial.value)
    print(f"{len(trials)} trials; best: {best.value:.4f}, trial {best.trial} with {best.values}")


if __name__ == "__main__":
    main()
