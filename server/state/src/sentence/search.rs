//! Events of searches as sentences: which trials are added, go on or stop, and who asked for it.

use super::{
    text::{brief, shown},
    token,
};
use crate::{AddedTrial, By};
use sojourn_protocol::{
    figures,
    ids::{JobId, TrialId},
    quantity::to_u64,
    space,
    spec::{ModelSpace, TrainingSpace},
};
use std::collections::BTreeMap;

/// Trials that a sentence names as those which clones go on from; the event itself has all.
const MAX_NAMED: usize = 8;

/// A space, and the dimensions that are other than before, as JSON pointers into it.
pub(super) struct SpaceChange<'a> {
    pub(super) models: &'a [ModelSpace],
    pub(super) training: &'a TrainingSpace,
    pub(super) changed: &'a [String],
}

/// `, as asked with token 4`.
fn asked(by: Option<By>) -> String {
    shown(by.as_ref(), |by| format!(", as asked with {}", token(*by)))
}

pub(super) fn more_combinations(job: JobId, trials: u32, by: By) -> String {
    let trials = figures::counted(u64::from(trials), "combination");
    format!("the search of job {job} is to try {trials} in all{}", asked(Some(by)))
}

pub(super) fn ended(job: JobId, why: &str, by: Option<By>) -> String {
    let why = brief(why);
    match by {
        None => format!("the search of job {job} tries no more combinations: {why}"),
        Some(by) => format!("the search of job {job} was ended with {}: {why}", token(by)),
    }
}

pub(super) fn placed(trial: TrialId, priority: i32, by: By) -> String {
    let asked = asked(Some(by));
    format!("trial {trial} has priority {priority} among those of its job{asked}")
}

pub(super) fn continued(trial: TrialId, epochs: u32, why: &str, by: Option<By>) -> String {
    let epochs = figures::counted(u64::from(epochs), "epoch");
    format!("trial {trial} goes on up to {epochs}{}: {}", asked(by), brief(why))
}

pub(super) fn retried(trial: TrialId, why: &str, by: By) -> String {
    format!("trial {trial} begins anew after its failure{}: {}", asked(Some(by)), brief(why))
}

pub(super) fn stopped(trial: TrialId, why: &str, by: Option<By>) -> String {
    let by = by.map_or_else(|| "by the search".to_owned(), |by| format!("with {}", token(by)));
    format!("trial {trial} was stopped {by}: {}", brief(why))
}

pub(super) fn extended(job: JobId, trials: &[TrialId], epochs: u32, by: Option<By>) -> String {
    let train = if trials.len() == 1 { "trains" } else { "train" };
    let trials = figures::counted(to_u64(trials.len()), "trial");
    let epochs = figures::counted(u64::from(epochs), "epoch");
    format!("{trials} of job {job} {train} for {epochs} in all{}", asked(by))
}

/// Which dimensions are other, and how.
pub(super) fn space_changed(
    job: JobId,
    change: &SpaceChange<'_>,
    why: Option<&str>,
    by: By,
) -> String {
    let why = shown(why, |why| format!(": {}", brief(why)));
    let of = space::as_json(change.models, change.training);
    let changes = change.changed.iter().map(|place| {
        let now = of.pointer(place);
        let now = now.map_or_else(|| "its default".to_owned(), space::in_words);
        format!("`{}` from {now}", space::name_of(place))
    });
    let changes: Vec<String> = changes.collect();
    let what = match changes.is_empty() {
        true => "combinations from another space".to_owned(),
        false => changes.join(", "),
    };
    format!("the search of job {job} takes {what} from now on{}{why}", asked(Some(by)))
}

pub(super) fn added(job: JobId, trials: &[AddedTrial], why: &str, by: Option<By>) -> String {
    let (why, clones) = (brief(why), clones(trials));
    let count = figures::counted(to_u64(trials.len()), "trial");
    let were = if trials.len() == 1 { "was" } else { "were" };
    match by.map(token) {
        // A call whose name is kept, so that it does nothing when it is repeated.
        Some(with) if trials.is_empty() => {
            format!("the search of job {job} was changed with {with}, and no trial added: {why}")
        }
        Some(with) => format!("{count} {were} added to job {job} with {with}: {why}{clones}"),
        None => format!("the search of job {job} adds {count}: {why}{clones}"),
    }
}

/// Which trials those go on from that don't begin anew.
fn clones(trials: &[AddedTrial]) -> String {
    let mut from = BTreeMap::<(TrialId, u32), u64>::new();
    for clone in trials.iter().filter_map(|trial| trial.from) {
        *from.entry((clone.trial, clone.epochs)).or_default() += 1;
    }
    let mut named: Vec<String> = from
        .iter()
        .take(MAX_NAMED)
        .map(|((trial, epochs), count)| {
            let go = if *count == 1 { "goes" } else { "go" };
            let epochs = figures::counted(u64::from(*epochs), "epoch");
            format!("{count} {go} on from trial {trial} after {epochs}")
        })
        .collect();
    if from.len() > MAX_NAMED {
        named.push("others from other trials".to_owned());
    }
    named.iter().map(|one| format!("; {one}")).collect()
}
