"""Optuna suggests the trials of a job, in twenty lines: optuna_search.py also prunes, and lives through being killed.

python3 examples/search/optuna_short.py examples/search/ask_tell.toml 24
"""

import sys

import optuna
import sojourn
from sojourn.adapters.spaces import to_optuna, values_of

file, wanted = sys.argv[1], int(sys.argv[2])
search = sojourn.Search.from_toml(file)
job, space = sojourn.ask_tell(search, trials=wanted), to_optuna(search.dimensions())
# Trials that run count as bad, so that several are suggested at once.
study = optuna.create_study(direction=job.direction, sampler=optuna.samplers.TPESampler(constant_liar=True))
while job.wait():
    job.tell(lambda ended: study.tell(ended.key, ended.value))
    for _ in range(job.room):
        trial = study.ask(space)
        job.ask(values_of(trial.params), key=trial)
print(f"best: {study.best_value:.4f} with {values_of(study.best_params)}")
