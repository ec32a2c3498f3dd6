//! proto
use super::ground::Ground;

#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// The deadline that slow places leave trials to faster ones for.
    pub(super) deadline: u64,
    /// A block takes at most so long.
    pub(super) quantum: u64,
    /// So long a place waits for a trial that is more urgent.
    pub(super) patience: u64,
    /// By so much less urgent may be a trial that is here already.
    pub(super) stays: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Part { pub(super) trial: usize, pub(super) place: usize, pub(super) first: u64, pub(super) end: u64, pub(super) start: u64 }

#[derive(Clone, Copy)]
struct Way { next: u64, at: u64, place: Option<usize>, }

pub(super) fn run(ground: &Ground<'_>, weights: &[u64], rule: Rule, stop: u64, part: &mut dyn FnMut(Part)) -> u64 {
    let problem = ground.problem;
    let n = problem.trials.len();
    let mut ways: Vec<Way> = problem.trials.iter().map(|t| Way { next: 0, at: t.free_at, place: t.at.map(|a| a as usize) }).collect();
    let mut free: Vec<u64> = problem.places.iter().map(|p| p.free_at).collect();
    let mut order: Vec<usize> = (0..free.len()).collect();
    order.sort_by_key(|p| ground.pace(*p));
    // per hop at best place
    let best: Vec<u64> = (0..n).map(|t| (0..free.len()).map(|p| ground.time(t, p)).min().unwrap_or(0)).collect();
    let left = |t: usize, next: u64| -> u64 {
        let hops = ground.hops[t].max(1);
        let work = (u128::from(best[t]) * u128::from(hops - next) / u128::from(hops)) as u64;
        let gaps = if next < ground.hops[t] { ground.gaps_after(t, next) * problem.trials[t].send } else { 0 };
        work + gaps
    };
    let mut rest: Vec<u64> = (0..n).map(|t| left(t, 0)).collect();
    let mut undone = (0..n).filter(|t| ground.hops[*t] > 0).count();
    let mut last = 0;
    while undone > 0 {
        // the earliest idle place, the fastest of several
        let Some(&place) = order.iter().min_by_key(|p| free[**p]) else { return u64::MAX };
        let t = free[place];
        if t >= stop { return u64::MAX; }
        let mut chosen: Option<(i64, u64, usize)> = None; // score, start, trial
        let mut soonest = u64::MAX;
        for trial in 0..n {
            let way = ways[trial];
            if way.next >= ground.hops[trial] { continue; }
            let moves = way.place.is_some_and(|p| p != place);
            let fetch = if moves { problem.trials[trial].fetch } else { 0 };
            let begins = way.at + fetch;
            let start = t.max(begins);
            if start > t + rule.patience {
                soonest = soonest.min(begins);
                continue;
            }
            let hop = ground.time(trial, place) / ground.hops[trial].max(1);
            let hop_best = best[trial] / ground.hops[trial].max(1);
            // may it be here for a hop, and still be in time?
            let after = rest[trial] - hop_best.min(rest[trial]);
            let slow = hop > hop_best + hop_best / 16;
            let away = if slow && after > 0 { problem.trials[trial].send + problem.trials[trial].fetch } else { 0 };
            let whole_here = hop * (ground.hops[trial] - way.next) + ground.gaps_after(trial, way.next) * problem.trials[trial].send;
            if slow && start + whole_here > rule.deadline && start + hop + away + after > rule.deadline && start + rest[trial] <= rule.deadline {
                // leave it to a faster one; it may come free later
                continue;
            }
            let score = (u128::from(rest[trial]) * u128::from(weights[trial]) / 256) as i64 + if moves { 0 } else { rule.stays as i64 } - 4 * (start - t) as i64;
            if chosen.is_none_or(|(s, ..)| score > s) { chosen = Some((score, start, trial)); }
        }
        let Some((_, start, trial)) = chosen else {
            // wait
            let next = free.iter().filter(|f| **f > t).min().copied().unwrap_or(u64::MAX).min(soonest.max(t + 1));
            if next == u64::MAX { return u64::MAX; }
            free[place] = next;
            continue;
        };
        let way = ways[trial];
        let until = ground.next_epoch(trial, way.next).min(ground.hops[trial]);
        let hop = (ground.time(trial, place) / ground.hops[trial].max(1)).max(1);
        let hop_best = best[trial] / ground.hops[trial].max(1);
        let mut hops = (rule.quantum / hop).max(1).min(until - way.next);
        // don't leave a stub
        if until - way.next - hops < hops / 2 { hops = until - way.next; }
        let whole_here = hop * (ground.hops[trial] - way.next) + ground.gaps_after(trial, way.next) * problem.trials[trial].send;
        if hop > hop_best + hop_best / 16 && start + whole_here > rule.deadline && start + rest[trial] <= rule.deadline {
            let moves = problem.trials[trial].send + problem.trials[trial].fetch;
            // start + k hop + moves + rest - k hop_best <= deadline
            let slack = (rule.deadline - start).saturating_sub(moves + rest[trial]);
            let most = slack / (hop - hop_best);
            hops = hops.min(most.max(1));
        }
        part(Part { trial, place, first: way.next, end: way.next + hops, start });
        let end = start + ground.takes_about(trial, way.next..way.next + hops, place);
        free[place] = end;
        let at = end + problem.trials[trial].send;
        ways[trial] = Way { next: way.next + hops, at, place: Some(place) };
        rest[trial] = left(trial, way.next + hops);
        last = last.max(at);
        if at >= stop { return u64::MAX; }
        if way.next + hops >= ground.hops[trial] { undone -= 1; }
    }
    last
}
