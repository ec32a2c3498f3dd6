//! Configurations that a job trains with several seeds or folds: the mean and the deviation of their best values.

use crate::words;
use maud::{Markup, html};
use sojourn_protocol::{
    figures,
    spec::Goal,
    trial_name,
    view::{JobView, TrialView, configurations, replicates},
};

/// Configurations on the page.
const ROWS: usize = 20;

/// The configurations, the best mean first; nothing where each is one trial.
pub(super) fn over_replicates(job: &JobView, goal: Goal, trials: &[TrialView]) -> Markup {
    let (all, over) = (configurations(trials, goal), replicates(trials));
    let number = |value: Option<f64>| words::metric(value);
    html! {
        @if !all.is_empty() {
            h3 { "Over " (over) }
            div.wide tabindex="0" role="region" aria-label={ "Configurations over " (over) } {
                table {
                    thead {
                        tr {
                            th scope="col" { "Configuration" }
                            th scope="col" { "Mean of the best " (job.metric) }
                            th scope="col" { "Deviation" }
                            th scope="col" { "Trials" }
                        }
                    }
                    tbody {
                        @for of in all.iter().take(ROWS) {
                            tr {
                                th scope="row" { (of.arch) " " (trial_name::choices_text(&of.choices)) }
                                td.number { strong { (number(of.mean)) } }
                                td.number { (number(of.deviation)) }
                                td.number { (of.evaluated) " of " (of.trials) }
                            }
                        }
                    }
                }
            }
            @if all.len() > ROWS {
                p.hint { "The best " (ROWS) " of " (figures::counted(sojourn_protocol::quantity::to_u64(all.len()), "configuration")) }
            }
        }
    }
}
