//! Jobs side by side: their figures, their learning curves in a chart for each metric, their best trials, and where their job files differ.

use crate::{frame, words};
use maud::{Markup, html};
use serde_json::Value;
use sojourn_protocol::{
    figures, trial_name,
    view::{JobDetail, TrialView},
};
use std::collections::BTreeMap;

/// Best trials of each job.
const LEADERS: usize = 10;
/// Jobs that are compared at most: no screen has room for more columns.
pub const MAX_JOBS: usize = 8;

/// A job that is compared.
#[derive(Debug)]
pub struct Compared {
    /// The job.
    pub job: JobDetail,
    /// All its trials.
    pub trials: Vec<TrialView>,
}

/// A whole page.
#[must_use]
pub fn page(jobs: &[Compared]) -> Markup {
    let names: Vec<String> = jobs.iter().map(|of| of.job.summary.name.clone()).collect();
    let content = html! {
        h1 { "Jobs side by side" }
        p.hint { (names.join(", ")) }
        section aria-labelledby="curves-title" {
            h2 #curves-title { "Learning curves" }
            (charts(jobs))
        }
        div #tables data-live={ "/compare?" (query(jobs)) "&part=tables" } { (tables(jobs)) }
    };
    frame::page("Jobs side by side", "", &content)
}

/// The part of the page that changes.
#[must_use]
pub fn tables(jobs: &[Compared]) -> Markup {
    html! {
        section aria-labelledby="figures-title" {
            h2 #figures-title { "Figures" }
            (table(jobs, "Figures", &figures_of(jobs)))
        }
        section aria-labelledby="leaders-title" {
            h2 #leaders-title { "Best trials" }
            (table(jobs, "Best trials", &leaders(jobs)))
        }
        section aria-labelledby="differences-title" {
            h2 #differences-title { "Where the job files differ" }
            @let different = differences(jobs);
            @if different.is_empty() { p.hint { "Nowhere." } } @else { (table(jobs, "Where the job files differ", &different)) }
        }
    }
}

/// `job=1&job=2`.
fn query(jobs: &[Compared]) -> String {
    let each: Vec<String> = jobs.iter().map(|of| format!("job={}", of.job.summary.job)).collect();
    each.join("&")
}

/// A chart of learning curves for each metric, with the jobs that have it.
fn charts(jobs: &[Compared]) -> Markup {
    let mut metrics: Vec<&str> = jobs.iter().map(metric).collect();
    metrics.sort_unstable();
    metrics.dedup();
    html! {
        @for (number, of) in metrics.into_iter().enumerate() {
            @let with: Vec<(usize, &Compared)> = jobs.iter().enumerate().filter(|(_, job)| metric(job) == of).collect();
            @if number > 0 { h3 { (of) } }
            (chart(number, of, &with))
        }
    }
}

fn metric(of: &Compared) -> &str {
    &of.job.summary.metric
}

/// `jobs`: with their places in the comparison, which colour their lines.
fn chart(number: usize, metric: &str, jobs: &[(usize, &Compared)]) -> Markup {
    let of = |text: &dyn Fn(&Compared) -> String| {
        jobs.iter().map(|(_, of)| text(of)).collect::<Vec<_>>()
    };
    let from = of(&|of| format!("/v1/jobs/{}/search", of.job.summary.job)).join(" ");
    let shards = of(&|of| of.job.data.train.len().to_string()).join(" ");
    let begun = of(&|of| of.job.summary.submitted_at.0.to_string()).join(" ");
    let names = of(&|of| format!("{} (job {})", of.job.summary.name, of.job.summary.job));
    let id = if number == 0 { "curves".to_owned() } else { format!("curves-{number}") };
    let colours: Vec<String> = jobs.iter().map(|(place, _)| place.to_string()).collect();
    let goal = jobs.first().map(|(_, of)| words::goal(of.job.spec.search.goal));
    html! {
        div.chart id=(id) data-chart="curves" data-from=(from) data-metric=(metric) data-goal=[goal]
            data-shards=(shards) data-begun=(begun) data-names=(Value::from(names)) data-colours=(colours.join(" ")) { }
    }
}

/// A row of a table: what it is, and a cell for each job.
type Row = (String, Vec<Markup>);

fn table(jobs: &[Compared], label: &str, rows: &[Row]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label=(label) {
            table {
                thead {
                    tr {
                        td { }
                        @for of in jobs {
                            th scope="col" { a.named href={ "/jobs/" (of.job.summary.job) } title=(of.job.summary.name) { (of.job.summary.name) " (job " (of.job.summary.job) ")" } }
                        }
                    }
                }
                tbody {
                    @for (name, cells) in rows { tr { th scope="row" { (name) } @for cell in cells { td { (cell) } } } }
                }
            }
        }
    }
}

