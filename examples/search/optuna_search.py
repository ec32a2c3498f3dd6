"""Lets Optuna search: it suggests the trials of a job whose method is "ask-tell", and stops those that do badly.

    python3 examples/search/optuna_search.py examples/search/ask_tell.toml --trials 24

The server knows all trials, so the study is made anew from them: the program may be killed and started again.
"""

import argparse

import optuna
import sojourn
from optuna.trial import TrialState
from sojourn.adapters.spaces import params_of, to_optuna, values_of


def optimize(study, job, space, epochs):
    """Asks Optuna for trials as there is room, and tells it each epoch's value, until all trials have ended."""
    trials, reported = {}, {}
    for seen in job.watch():
        for one in seen:
            if one.trial not in trials:  # an earlier run of this program has added it
                study.enqueue_trial(params_of(one.values))
                trials[one.trial] = study.ask(space)
            trial, first = trials[one.trial], reported.get(one.trial, 0)
            if first is None:
                continue
            for epoch, value in enumerate(one.curve[first:], first + 1):
                if value is not None:
                    trial.report(value, epoch)
            reported[one.trial] = len(one.curve)
            if not one.has_ended:
                if trial.should_prune():
                    job.stop(one.trial, why="pruned by Optuna")
                continue
            reported[one.trial] = None
            if one.state != "finished" or one.value is None:
                study.tell(trial, state=TrialState.FAIL)
            elif one.epochs < epochs:
                study.tell(trial, state=TrialState.PRUNED)
            else:
                study.tell(trial, one.value)
        for _ in range(job.room):
            trial = study.ask(space)
            trials[job.ask(values_of(trial.params), why="suggested by Optuna")] = trial


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="the job file")
    parser.add_argument("--trials", type=int, default=24, help="how many trials in all")
    arguments = parser.parse_args()
    search = sojourn.Search.from_toml(arguments.file)
    job = sojourn.ask_tell(search, trials=arguments.trials)
    study = optuna.create_study(direction=job.direction, sampler=optuna.samplers.TPESampler(constant_liar=True))
    optimize(study, job, to_optuna(search.dimensions()), job.job.detail()["spec"]["training"]["epochs"])
    states = [trial.state for trial in study.trials]
    print(f"{len(states)} trials, {states.count(TrialState.PRUNED)} of them pruned")
    print(f"best: {study.best_value:.4f} with {values_of(study.best_params)}")


if __name__ == "__main__":
    main()
