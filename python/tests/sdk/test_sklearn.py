"""A search as an estimator of scikit-learn: its own checks, and what it gives."""

import importlib.util
import json
import unittest

from support import Site

SCRIPT = """
import json, pickle
import numpy as np
import sojourn
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import check_estimator
from sojourn.adapters.sklearn import SojournSearchCV

X, y = load_iris(return_X_y=True)
names = load_iris().target_names[y]
space = {"lr": sojourn.log_uniform(1e-2, 1e-1)}
search = SojournSearchCV(sojourn.mlp(hidden=[16]), space, epochs=20, trials=3, method="random").fit(X, names)
results = search.cv_results_
again = pickle.loads(pickle.dumps(search))
numbers = SojournSearchCV(sojourn.mlp(hidden=[16]), space, epochs=20, trials=2, method="random", loss="mse").fit(X[:, :3], X[:, 3])
said = {
    "score": search.score(X, names) > 0.9, "classes": search.classes_.tolist(), "params": list(search.best_params_),
    "ranks": sorted(results["rank_test_score"].tolist()), "best": results["rank_test_score"][search.best_index_] == 1,
    "same": bool((again.predict(X) == search.predict(X)).all()), "proba": search.predict_proba(X[:2]).shape,
    "r2": numbers.score(X[:, :3], X[:, 3]) > 0.8, "has proba": hasattr(numbers, "predict_proba"), "lower": numbers.best_score_ < 0,
}
folded = SojournSearchCV(sojourn.mlp(hidden=[16]), space, epochs=10, trials=2, method="random", cv=3).fit(X, names)
splits = np.array([folded.cv_results_[f"split{n}_test_score"] for n in range(3)])
final = folded.job_.best
said |= {
    "folds": folded.job_.status.trials, "means": bool(np.allclose(splits.mean(axis=0), folded.cv_results_["mean_test_score"])),
    "final": [bool(np.isclose(folded.best_score_, splits.mean(axis=0).max())), bool(np.isclose(final.value, folded.best_score_))],
    "cv params": list(folded.best_params_), "cv score": folded.score(X, names) > 0.8,
    "refit": final.trial == 6 and bool(np.isclose(final.metrics["valid/accuracy"], final.value)),
}
checks = check_estimator(SojournSearchCV(epochs=8, options={"batch_size": 8}), on_fail=None, on_skip=None)
said["failed"] = [(check["check_name"], repr(check["exception"])) for check in checks if check["status"] == "failed"]
said["checks"] = len(checks) > 40
print("SAID", json.dumps(said, default=bool))
"""


@unittest.skipUnless(importlib.util.find_spec("sklearn"), "needs scikit-learn")
class Estimators(Site):
    def test_scikit_learn_takes_a_search_for_one_of_its_own(self):
        said = json.loads(self.ran(SCRIPT).split("SAID ")[1].splitlines()[0])
        wanted = {
            "score": True,
            "classes": ["setosa", "versicolor", "virginica"],
            "params": ["lr"],
            "ranks": [1, 2, 3],
            "best": True,
            "same": True,
            "proba": [2, 3],
            "r2": True,
            "has proba": False,
            "lower": True,
            "folds": 7,
            "means": True,
            "final": [True, True],
            "cv params": ["lr"],
            "cv score": True,
            "refit": True,
            "failed": [],
            "checks": True,
        }
        self.assertEqual(said, wanted)


if __name__ == "__main__":
    unittest.main()