fn figures_of(jobs: &[Compared]) -> Vec<Row> {
    let row = |name: &str, of: &dyn Fn(&Compared) -> Markup| {
        (name.to_owned(), jobs.iter().map(of).collect())
    };
    vec![
        row("State", &|of| words::state(of.job.summary.state.name())),
        row("Best", &|of| {
            let (metric, best) = (&of.job.summary.metric, &of.job.summary.best);
            html! { (metric) " " strong { (words::metric(best.as_ref().map(|best| best.value))) } }
        }),
        row("Trials", &|of| html! { (figures::count(of.job.summary.trials.into())) }),
        row("Hops", &|of| words::progress("", of.job.summary.hops, of.job.summary.hops_expected)),
        row(
            "Trained",
            &|of| html! { (figures::duration(of.job.summary.train_micros / 1000)) " of slots" },
        ),
        row("Submitted", &|of| words::time(of.job.summary.submitted_at)),
        row(
            "Ended",
            &|of| html! { @if let Some(at) = of.job.summary.ended_at { (words::time(at)) } },
        ),
    ]
}

/// The best trials of each job by place.
fn leaders(jobs: &[Compared]) -> Vec<Row> {
    let boards: Vec<Vec<&TrialView>> = jobs
        .iter()
        .map(|of| {
            let goal = of.job.spec.search.goal;
            let mut all: Vec<&TrialView> =
                of.trials.iter().filter(|trial| trial.best.is_some()).collect();
            all.sort_by(|a, b| TrialView::leader_board(goal, a, b));
            all
        })
        .collect();
    let most = boards.iter().map(Vec::len).max().unwrap_or(0).min(LEADERS);
    let cell = |trial: Option<&&TrialView>| {
        html! {
            @if let Some(trial) = trial {
                strong { (words::metric(trial.best.as_ref().map(|best| best.value))) } " trial " (trial.trial) " "
                span.hint { (trial.arch) " " (trial_name::choices_text(&trial.choices)) }
            }
        }
    };
    let row = |place: usize| {
        let cells = boards.iter().map(|board| cell(board.get(place))).collect();
        ((place + 1).to_string(), cells)
    };
    (0..most).map(row).collect()
}

/// The places where the job files differ, with the values of each.
fn differences(jobs: &[Compared]) -> Vec<Row> {
    let all: Vec<BTreeMap<String, Value>> = jobs
        .iter()
        .map(|of| {
            let mut places = BTreeMap::new();
            let spec = serde_json::to_value(&of.job.spec).unwrap_or_default();
            flatten("", &spec, &mut places);
            places.remove("name");
            places
        })
        .collect();
    let mut names: Vec<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    names.sort_unstable();
    names.dedup();
    let rows = names.into_iter().filter_map(|name| {
        let values: Vec<Option<&Value>> = all.iter().map(|of| of.get(name)).collect();
        let same = values.windows(2).all(|pair| matches!(pair, [a, b] if a == b));
        let cell =
            |value: Option<&Value>| html! { @if let Some(value) = value { code { (value) } } };
        (!same).then(|| (name.clone(), values.into_iter().map(cell).collect()))
    });
    rows.collect()
}

/// The values of a tree by their places, such as `training.epochs`. Lists are values.
fn flatten(place: &str, value: &Value, into: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                flatten(&place, value, into);
            }
        }
        _ => {
            into.insert(place.to_owned(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use sojourn_protocol::ids::JobId;

    #[test]
    fn each_metric_has_a_chart_with_the_jobs_that_have_it() {
        let job = |number: u64, metric: &str| {
            let mut job: JobDetail =
                serde_json::from_str(include_str!("../tests/detail.json")).unwrap();
            job.summary.job = JobId(number);
            job.summary.metric = metric.to_owned();
            Compared { job, trials: Vec::new() }
        };
        let jobs = [job(1, "valid/accuracy"), job(2, "valid/loss"), job(3, "valid/accuracy")];
        let text = charts(&jobs).into_string();
        assert!(text.contains("data-from=\"/v1/jobs/1/search /v1/jobs/3/search\""), "{text}");
        assert!(text.contains("data-from=\"/v1/jobs/2/search\""), "{text}");
        assert!(text.contains("digits (job 3)"), "{text}");
        assert_eq!(text.matches("data-chart").count(), 2, "{text}");
    }

    #[test]
    fn places_of_a_job_file_are_named_by_their_path() {
        let mut places = BTreeMap::new();
        flatten("", &json!({"a": {"b": 1, "c": [1, 2]}, "d": {}}), &mut places);
        let named: Vec<(&str, String)> =
            places.iter().map(|(place, value)| (place.as_str(), value.to_string())).collect();
        assert_eq!(named, [("a.b", "1".into()), ("a.c", "[1,2]".into()), ("d", "{}".into())]);
    }
}
