"""Lets Optuna search: it suggests the trials of a job whose method is "ask-tell", and stops those that do badly.

    python3 examples/search/optuna_search.py examples/search/ask_tell.toml --trials 24

The server knows all trials, so the study is made anew from them: the program may be killed and started again.
"""

import argparse
import json
import time
import tomllib

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState
from search_api import PAUSE, Refused, Search, submitted


def dimensions(table):
    """The dimensions of a job file's table as Optuna has them, by the last word of their names."""
    found = {}
    for key, value in table.items():
        match value:
            case {"choice": values}:
                found[key] = CategoricalDistribution([json.dumps(one) for one in values])
            case {"uniform": [low, high]}:
                found[key] = FloatDistribution(low, high, step=value.get("step"))
            case {"log_uniform": [low, high]}:
                found[key] = FloatDistribution(low, high, log=True)
            case {"int": [low, high]}:
                found[key] = IntDistribution(low, high, step=value.get("step", 1))
            case {"log_int": [low, high]}:
                found[key] = IntDistribution(low, high, log=True)
            case dict():
                found |= dimensions(value)
    return found


def to_optuna(space, choices):
    """The values of one of the job's trials as Optuna's parameters."""
    params = {name.rsplit(".", 1)[-1]: value for name, value in choices.items()}
    for name, dimension in space.items():
        if isinstance(dimension, CategoricalDistribution) and name in params:  # not every trial has all settings
            params[name] = next(text for text in dimension.choices if json.loads(text) == params[name])
    return params


def from_optuna(params):
    return {name: json.loads(value) if isinstance(value, str) else value for name, value in params.items()}


def optimize(study, search, space, wanted, epochs):
    """Asks Optuna for trials as there is room, and tells it each epoch's value, until all trials have ended; the last view."""
    trials, reported = {}, {}
    while True:
        view, pruned = search.view(), []
        for seen in view["trials"]:
            number = seen["trial"]
            if number not in trials:  # an earlier run of this program has added it
                study.enqueue_trial(to_optuna(space, seen["choices"]))
                trials[number] = study.ask(space)
            trial, first = trials[number], reported.get(number, 0)
            if first is None:
                continue
            for epoch, value in enumerate(seen["values"][first:], first + 1):
                if value is not None:
                    trial.report(value, epoch)
            reported[number] = len(seen["values"])
            if seen["state"] in ("running", "waiting"):
                if trial.should_prune():
                    pruned.append(number)
                continue
            reported[number] = None
            if seen["state"] != "finished" or seen["best"] is None:
                study.tell(trial, state=TrialState.FAIL)
            elif seen["epochs"] < epochs:
                study.tell(trial, state=TrialState.PRUNED)
            else:
                study.tell(trial, seen["best"])
        if not view["running"]:
            return view
        for number in pruned:
            try:
                search.change(stop=[number], why="pruned by Optuna")
            except Refused as refused:
                if refused.status != 409:  # it has ended since
                    raise
        left = wanted - view["suggested"]
        asked = [study.ask(space) for _ in range(min(view["room"], left))]
        if view["open"] and (asked or left <= 0):
            add = [{"values": from_optuna(trial.params)} for trial in asked]
            answer = search.change(add=add, end=left <= len(asked), why="suggested by Optuna")
            trials |= zip(answer["added"], asked, strict=True)
        time.sleep(PAUSE)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="the job file")
    parser.add_argument("--job", help="the job's number, if it was submitted")
    parser.add_argument("--trials", type=int, default=24, help="how many trials in all")
    arguments = parser.parse_args()
    with open(arguments.file, "rb") as file:
        job = tomllib.load(file)
    space = dimensions({"model": job["model"][0], "training": job["training"]})
    study = optuna.create_study(
        direction="minimize" if job["search"]["metric"].endswith("loss") else "maximize",
        sampler=optuna.samplers.TPESampler(constant_liar=True),
    )
    search = Search(arguments.job or submitted(arguments.file))
    view = optimize(study, search, space, arguments.trials, job["training"]["epochs"])
    states = [trial.state for trial in study.trials]
    print(f"{len(view['trials'])} trials, {states.count(TrialState.PRUNED)} of them pruned")
    print(f"best: {study.best_value:.4f} with {from_optuna(study.best_params)}")


if __name__ == "__main__":
    main()
