//! Policies by which one trial goes before the others.

use crate::{cpu_share::CpuShare, member::Member};
use sojourn_protocol::{
    quantity::Micros,
    spec::{First, Order},
};

/// Gives the first of a host's trials all, and the others the least. Of trials that are alike the one that comes first does. A trial
/// whose rest isn't known yet has all, too: it may be the shortest.
pub(crate) fn plan<'a>(policy: &First, members: impl Iterator<Item = &'a mut Member>) {
    let mut members: Vec<&mut Member> = members.collect();
    let ranks = |n: &usize| members.get(*n).map(|of| rank(policy.order, of));
    let first = (0..members.len()).min_by_key(ranks);
    for (n, member) in members.iter_mut().enumerate() {
        let is_unknown = rank(policy.order, member) == Micros::MAX;
        let cpu_share = if Some(n) == first || is_unknown { 1.0 } else { policy.least };
        member.cpu_share = CpuShare::between(policy.least, cpu_share);
    }
}

fn rank(order: Order, member: &Member) -> Micros {
    match order {
        // Of which nothing is known comes last.
        Order::ShortestRemaining => member.estimate.remaining.unwrap_or(Micros::MAX),
        Order::LeastAttained => member.history.attained(),
    }
}
