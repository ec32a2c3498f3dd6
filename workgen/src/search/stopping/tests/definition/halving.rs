//! Successive halving whose rungs wait for all their trials: the same trials go on whatever the machines were. Hyperband is
//! several brackets of it, which don't wait for each other.

use super::{Decision, Progress, TrialProgress, better_first, said_place};
use sojourn_protocol::{
    ids::TrialId,
    quantity::{SaturatingFrom as _, to_usize},
    spec::{Bracket, Halving, hyperband},
};
use std::ops::Range;

pub(super) fn decide_sha(halving: Halving, progress: &Progress<'_>) -> Vec<Decision> {
    let mut decisions = Vec::new();
    let rungs = halving.rungs(progress.epochs);
    decide_bracket(0..progress.trials.len(), &rungs, halving.reduction, progress, &mut decisions);
    decisions
}

pub(super) fn decide_hyperband(reduction: u32, progress: &Progress<'_>) -> Vec<Decision> {
    let mut decisions = Vec::new();
    for (trials, bracket) in brackets(progress.trials.len(), progress.epochs, reduction) {
        decide_bracket(trials, &bracket.rungs, reduction, progress, &mut decisions);
    }
    decisions
}

/// Hyperband's brackets over so many trials, again and again until all are in one; the last may lack some.
fn brackets(
    trials: usize,
    epochs: u32,
    reduction: u32,
) -> impl Iterator<Item = (Range<usize>, Bracket)> {
    let all = hyperband(epochs, reduction);
    let mut begin = 0;
    all.into_iter().cycle().map_while(move |bracket| {
        let end = trials.min(begin + to_usize(bracket.trials).max(1));
        let range = begin..end;
        begin = end;
        (!range.is_empty()).then_some((range, bracket))
    })
}

/// Thins out the trials of one bracket, as far as whole rungs are evaluated.
fn decide_bracket(
    trials: Range<usize>,
    rungs: &[u32],
    reduction: u32,
    progress: &Progress<'_>,
    decisions: &mut Vec<Decision>,
) {
    let id = |index: usize| TrialId(u32::saturating_from(index));
    let of = |trial: TrialId| progress.trials.get(to_usize(trial.0));
    let mut members: Vec<TrialId> = trials.map(id).collect();
    for (epochs, next) in rungs.iter().zip(rungs.iter().skip(1)) {
        let is_settled = |of: &TrialProgress| of.has_ended || of.after(*epochs).is_some();
        if !members.iter().all(|trial| of(*trial).is_some_and(is_settled)) {
            return;
        }
        let value = |trial: &TrialId| of(*trial).and_then(|of| of.after(*epochs));
        let mut ranked: Vec<(TrialId, f64)> =
            members.iter().map(|trial| (*trial, value(trial).unwrap_or(f64::NAN))).collect();
        ranked.sort_by(|a, b| better_first(progress.goal, *a, *b));
        let go_on = (members.len() / to_usize(reduction).max(2)).max(1);
        for (place, (trial, _)) in ranked.iter().enumerate() {
            if !of(*trial).is_some_and(|of| of.waits_between(*epochs, *next)) {
                continue;
            }
            let why = said_place(place, members.len(), *epochs, go_on);
            decisions.push(match place < go_on {
                true => Decision::Continue { trial: *trial, epochs: *next, why },
                false => Decision::Stop { trial: *trial, why },
            });
        }
        let has_gone_on = |trial: TrialId| of(trial).is_some_and(|of| of.allowed >= *next);
        let all = ranked.iter().map(|(trial, _)| *trial).enumerate();
        let all = all.filter(|(place, trial)| *place < go_on || has_gone_on(*trial));
        members = all.map(|(_, trial)| trial).collect();
        members.sort_unstable();
    }
}
