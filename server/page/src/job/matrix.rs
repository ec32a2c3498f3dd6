//! The hop matrix: running trials by shards, with how far each hop of the current epoch is.

use maud::{Markup, html};
use sojourn_protocol::{
    figures,
    ids::HostId,
    view::{HopMatrixView, HopRow, HopState},
};

/// The part of a job's page that shows its hops.
#[must_use]
pub fn matrix(hops: &HopMatrixView) -> Markup {
    if hops.trials.is_empty() {
        return html! { p.hint { "No trial is running." } };
    }
    html! {
        p.hint { (hops.trials.len()) " of " (figures::counted(hops.running.into(), "running trial")) }
        (legend())
        div.wide tabindex="0" role="region" aria-label="Hops of running trials" {
            table.matrix {
                thead {
                    tr {
                        th.number scope="col" { "Trial" }
                        th.number scope="col" { "Epoch" }
                        @for shard in 0..hops.shards { th scope="col" { span.spoken { "Shard " } (shard) } }
                        th scope="col" { "State" }
                    }
                }
                tbody { @for row in &hops.trials { (trial(row)) } }
            }
        }
    }
}

fn trial(row: &HopRow) -> Markup {
    html! {
        tr #{ "hops-" (row.trial) } {
            th.number scope="row" { (row.trial) }
            td.number { (row.epoch.0 + 1) }
            @for hop in &row.cells { (cell(hop)) }
            td {
                @if row.evaluating { "evaluates " }
                @if let Some(why) = &row.waiting { span.hint { (why) } }
            }
        }
    }
}

/// A hop: a sign, and in words what it means.
fn cell(hop: &HopState) -> Markup {
    let (class, sign, words) = match hop {
        HopState::Done => ("done", "✓".to_owned(), "done".to_owned()),
        HopState::Reported => ("reported", "↑".to_owned(), "reported".to_owned()),
        HopState::Running { hosts } => {
            let numbers = listed(hosts, "+");
            ("training", format!("▶{numbers}"), format!("running on host {}", listed(hosts, ", ")))
        }
        HopState::Leased { host } => {
            ("leased", format!("…{host}"), format!("leased to host {host}"))
        }
        HopState::Partial { batches, of } => {
            ("partial", format!("{batches}/{of}"), "batches trained".to_owned())
        }
        HopState::Open => ("open", "–".to_owned(), "open".to_owned()),
    };
    html! { td class=(class) { (sign) span.spoken { " " (words) } } }
}

fn listed(hosts: &[HostId], between: &str) -> String {
    hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

/// The legend of the signs.
fn legend() -> Markup {
    let signs = [
        ("done", "✓", "done in this epoch"),
        ("reported", "↑", "reported, waits to be assimilated"),
        ("training", "▶7", "running on host 7"),
        ("leased", "…7", "host 7 has a lease for it: it comes next, or its result is on its way"),
        ("partial", "2/9", "2 of 9 batches trained"),
        ("open", "–", "open"),
    ];
    html! {
        ul.legend {
            @for (class, sign, words) in signs { li { span class={ "sign " (class) } { (sign) } " " (words) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::ids::{Epoch, JobId, TrialId};

    fn of(cells: Vec<HopState>, waiting: Option<&str>) -> HopMatrixView {
        let waiting = waiting.map(str::to_owned);
        let row = HopRow { trial: TrialId(4), epoch: Epoch(1), cells, evaluating: true, waiting };
        HopMatrixView { job: JobId(1), shards: 3, running: 9, trials: vec![row] }
    }

    #[test]
    fn each_hop_is_a_cell_with_a_sign_and_words() {
        let cells = vec![
            HopState::Done,
            HopState::Running { hosts: vec![HostId(3), HostId(5)] },
            HopState::Partial { batches: 20, of: 45 },
        ];
        let text = matrix(&of(cells, None)).into_string();
        for cell in [
            "<td class=\"done\">✓<span class=\"spoken\"> done</span></td>",
            "<td class=\"training\">▶3+5<span class=\"spoken\"> running on host 3, 5</span></td>",
            "<td class=\"partial\">20/45<span class=\"spoken\"> batches trained</span></td>",
            "<th class=\"number\" scope=\"row\">4</th><td class=\"number\">2</td>",
            "evaluates",
            "1 of 9 running trials",
        ] {
            assert!(text.contains(cell), "{cell}: {text}");
        }
        assert_eq!(text.matches("<span class=\"spoken\">Shard </span>").count(), 3);
    }

    #[test]
    fn reasons_are_text_and_no_markup() {
        let text = matrix(&of(vec![HopState::Open], Some("<script>x"))).into_string();
        assert!(text.contains("&lt;script&gt;x") && !text.contains("<script"), "{text}");
    }

    #[test]
    fn a_job_without_running_trials_has_no_table() {
        let hops = HopMatrixView { job: JobId(1), shards: 3, running: 0, trials: Vec::new() };
        let text = matrix(&hops).into_string();
        assert!(text.contains("No trial is running") && !text.contains("<table"), "{text}");
    }
}
