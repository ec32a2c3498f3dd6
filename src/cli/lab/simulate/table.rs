//! The table that `sojourn simulate` prints: a line for each row and policy.

use crate::cli::render::{
    tables::{Column, Grid},
    text::{bytes, count},
};
use sojourn_sim::fleet::{Cell, Normalise, RunResult, Spread, Study};

/// The most jobs whose ends are shown; `result.json` has all.
const MAX_SHOWN_ENDS: usize = 4;

pub(super) fn text(study: &Study, cells: &[Cell]) -> String {
    let labelled = study.rows.len() > 1;
    let compared = !matches!(study.normalise, Normalise::Bound);
    let any = |value: fn(&RunResult) -> bool| cells.iter().flat_map(|cell| &cell.runs).any(value);
    let moved = any(|run| run.checkpoints_up + run.checkpoints_down + run.shard_bytes > 0);
    let lost = any(|run| run.lost > 0);
    let copied = any(|run| run.copies > 0);
    let trained = any(|run| run.best.is_some());
    let merged = any(|run| run.merged > 0);
    let several = any(|run| (2..=MAX_SHOWN_ENDS).contains(&run.jobs.len()));
    let planned = any(|run| run.plans > 0);
    let over = format!("over {}", study.normalise);
    let mut header = Vec::new();
    if labelled {
        header.push(("scenario", Column::Text));
    }
    header.push(("policy", Column::Text));
    header.extend([("makespan", Column::Number), ("min to max", Column::Number)]);
    if several {
        header.push(("jobs end at", Column::Text));
    }
    if compared {
        header.extend([(over.as_str(), Column::Number), ("min to max", Column::Number)]);
    }
    header.extend([
        ("lower bound", Column::Number),
        ("by", Column::Text),
        ("ratio", Column::Number),
    ]);
    header.extend([("busy", Column::Number), ("idle", Column::Number)]);
    if moved {
        header.push(("waiting", Column::Number));
        header.extend([("up", Column::Number), ("down", Column::Number)]);
    }
    header.push(("shards", Column::Number));
    if lost {
        header.extend([("lost", Column::Number), ("lost work", Column::Number)]);
    }
    if copied {
        header.push(("done twice", Column::Number));
    }
    if merged {
        header.extend([("merged", Column::Number), ("staleness", Column::Number)]);
        header.push(("superseded", Column::Number));
    }
    if trained {
        header.extend([("best", Column::Number), ("last", Column::Number)]);
    }
    if planned {
        header.extend([("plans", Column::Number), ("planning", Column::Number)]);
    }
    header.extend([("deciding", Column::Number), ("decisions/s", Column::Number)]);
    let mut grid = Grid::new(&header);
    for cell in cells {
        let mean = |value: fn(&RunResult) -> f64| Spread::of(cell.runs.iter().map(value)).mean;
        let mut line = Vec::new();
        if labelled {
            line.push(cell.row.clone());
        }
        line.extend([cell.policy.clone(), seconds(cell.makespan.mean), range(cell.makespan)]);
        if several {
            line.push(ends(&cell.runs));
        }
        if compared {
            let Spread { mean, min, max } = cell.normalised;
            line.extend([format!("{mean:.3}"), format!("{min:.3} to {max:.3}")]);
        }
        let bound_by = cell.runs.first().map_or("", |run| run.bound_by.name());
        line.extend([seconds(mean(|run| run.bound)), bound_by.to_owned()]);
        line.push(format!("{:.3}", cell.ratio.mean));
        line.extend([percent(mean(|run| run.busy)), percent(mean(|run| run.idle))]);
        if moved {
            line.push(percent(mean(|run| run.waiting)));
            line.push(bytes(whole(mean(|run| float(run.checkpoints_up)))));
            line.push(bytes(whole(mean(|run| float(run.checkpoints_down + run.shard_bytes)))));
        }
        line.push(count(whole(mean(|run| float(run.shards)))));
        if lost {
            line.push(count(whole(mean(|run| float(run.lost)))));
            line.push(percent(mean(|run| run.lost_ratio)));
        }
        if copied {
            line.push(percent(mean(|run| run.copied_ratio)));
        }
        if merged {
            line.push(count(whole(mean(|run| float(run.merged)))));
            line.push(format!("{:.2}", mean(|run| run.staleness)));
            line.push(count(whole(mean(|run| float(run.superseded)))));
        }
        if trained {
            let best = Spread::of(cell.runs.iter().filter_map(|run| run.best));
            let last = Spread::of(cell.runs.iter().filter_map(|run| run.last));
            line.extend([format!("{:.4}", best.mean), format!("{:.4}", last.mean)]);
        }
        if planned {
            line.push(count(whole(mean(|run| float(run.plans)))));
            line.push(format!("{:.2} s", mean(|run| float(run.planning)) / 1e9));
        }
        let deciding = mean(|run| float(run.in_core)) / 1e9;
        let decisions = mean(|run| float(run.granted)) / deciding.max(1e-9);
        line.extend([format!("{deciding:.2} s"), count(whole(decisions))]);
        grid.row(line);
    }
    grid.text()
}

/// When each job ended, the mean of all seeds, in the order of submission.
fn ends(runs: &[RunResult]) -> String {
    let jobs = runs.first().map_or(0, |run| run.jobs.len());
    let end = |n: usize| {
        Spread::of(runs.iter().filter_map(|run| run.jobs.get(n)).map(|job| job.ended)).mean
    };
    (0..jobs).map(|n| seconds(end(n))).collect::<Vec<_>>().join(", ")
}

fn percent(ratio: f64) -> String {
    format!("{:.1} %", ratio * 100.0)
}

fn seconds(value: f64) -> String {
    match value {
        value if value < 100.0 => format!("{value:.2} s"),
        value => format!("{} s", count(whole(value))),
    }
}

fn range(spread: Spread) -> String {
    let digits = |value: f64| seconds(value).trim_end_matches(" s").to_owned();
    format!("{} to {}", digits(spread.min), digits(spread.max))
}

#[expect(clippy::cast_precision_loss, reason = "a few digits are shown")]
const fn float(value: u64) -> f64 {
    value as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "of counts")]
fn whole(value: f64) -> u64 {
    value.round().max(0.0) as u64
}
