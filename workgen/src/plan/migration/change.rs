//! Small changes of shares, at random: another machine, machines or urgencies exchanged, a split, a split elsewhere, or
//! none.

use super::{instance::Instance, share::Share};
use crate::plan::problem::id;
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::{quantity::SaturatingFrom as _, seeds};

/// One change in this many begins with the trial that ends last, or with others at its machine.
const LAST: u32 = 3;

/// Changes something; false where that is nothing.
pub(super) fn change(
    instance: &Instance<'_>,
    shares: &mut Vec<Share>,
    last: usize,
    rng: &mut ChaCha8Rng,
) -> bool {
    let Some(n) = pick(shares, last, rng) else { return false };
    match seeds::below(rng, 5) {
        0 => to_machine(shares, n, any(rng, instance.problem.machines.len())),
        1 => exchange(shares, n, any(rng, shares.len())),
        2 => exchange_urgencies(shares, n, rng),
        3 => split_elsewhere(shares, n, rng),
        _ => split(instance, shares, n, rng),
    }
}

/// The share that is changed.
fn pick(shares: &[Share], last: usize, rng: &mut ChaCha8Rng) -> Option<usize> {
    let n = any(rng, shares.len());
    if seeds::below(rng, LAST) > 0 {
        return (n < shares.len()).then_some(n);
    }
    let final_share =
        shares.iter().filter(|share| share.trial == last).max_by_key(|of| of.first)?;
    let own = seeds::below(rng, 2) == 0;
    let is_one =
        |of: &Share| if own { of.trial == last } else { of.machine == final_share.machine };
    nth(shares, is_one, rng)
}

/// One of those that are such.
fn nth(shares: &[Share], is_one: impl Fn(&Share) -> bool, rng: &mut ChaCha8Rng) -> Option<usize> {
    let such = || shares.iter().enumerate().filter(|(_, share)| is_one(share));
    such().nth(any(rng, such().count())).map(|(n, _)| n)
}

fn to_machine(shares: &mut Vec<Share>, n: usize, machine: usize) -> bool {
    let share = &mut shares[n];
    let trial = share.trial;
    if std::mem::replace(&mut share.machine, machine) == machine {
        return false;
    }
    join(shares, trial);
    true
}

fn exchange(shares: &mut Vec<Share>, n: usize, m: usize) -> bool {
    let (one, other) = (shares[n], shares[m]);
    if one.machine == other.machine {
        return false;
    }
    (shares[n].machine, shares[m].machine) = (other.machine, one.machine);
    join(shares, one.trial);
    join(shares, other.trial);
    true
}

fn exchange_urgencies(shares: &mut [Share], n: usize, rng: &mut ChaCha8Rng) -> bool {
    let one = shares[n];
    let beside = |of: &Share| of.machine == one.machine && *of != one;
    let Some(m) = nth(shares, beside, rng) else { return false };
    shares[n].urgency = std::mem::replace(&mut shares[m].urgency, one.urgency);
    true
}

/// Gives up to a quarter of two shares that follow each other from one to the other, or all that one has.
fn split_elsewhere(shares: &mut Vec<Share>, n: usize, rng: &mut ChaCha8Rng) -> bool {
    let one = shares[n];
    let follows = |of: &Share| of.trial == one.trial && of.first == one.end;
    let Some(m) = shares.iter().position(follows) else { return false };
    let other = shares[m];
    let by = 1 + below(rng, (other.end - one.first) / 4);
    let at = if seeds::below(rng, 2) == 0 { one.end.saturating_sub(by) } else { one.end + by };
    if at > one.first && at < other.end {
        (shares[n].end, shares[m].first) = (at, at);
        return true;
    }
    let machine = if at <= one.first { other.machine } else { one.machine };
    shares[n] = Share { end: other.end, machine, ..one };
    shares.swap_remove(m);
    join(shares, one.trial);
    true
}

/// Gives the first or the last hops of a share to another machine.
fn split(instance: &Instance<'_>, shares: &mut Vec<Share>, n: usize, rng: &mut ChaCha8Rng) -> bool {
    let one = shares[n];
    let machine = any(rng, instance.problem.machines.len());
    if one.end - one.first < 2 || machine == one.machine {
        return false;
    }
    let at = one.first + 1 + below(rng, one.end - one.first - 1);
    let urgency = one.urgency.min(instance.work_from(one.trial, at));
    let (mut head, mut tail) = (Share { end: at, ..one }, Share { first: at, urgency, ..one });
    let moved = if seeds::below(rng, 2) == 0 { &mut head } else { &mut tail };
    moved.machine = machine;
    shares[n] = head;
    shares.push(tail);
    join(shares, one.trial);
    true
}

/// Shares of a trial that follow each other at one machine are one.
fn join(shares: &mut Vec<Share>, trial: usize) {
    let mut n = 0;
    while n < shares.len() {
        let one = shares[n];
        let follows =
            |of: &Share| of.trial == trial && of.first == one.end && of.machine == one.machine;
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
fn any(rng: &mut ChaCha8Rng, count: usize) -> usize {
    seeds::below(rng, id(count).max(1)) as usize
}

/// A number below `count`, 0 where that is 0.
fn below(rng: &mut ChaCha8Rng, count: u64) -> u64 {
    seeds::below(rng, u32::saturating_from(count).max(1)).into()
}
