"""A search as an estimator of scikit-learn.

    search = SojournSearchCV(sojourn.mlp(hidden=[64]), {"lr": sojourn.log_uniform(1e-4, 1e-1)}, epochs=20, trials=24)
    search.fit(X, y)
    search.predict(X_new), search.best_params_, search.cv_results_

Trials are compared on a fixed share of the rows (`valid`), and the best one predicts as it is. With `cv=5` they are compared by the mean
over five folds, and the best configuration is trained on all rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

import sojourn
from sojourn.adapters.cv_results import params_of, results_of
from sojourn.job.predictor import Predictor
from sojourn.search.data import array

REGRESSION = "mse"
LOWER_IS_BETTER = ("valid/loss", "valid/rmse")


class SojournSearchCV(BaseEstimator):  # type: ignore[misc]
    """A search whose best model predicts: a classifier, or with `loss="mse"` a regressor.

    `model`, `space`, `epochs`, `trials`, `method`, `stopping`, `metric`, `loss` and `valid` are those of `sojourn.Search`,
    `cv` is its `folds`, with `refit`; `options` has more of its arguments, and `server` is where it runs. Features are scaled to mean 0 and deviation 1 unless
    `scale` says otherwise.

    After `fit`: `job_`, `best_params_`, `best_score_`, `best_index_`, `cv_results_`, `classes_` of a classifier,
    `n_features_in_`. Scores are those of `metric`, with losses negated.
    """

    def __init__(
        self,
        model: Any = None,
        space: Mapping[str, object] | None = None,
        *,
        epochs: int = 10,
        trials: int | None = None,
        method: Any = None,
        stopping: Any = None,
        metric: str | None = None,
        loss: str | None = None,
        valid: float = 0.2,
        cv: int | None = None,
        scale: str = "standard",
        options: Mapping[str, Any] | None = None,
        server: sojourn.Server | None = None,
    ) -> None:
        self.model = model
        self.space = space
        self.epochs = epochs
        self.trials = trials
        self.method = method
        self.stopping = stopping
        self.metric = metric
        self.loss = loss
        self.valid = valid
        self.cv = cv
        self.scale = scale
        self.options = options
        self.server = server

    def fit(self, X: Any, y: Any) -> SojournSearchCV:
        """Runs the search over `X`, `[rows, features]`, and `y`, `[rows]`. Raises what `Search.run` raises."""
        X, y = validate_data(self, X, y, dtype="numeric", y_numeric=self._is_regressor(), ensure_min_samples=2)
        labels: npt.NDArray[Any] = y
        if not self._is_regressor():
            check_classification_targets(y)
            self.classes_, labels = np.unique(y, return_inverse=True)
            if len(self.classes_) < 2:
                raise ValueError("a classifier needs more than one class")
        search = sojourn.Search(
            self.model or sojourn.mlp(hidden=[64]),
            sojourn.Data((array(X), array(labels)), scale=self.scale, stratified=bool(self.cv) and not self._is_regressor()),
            epochs=self.epochs,
            valid=None if self.cv else self.valid,
            folds=self.cv,
            refit=True if self.cv else None,
            space=self.space,
            trials=self.trials,
            method=self.method,
            stopping=self.stopping,
            metric=self.metric,
            loss=self.loss,
            **(self.options or {}),
        )
        self.job_ = search.run(on=self.server, progress=False)
        self._take_results()
        return self

    def _take_results(self) -> None:
        trials, best = self.job_.trials(), self.job_.best
        self._predictor = best.predictor
        sign = -1.0 if self.job_.status.metric in LOWER_IS_BETTER else 1.0
        tried = trials.configurations()
        self.cv_results_, scores = results_of(tried, sign)
        chosen = trials.folds_of(next(trial for trial in trials if trial.trial == best.trial))
        self.best_index_ = tried.index(chosen)
        self.best_params_ = params_of(chosen[0])
        self.best_score_ = float(scores[self.best_index_])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class, or the number, for each row of `X`, `[rows]`."""
        predicted = self._fitted().predict(self._rows(X))
        return predicted if self._is_regressor() else np.asarray(self.classes_)[predicted.astype(int)]

    @available_if(lambda self: not self._is_regressor())  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The probability of each class, in the order of `classes_`, `[rows, classes]`."""
        return self._fitted().predict_proba(self._rows(X))

    def score(self, X: Any, y: Any) -> float:
        """The accuracy, or R² of a regressor."""
        return float((r2_score if self._is_regressor() else accuracy_score)(y, self.predict(X)))

    def __getstate__(self) -> dict[str, Any]:
        """The state that is pickled: the model predicts anywhere, and connections to servers stay."""
        state = super().__getstate__()
        return {name: None if name in ("job_", "server") else value for name, value in state.items()}

    def _fitted(self) -> Predictor:
        check_is_fitted(self)
        return self._predictor

    def _rows(self, X: Any) -> npt.NDArray[Any]:
        return array(validate_data(self, X, reset=False, dtype="numeric"))

    def _is_regressor(self) -> bool:
        return self.loss == REGRESSION

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if self._is_regressor() else "classifier"
        tags.classifier_tags = None if self._is_regressor() else ClassifierTags()
        tags.regressor_tags = RegressorTags() if self._is_regressor() else None
        tags.target_tags.required = True
        return tags
