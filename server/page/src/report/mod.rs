//! A job as one file, to be sent to somebody: what came of it, how it was trained, and what proves it.
//!
//! The figures come from whoever makes the report; this puts them into a page. `file.rs` puts styles and scripts into it.

mod file;

use crate::{Viewer, job, words};
use maud::{Markup, html};
use serde::Serialize;
use sojourn_protocol::{
    api::SearchTrial,
    decimal,
    digest::BlobRef,
    figures,
    ids::TrialId,
    manifest::{DataManifest, Shard},
    money::MicroUsd,
    time::UnixMillis,
    view::{JobDetail, TrialView},
};

/// The element that holds what the charts show.
const TRIALS: &str = "trials";

/// The content of a report.
#[derive(Debug)]
pub struct Report<'a> {
    /// When it was made.
    pub made_at: UnixMillis,
    /// The job.
    pub job: &'a JobDetail,
    /// All its trials.
    pub trials: &'a [TrialView],
    /// The same, as its charts need them.
    pub curves: &'a [SearchTrial],
    /// The cost of the job, where machines were bought.
    pub cost: Option<MicroUsd>,
    /// Programs and formats, with their versions.
    pub versions: Vec<(&'static str, String)>,
    /// How much of what was possible was reached.
    pub efficiencies: Vec<Efficiency>,
    /// Trials that were trained again. None: none was.
    pub replays: Vec<Replay>,
    /// Why none was, where that was wanted.
    pub not_replayed: Option<String>,
}

/// A figure beside its limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Efficiency {
    /// The figure's name.
    pub name: &'static str,
    /// The job's value of the figure.
    pub took: String,
    /// The best value that the job could have reached.
    pub limit: String,
    /// The share of the limit that was reached, where both are known: 1 is the limit.
    #[serde(rename = "share")]
    pub ratio: Option<f64>,
    /// How both are counted.
    pub how: String,
}

/// A trial that was trained again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replay {
    /// The trial.
    pub trial: TrialId,
    /// `identical`, `different` or `not judgeable here`.
    pub verdict: &'static str,
    /// The verdict in a sentence.
    pub text: String,
}

/// The whole file.
///
/// # Errors
/// Where the job can't be written as JSON, which is a fault of the program.
pub fn document(report: &Report<'_>) -> Result<Markup, serde_json::Error> {
    let Report { job, trials, .. } = report;
    let spec = decimal::as_text(|| serde_json::to_string_pretty(&job.spec))?;
    let space = job.space.as_ref();
    let space = space.map(|space| decimal::as_text(|| serde_json::to_string_pretty(space)));
    let space = space.transpose()?;
    let curves = serde_json::to_string(report.curves)?;
    let reader = Viewer::READER;
    let content = html! {
        h1 { (job.summary.name) " " span.hint { "job " (job.summary.job) ", " (words::time(report.made_at)) } }
        section #head {
            (job::head(&job.summary, report.cost.map(|paid| job::Cost { paid, budget: job.spec.placement.budget }), reader))
            (job::overview::figures_of(&job.summary, trials, reader))
        }
        (job::charts(job, &format!("#{TRIALS}")))
        section aria-labelledby="board-title" {
            h2 #board-title { "Trials" }
            div #board { (job::printed(&job.summary.metric, job.spec.search.goal, trials)) }
        }
        section aria-labelledby="efficiency-title" {
            h2 #efficiency-title { "Efficiency" }
            (efficiencies(&report.efficiencies))
        }
        section aria-labelledby="replay-title" { h2 #replay-title { "Replay" } (replays(report)) }
        section aria-labelledby="versions-title" {
            h2 #versions-title { "Versions" }
            dl.figures { @for (name, version) in &report.versions { div { dt { (name) } dd { (version) } } } }
        }
        section aria-labelledby="digests-title" { h2 #digests-title { "Digests" } (digests(job)) }
        section aria-labelledby="spec-title" { h2 #spec-title { "Job as submitted" } pre #spec tabindex="0" { (spec) } }
        @if let Some(space) = space {
            section aria-labelledby="space-title" {
                h2 #space-title { "Space as changed since" }
                p { "Combinations were taken from this space from the change on." }
                pre #space tabindex="0" { (space) }
            }
        }
    };
    let title = format!("{} · report of Sojourn", job.summary.name);
    Ok(file::page(&title, &content, (TRIALS, &curves)))
}

fn efficiencies(all: &[Efficiency]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Efficiency" {
            table #efficiencies {
                thead {
                    tr { @for head in ["Efficiency", "This job", "Limit", "Of the limit", "How it is counted"] { th scope="col" { (head) } } }
                }
                tbody {
                    @for Efficiency { name, took, limit, ratio, how } in all {
                        tr {
                            th scope="row" { (name) }
                            td { (took) }
                            td { (limit) }
                            td.number { (ratio.map_or_else(|| "–".to_owned(), percent)) }
                            td.hint { (how) }
                        }
                    }
                }
            }
        }
    }
}

fn percent(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}

fn replays(report: &Report<'_>) -> Markup {
    html! {
        @if report.replays.is_empty() {
            p { "not replayed" @if let Some(why) = &report.not_replayed { ": " (why) } }
        }
        ul.units {
            @for Replay { trial, verdict, text } in &report.replays {
                li { "Trial " (trial) ": " strong { (verdict) } " " span.hint { (text) } }
            }
        }
    }
}

/// The digests of what the job was made of, and of what it made.
fn digests(job: &JobDetail) -> Markup {
    let DataManifest { train, valid, test, .. } = &job.data;
    let shards = [("training", train), ("validation", valid), ("test", test)];
    let row = |name: &str, rows: Option<u64>, blob: BlobRef| {
        html! {
            tr {
                th scope="row" { (name) }
                td.number { (rows.map(figures::count).unwrap_or_default()) }
                td.number { (figures::count(blob.bytes)) }
                td { code { (blob.sha256) } }
            }
        }
    };
    html! {
        div.wide tabindex="0" role="region" aria-label="Digests" {
            table #digests {
                thead { tr { @for head in ["File", "Rows", "Bytes", "SHA-256"] { th scope="col" { (head) } } } }
                tbody {
                    @if let Some(best) = &job.summary.best {
                        (row(&format!("best checkpoint: trial {}, epoch {}", best.trial, best.epoch.0 + 1), None, best.checkpoint))
                    }
                    @for (split, shards) in shards {
                        @for (number, Shard { blob, rows }) in shards.iter().enumerate() {
                            (row(&format!("{split} shard {number}"), Some(u64::from(*rows)), *blob))
                        }
                    }
                }
            }
        }
    }
}
