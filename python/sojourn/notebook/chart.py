"""Learning curves as SVG in HTML: lines stretch with the width, and the words of the axes keep their size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from itertools import islice
from typing import NamedTuple

from sojourn.job.views import Trial

WIDTH, HEIGHT = 1000, 400
"""The drawing's units; the picture is stretched to its place."""
MARGIN = 10
"""Units beside the first and the last epoch, where the marks at the ends of lines stand."""
COLOURS = 8
"""How many of the best trials have a colour, or a dash, of their own."""
MAX_LINES = 100
TICKS = 4
OUTLIER_RATIO = 3.0
"""A range this many times as long as that of 95 % of the points is cut there: a loss that explodes would flatten all others."""
MOST = 0.95


class Line(NamedTuple):
    """A trial's curve: epochs, which count from 1 here, and values."""

    trial: Trial
    points: list[tuple[int, float]]


def chart(metric: str, ranked: Sequence[Trial]) -> str:
    """The curves of a metric, of trials with the best first; empty where no epoch has it."""
    lines = (Line(trial, _points(trial, metric)) for trial in ranked)
    drawn = list(islice((line for line in lines if line.points), MAX_LINES))
    if not drawn:
        return ""
    values = [value for line in drawn for _, value in line.points]
    low, high, outside = _range(values)
    last = max(epoch for line in drawn for epoch, _ in line.points)
    ticks = _ticks(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])

    def x(epoch: int) -> float:
        return MARGIN + (WIDTH - 2 * MARGIN) * (epoch - 1) / max(last - 1, 1)

    def y(value: float) -> float:
        return HEIGHT * (high - value) / (high - low)

    # The best are drawn last, over the others.
    paths = "".join(_path(rank, line, x, y) for rank, line in reversed(list(enumerate(drawn))))
    grid = "".join(f'<path class="grid" d="M0 {y(tick):.1f}H{WIDTH}"/>' for tick in ticks)
    across = "".join(f'<span style="top:{y(tick) / HEIGHT:.2%}">{_number(tick)}</span>' for tick in ticks)
    along = "".join(f'<span style="left:{x(epoch) / WIDTH:.2%}">{epoch}</span>' for epoch in _epochs(last))
    best = drawn[0]
    label = f"{metric} by epoch, {len(drawn)} trials; trial {best.trial.trial} is the best, {_number(best.points[-1][1])} at its end"
    hints = [f"The best {len(drawn)} of {len(ranked)} trials."] if len(drawn) == MAX_LINES < len(ranked) else []
    hints += [f"Points beyond the chart: {outside}."] if outside else []
    return (
        f'<figure class="chart"><figcaption>{escape(metric)} by epoch</figcaption>'
        f'<div class="across" aria-hidden="true">{across}</div>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{escape(label)}">{grid}{paths}</svg>'
        f'<div class="along" aria-hidden="true">{along}</div>'
        + (f'<p class="hint">{escape(" ".join(hints))}</p>' if hints else "")
        + "</figure>"
    )


def colour(rank: int) -> str:
    """The class of a trial's line and of its mark on the leader board."""
    return f"c{rank}" if rank < COLOURS else "other"


def _path(rank: int, line: Line, x: Callable[[int], float], y: Callable[[float], float]) -> str:
    steps = " ".join(f"{x(epoch):.1f} {y(value):.1f}" for epoch, value in line.points)
    epoch, value = line.points[-1]
    title = f"trial {line.trial.trial}, {line.trial.name}: {_number(value)} after epoch {epoch}"
    return (
        f'<g class="line {colour(rank)}" data-trial="{line.trial.trial}"><title>{escape(title)}</title>'
        f'<path d="M{steps}"/><path class="end" d="M{x(epoch):.1f} {y(value):.1f}h0"/></g>'
    )


def _points(trial: Trial, metric: str) -> list[tuple[int, float]]:
    found = ((point.epoch + 1, point.metrics.get(metric)) for point in trial.curve)
    return [(epoch, value) for epoch, value in found if value is not None and math.isfinite(value)]


def _range(values: Sequence[float]) -> tuple[float, float, int]:
    """The lowest and the highest value that are drawn, and how many points lie outside."""
    ordered = sorted(values)
    low, high = ordered[0], ordered[-1]
    most = ordered[int(MOST * (len(ordered) - 1))]
    if high - low > OUTLIER_RATIO * (most - low) > 0:
        high = most
    if low == high:
        low, high = low - max(abs(low), 1.0) / 10, high + max(abs(high), 1.0) / 10
    return low, high, sum(value > high for value in ordered)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers over a range, its ends among them or just outside."""
    raw = (high - low) / TICKS
    unit: float = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * unit for factor in (1, 2, 2.5, 5, 10) if factor * unit >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, last + 1)]


def _epochs(last: int) -> list[int]:
    """Epochs to name below the chart: the first, the last, and round ones between that keep apart from both."""
    step = max(int(_ticks(0, last)[1]), 1)
    between = [epoch for epoch in range(step, last, step) if epoch - 1 >= step / 3 and last - epoch >= step / 3]
    return sorted({1, *between, last})


def _number(value: float) -> str:
    return f"{value:.4g}"
