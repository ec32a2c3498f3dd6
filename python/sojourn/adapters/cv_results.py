"""The results of a search in the form of scikit-learn's `cv_results_`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sojourn.job.views import Trial


def params_of(trial: Trial) -> dict[str, object]:
    """The settings of its configuration."""
    return {name: value for name, value in trial.values.items() if name != "fold"}


def results_of(configurations: list[list[Trial]], sign: float) -> tuple[dict[str, Any], npt.NDArray[np.float64]]:
    """The table of configurations, each of which is a list of the trials of its folds, and their mean scores.

    A score is `sign` times the metric; that of a trial without a value is NaN, and ranks last.
    """
    splits = max(len(folds) for folds in configurations)
    by_fold = np.full((len(configurations), splits), np.nan)
    for row, folds in zip(by_fold, configurations, strict=True):
        row[: len(folds)] = [np.nan if trial.value is None else sign * trial.value for trial in folds]
    scores: npt.NDArray[np.float64] = by_fold.mean(axis=1)
    order = np.argsort(np.argsort(-np.where(np.isnan(scores), -np.inf, scores), kind="stable"), kind="stable")
    table: dict[str, Any] = {"params": [params_of(folds[0]) for folds in configurations]}
    table |= {f"split{split}_test_score": by_fold[:, split] for split in range(splits)}
    table |= {"mean_test_score": scores, "std_test_score": by_fold.std(axis=1), "rank_test_score": order + 1}
    return table, scores
