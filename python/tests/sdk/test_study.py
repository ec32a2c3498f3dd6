"""Searches that a program drives: an optimiser of its own, and one of Optuna, over a local server."""

import importlib.util
import unittest

from support import TABLE, Site

SEARCH = """
search = sojourn.Search(
    sojourn.mlp(hidden=[16]), data=(X, y), epochs=4,
    space={"lr": sojourn.log_uniform(1e-3, 1e-1), "batch_size": sojourn.choice(16, 32)})
"""

OWN_LOOP = """
import random
study = sojourn.ask_tell(search, trials=5)
rates, told = iter([0.001, 0.003, 0.01, 0.03, 0.1]), {}
while study.wait():
    study.tell(lambda ended: told.__setitem__(ended.key, ended))
    for _ in range(study.room):
        lr = next(rates)
        study.ask({"lr": lr, "batch_size": 16}, key=lr)
print("TOLD", [(key, one.values["lr"], one.state, one.epochs, len(one.curve)) for key, one in sorted(told.items())])
print("BEST", study.direction, max(one.value for one in told.values()) == study.job.best.value)
try:
    study.ask({"lr": 0.5, "batch_size": 16})
except sojourn.Refused as refused:
    print("REFUSED", refused.status, refused.kind)
again = sojourn.ask_tell(search)
print("AGAIN", again.job.number == study.job.number, [one.key for one in again.trials()], again.wait())
"""

OPTUNA = """
import optuna
from sojourn.adapters.spaces import to_optuna, values_of
optuna.logging.disable_propagation()
study = sojourn.ask_tell(search, trials=5)
sampler, space = optuna.create_study(direction=study.direction), to_optuna(search.dimensions())
while study.wait():
    study.tell(lambda ended: sampler.tell(ended.key, ended.value))
    for _ in range(study.room):
        trial = sampler.ask(space)
        study.ask(values_of(trial.params), key=trial)
print("OPTUNA", len(sampler.trials), sampler.best_value == study.job.best.value)
"""


class Studies(Site):
    def lines(self, text):
        said = self.ran(TABLE + SEARCH + text)
        return {line.split()[0]: line.partition(" ")[2] for line in said.splitlines() if line and line.split()[0].isupper()}

    def test_a_loop_of_one_s_own_is_told_of_each_trial_once(self):
        said = self.lines(OWN_LOOP)
        self.assertEqual(said["TOLD"], str([(lr, lr, "finished", 4, 4) for lr in (0.001, 0.003, 0.01, 0.03, 0.1)]))
        self.assertEqual(said["BEST"], "maximize True")
        self.assertEqual(said["REFUSED"], "400 invalid")
        self.assertEqual(said["AGAIN"], f"True {[None] * 5} True", "a new process is told of the trials of the one before")

    @unittest.skipUnless(importlib.util.find_spec("optuna"), "needs optuna")
    def test_optuna_drives_a_job(self):
        self.assertEqual(self.lines(OPTUNA)["OPTUNA"], "5 True")


if __name__ == "__main__":
    unittest.main()
