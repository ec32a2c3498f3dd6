"""The board of a job as HTML: progress, curves, leader board and hosts. All text of a job is escaped.

The same HTML stands in an exported notebook and, anew after each change, in the live board.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from sojourn.job.views import Status, Trial
from sojourn.notebook.chart import chart, colour
from sojourn.notebook.snapshot import Host, Snapshot

FOLDER = Path(__file__).parent
STYLE = FOLDER / "board.css"
MAX_ROWS = 10
MAX_SETTINGS = 8
MAX_FAILURES = 3
MAX_ERROR = 300
"""Characters of an error that are shown."""
MAX_HOSTS = 12
MAX_SLOTS = 32
"""Slots of a host that are drawn one by one."""
OTHER_METRICS = ("train/loss", "valid/loss")
LIVE = "updated while this notebook runs"


def page(snapshot: Snapshot) -> str:
    """The whole board with its style, for an output that nothing changes."""
    return f"<style>{STYLE.read_text(encoding='utf-8')}</style>{board(snapshot, is_live=False)}"


def board(snapshot: Snapshot, *, is_live: bool) -> str:
    """The board without its style. `data-part` marks what the live board exchanges."""
    status, ranked = snapshot.status, snapshot.ranked()
    title = f"job {status.job}, {status.name}"
    when = LIVE if is_live and not status.has_ended else f"as of {snapshot.taken_at:%Y-%m-%d %H:%M:%S} UTC"
    parts = {
        "progress": _progress(status),
        "curves": _curves(status.metric, ranked),
        "leaders": _leaders(snapshot, ranked),
        "failures": _failures(snapshot.trials),
        "hosts": "" if status.has_ended else _hosts(snapshot.hosts),
        "when": f'<p class="hint">{escape(when)}</p>',
    }
    inner = "".join(f'<div data-part="{name}">{text}</div>' for name, text in parts.items())
    return f'<section class="sojourn-board" aria-label="{escape(title)}">{inner}</section>'


def problem(title: str, message: str) -> str:
    """A board of one sentence, where there is nothing else to show."""
    style = STYLE.read_text(encoding="utf-8")
    return f'<style>{style}</style><section class="sojourn-board"><p>{escape(title)}: {escape(message)}</p></section>'


def _progress(status: Status) -> str:
    state = escape(status.state)
    note = status.raw.get("note")
    share = status.hops / status.hops_expected if status.hops_expected else float(status.has_ended)
    figures = [
        ("best", _number(status.value) if status.value is not None else "none yet", status.metric),
        ("trials", f"{status.trials_ended} of {status.trials}", "ended"),
        ("hops", f"{status.hops} of {status.hops_expected}", "trained"),
    ]
    if status.seconds_left is not None and not status.has_ended:
        figures.append(("left", _duration(status.seconds_left), ""))
    listed = "".join(
        f"<div><dt>{name}</dt><dd>{escape(value)} <small>{escape(unit)}</small></dd></div>" for name, value, unit in figures
    )
    waiting = f'<p class="hint">waits: {escape(status.waiting)}</p>' if status.waiting and not status.has_ended else ""
    return (
        f'<header><strong>{escape(status.name)}</strong> <span class="hint">job {status.job}</span> '
        f'<span class="state {state}" role="status">{state}</span></header>'
        + (f'<p class="note">{escape(str(note))}</p>' if note else "")
        + f'<div class="bar" role="progressbar" aria-label="progress" aria-valuemin="0" aria-valuemax="100" '
        f'aria-valuenow="{100 * share:.0f}"><div style="width:{min(share, 1.0):.1%}"></div></div>'
        f"<dl>{listed}</dl>{waiting}"
    )


def _curves(metric: str, ranked: Sequence[Trial]) -> str:
    others = "".join(chart(other, ranked) for other in OTHER_METRICS if other != metric)
    more = f'<details><summary>losses</summary>{others}</details>' if others else ""
    return chart(metric, ranked) + more


def _leaders(snapshot: Snapshot, ranked: Sequence[Trial]) -> str:
    if not ranked:
        return '<p class="hint">no trial yet</p>'
    # Settings by their short names, in the order in which trials name them; a job of several models has those of all.
    names = list(dict.fromkeys(name for trial in ranked for name in trial.values))[:MAX_SETTINGS]
    head = ["trial", snapshot.status.metric, "at epoch", *names, "epochs", "state"]
    rows = "".join(_row(rank, trial, names) for rank, trial in enumerate(ranked[:MAX_ROWS]))
    rest = len(ranked) - MAX_ROWS
    more = f'<p class="hint">and {rest} further trials: <code>job.trials()</code></p>' if rest > 0 else ""
    return (
        '<div class="wide" role="region" tabindex="0" aria-label="leader board"><table><thead><tr>'
        + "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
        + f"</tr></thead><tbody>{rows}</tbody></table></div>{more}"
    )


def _row(rank: int, trial: Trial, names: Iterable[str]) -> str:
    best_epoch = "" if trial.best_epoch is None else str(trial.best_epoch + 1)
    value = "" if trial.value is None else _number(trial.value)
    cells = [value, best_epoch, *(_setting(trial.values.get(name)) for name in names), str(trial.epochs)]
    mark = f'<svg class="mark {colour(rank)}" viewBox="0 0 20 4" aria-hidden="true"><path d="M0 2H20"/></svg>' if trial.curve else ""
    return (
        f'<tr data-trial="{trial.trial}"><th scope="row" title="{escape(trial.name)}">{mark}{trial.trial}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + f"<td>{escape(trial.phase.replace('_', ' '))}</td></tr>"
    )


def _failures(trials: Sequence[Trial]) -> str:
    failed = [trial for trial in trials if trial.phase == "failed"]
    items = "".join(
        f"<li>trial {trial.trial} failed: {escape(_shortened(trial.reason or 'no reason is known'))}</li>"
        for trial in failed[:MAX_FAILURES]
    )
    more = f"<li>and {len(failed) - MAX_FAILURES} more</li>" if len(failed) > MAX_FAILURES else ""
    return f'<ul class="failures">{items}{more}</ul>' if failed else ""


def _hosts(hosts: Sequence[Host] | None) -> str:
    if hosts is None:
        return ""
    if not hosts:
        return '<p class="hint">no host works for the server</p>'
    items = "".join(_host(host) for host in hosts[:MAX_HOSTS])
    more = f"<li>and {len(hosts) - MAX_HOSTS} more</li>" if len(hosts) > MAX_HOSTS else ""
    return f'<ul class="hosts" aria-label="hosts">{items}{more}</ul>'


def _host(host: Host) -> str:
    drawn = min(host.slots, MAX_SLOTS)
    # Of more slots than are drawn the share that is busy is shown.
    busy = host.busy if drawn == host.slots else round(drawn * host.busy / host.slots)
    slots = "".join(f'<i class="{"busy" if slot < busy else "idle"}"></i>' for slot in range(drawn))
    words = f"{host.busy} of {host.slots} slots busy"
    return f'<li><span>{escape(host.name)}</span> <span class="slots" aria-hidden="true">{slots}</span> <small>{words}</small></li>'


def _setting(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _number(value: float) -> str:
    return f"{value:.4f}" if 0.001 <= abs(value) < 10_000 else f"{value:.4g}"


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_ERROR else text[:MAX_ERROR] + "…"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "under 1 s"
    if seconds < 100:
        return f"about {seconds:.0f} s"
    minutes = seconds / 60
    return f"about {minutes:.0f} min" if minutes < 100 else f"about {minutes / 60:.0f} h"
