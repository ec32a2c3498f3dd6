//! Asynchronous successive halving, as Algorithm 2 of its paper has it: a trial is promoted as soon as it is among the best
//! `1/reduction` of those that have reached its rung, the highest rung first; else another trial begins. Those that wait may be
//! promoted later, when others that are worse have come.

use super::{Decision, Progress, TrialProgress, better_first, said_place, with_ids};
use sojourn_protocol::{ids::TrialId, quantity::to_usize, spec::Halving};

/// A rung: the trials that have reached it, best first.
struct Rung {
    epochs: u32,
    /// Epochs of the next one.
    next: u32,
    reached: Vec<(TrialId, f64)>,
    /// How many of them may go on.
    go_on: usize,
}

pub(super) fn decide(halving: Halving, progress: &Progress<'_>) -> Vec<Decision> {
    let rungs = rungs(halving, progress);
    let of = |trial: TrialId| progress.trials.get(to_usize(trial.0));
    let waits_at = |trial: TrialId, rung: &Rung| {
        of(trial).is_some_and(|of| of.waits_between(rung.epochs, rung.next))
    };
    let promotions = rungs.iter().rev().flat_map(|rung| {
        let best = rung.reached.iter().take(rung.go_on).enumerate();
        best.filter(|(_, (trial, _))| waits_at(*trial, rung)).map(|(place, (trial, _))| {
            Decision::Continue {
                trial: *trial,
                epochs: rung.next,
                why: said_place(place, rung.reached.len(), rung.epochs, rung.go_on),
            }
        })
    });
    let first = halving.rungs(progress.epochs).first().copied().unwrap_or(progress.epochs);
    let is_new = |(_, of): &(TrialId, &TrialProgress)| of.allowed == 0 && !of.has_ended;
    let begins = with_ids(progress).filter(is_new).map(|(trial, _)| Decision::Continue {
        trial,
        epochs: first,
        why: "there is room for another trial".to_owned(),
    });
    let mut all = promotions.chain(begins).peekable();
    if all.peek().is_some() || progress.trials.iter().any(TrialProgress::is_running) {
        return all.take(progress.room).collect();
    }
    // Nothing can change any more. If nobody has come to the end, the best of those who came farthest does.
    if !progress.trials.iter().any(|of| of.after(progress.epochs).is_some()) {
        let farthest = rungs.iter().rev().find_map(|rung| {
            let place = rung.reached.iter().position(|(trial, _)| waits_at(*trial, rung))?;
            Some((rung, place))
        });
        if let Some((rung, place)) = farthest {
            let (of, epochs) = (rung.reached.len(), rung.epochs);
            return vec![Decision::Continue {
                trial: rung.reached.get(place).map_or(TrialId(0), |(trial, _)| *trial),
                epochs: rung.next,
                why: said_place(place, of, epochs, 1),
            }];
        }
    }
    let left = rungs.iter().flat_map(|rung| {
        let places = rung.reached.iter().enumerate();
        places.filter(|(_, (trial, _))| waits_at(*trial, rung)).map(|(place, (trial, _))| {
            Decision::Stop {
                trial: *trial,
                why: said_place(place, rung.reached.len(), rung.epochs, rung.go_on),
            }
        })
    });
    left.collect()
}

/// All rungs but the last, after which trials have finished.
fn rungs(halving: Halving, progress: &Progress<'_>) -> Vec<Rung> {
    let epochs = halving.rungs(progress.epochs);
    let rung = |(epochs, next): (&u32, &u32)| {
        let reached = with_ids(progress).filter_map(|(id, of)| Some((id, of.after(*epochs)?)));
        let mut reached: Vec<(TrialId, f64)> = reached.collect();
        reached.sort_by(|a, b| better_first(progress.goal, *a, *b));
        let go_on = reached.len() / to_usize(halving.reduction).max(2);
        Rung { epochs: *epochs, next: *next, reached, go_on }
    };
    epochs.iter().zip(epochs.iter().skip(1)).map(rung).collect()
}
