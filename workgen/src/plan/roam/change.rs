//! Small changes of shares, by chance: another place, places or urgencies exchanged, a split, a split elsewhere, or
//! none.

use super::{ground::Ground, share::Share};
use crate::plan::problem::id;
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::seeds;

/// One change in this many begins with the trial that ends last, or with others at its place.
const LAST: u32 = 3;

/// Changes something; false where that is nothing.
pub(super) fn change(
    ground: &Ground<'_>,
    shares: &mut Vec<Share>,
    last: usize,
    chance: &mut ChaCha8Rng,
) -> bool {
    let Some(n) = pick(shares, last, chance) else { return false };
    match seeds::below(chance, 5) {
        0 => to_place(shares, n, any(chance, ground.problem.places.len())),
        1 => exchange(shares, n, any(chance, shares.len())),
        2 => exchange_urgencies(shares, n, chance),
        3 => split_elsewhere(shares, n, chance),
        _ => split(ground, shares, n, chance),
    }
}

/// The share that is changed.
fn pick(shares: &[Share], last: usize, chance: &mut ChaCha8Rng) -> Option<usize> {
    let n = any(chance, shares.len());
    if seeds::below(chance, LAST) > 0 {
        return (n < shares.len()).then_some(n);
    }
    let final_share =
        shares.iter().filter(|share| share.trial == last).max_by_key(|of| of.first)?;
    let own = seeds::below(chance, 2) == 0;
    let is_one = |of: &Share| if own { of.trial == last } else { of.place == final_share.place };
    nth(shares, is_one, chance)
}

/// One of those that are such.
fn nth(
    shares: &[Share],
    is_one: impl Fn(&Share) -> bool,
    chance: &mut ChaCha8Rng,
) -> Option<usize> {
    let such = || shares.iter().enumerate().filter(|(_, share)| is_one(share));
    such().nth(any(chance, such().count())).map(|(n, _)| n)
}

fn to_place(shares: &mut Vec<Share>, n: usize, place: usize) -> bool {
    let share = &mut shares[n];
    let trial = share.trial;
    if std::mem::replace(&mut share.place, place) == place {
        return false;
    }
    join(shares, trial);
    true
}

fn exchange(shares: &mut Vec<Share>, n: usize, m: usize) -> bool {
    let (one, other) = (shares[n], shares[m]);
    if one.place == other.place {
        return false;
    }
    (shares[n].place, shares[m].place) = (other.place, one.place);
    join(shares, one.trial);
    join(shares, other.trial);
    true
}

fn exchange_urgencies(shares: &mut [Share], n: usize, chance: &mut ChaCha8Rng) -> bool {
    let one = shares[n];
    let beside = |of: &Share| of.place == one.place && *of != one;
    let Some(m) = nth(shares, beside, chance) else { return false };
    shares[n].urgency = std::mem::replace(&mut shares[m].urgency, one.urgency);
    true
}

/// Gives up to a quarter of two shares that follow each other from one to the other, or all that one has.
fn split_elsewhere(shares: &mut Vec<Share>, n: usize, chance: &mut ChaCha8Rng) -> bool {
    let one = shares[n];
    let follows = |of: &Share| of.trial == one.trial && of.first == one.end;
    let Some(m) = shares.iter().position(follows) else { return false };
    let other = shares[m];
    let by = 1 + below(chance, (other.end - one.first) / 4);
    let at = if seeds::below(chance, 2) == 0 { one.end.saturating_sub(by) } else { one.end + by };
    if at > one.first && at < other.end {
        (shares[n].end, shares[m].first) = (at, at);
        return true;
    }
    let place = if at <= one.first { other.place } else { one.place };
    shares[n] = Share { end: other.end, place, ..one };
    shares.swap_remove(m);
    join(shares, one.trial);
    true
}

/// Gives the first or the last hops of a share to another place.
fn split(ground: &Ground<'_>, shares: &mut Vec<Share>, n: usize, chance: &mut ChaCha8Rng) -> bool {
    let one = shares[n];
    let place = any(chance, ground.problem.places.len());
    if one.end - one.first < 2 || place == one.place {
        return false;
    }
    let at = one.first + 1 + below(chance, one.end - one.first - 1);
    let urgency = one.urgency.min(ground.work_from(one.trial, at));
    let (mut head, mut tail) = (Share { end: at, ..one }, Share { first: at, urgency, ..one });
    let moved = if seeds::below(chance, 2) == 0 { &mut head } else { &mut tail };
    moved.place = place;
    shares[n] = head;
    shares.push(tail);
    join(shares, one.trial);
    true
}

/// Shares of a trial that follow each other at one place are one.
fn join(shares: &mut Vec<Share>, trial: usize) {
    let mut n = 0;
    while n < shares.len() {
        let one = shares[n];
        let follows =
            |of: &Share| of.trial == trial && of.first == one.end && of.place == one.place;
        match shares.iter().position(follows).filter(|_| one.trial == trial) {
            Some(m) => {
                shares[n].end = shares[m].end;
                shares[n].urgency = one.urgency.max(shares[m].urgency);
                shares.swap_remove(m);
                n = 0;
            }
            None => n += 1,
        }
    }
}

/// An index below `count`, 0 where that is 0.
fn any(chance: &mut ChaCha8Rng, count: usize) -> usize {
    seeds::below(chance, id(count).max(1)) as usize
}

/// A number below `count`, 0 where that is 0.
fn below(chance: &mut ChaCha8Rng, count: u64) -> u64 {
    seeds::below(chance, u32::try_from(count).unwrap_or(u32::MAX).max(1)).into()
}
