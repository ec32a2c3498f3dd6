"""Optuna suggests the trials of a job, in forty lines: optuna_search.py also prunes, and lives through being killed.

    python3 examples/search/optuna_short.py examples/search/ask_tell.toml 24
"""

import json
import sys
import time

import optuna
from search_api import PAUSE, Search, submitted

HIDDEN = ["[16]", "[64]", "[64, 32]"]


def suggested(trial):
    """The dimensions of ask_tell.toml."""
    return {
        "hidden": json.loads(trial.suggest_categorical("hidden", HIDDEN)),
        "dropout": trial.suggest_float("dropout", 0.0, 0.5),
        "batch_size": trial.suggest_categorical("batch_size", [16, 32, 64]),
        "lr": trial.suggest_float("lr", 1e-5, 1e-1, log=True),
    }


file, wanted = sys.argv[1], int(sys.argv[2])
search, asked = Search(submitted(file)), {}
# Trials that run count as bad, so that several are suggested at once.
study = optuna.create_study(sampler=optuna.samplers.TPESampler(constant_liar=True))
running = True
while running:
    view = search.view()
    running = view["running"]
    for seen in view["trials"]:
        if seen["state"] not in ("running", "waiting") and seen["trial"] in asked:
            study.tell(asked.pop(seen["trial"]), seen["best"])
    room = min(view["room"], wanted - view["suggested"])
    if view["open"] and room > 0:
        trials = [study.ask() for _ in range(room)]
        last = view["suggested"] + room == wanted
        answer = search.change(add=[{"values": suggested(trial)} for trial in trials], end=last)
        asked |= zip(answer["added"], trials, strict=True)
    time.sleep(PAUSE)
print(f"best: {study.best_value:.4f} with {study.best_params}")
