//! FlowCon's algorithm 1: lists by growth efficiency, then CPU shares by it.

use crate::{
    cpu_share::CpuShare,
    efficiency::{efficiency, learns},
    member::Member,
};
use sojourn_protocol::{cpu_shares::List, quantity::Micros, spec::FlowCon};

/// Does any trial learn?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Learning {
    Some,
    /// All are in the completing list: each has what it wants, and the next plan can wait.
    None,
}

/// Plans the CPU shares of all trials of a host.
pub(crate) fn plan<'a>(
    policy: &FlowCon,
    now: Micros,
    capacity: f64,
    members: impl Iterator<Item = &'a mut Member>,
) -> Learning {
    let mut rated: Vec<(&mut Member, Option<f64>)> = members
        .map(|member| {
            let growth = efficiency(policy, &member.history, capacity);
            (member, growth)
        })
        .collect();
    for (member, growth) in &mut rated {
        if let Some(growth) = *growth {
            member.is_known = true;
            classify(policy, now, member, growth);
        }
    }
    if rated.iter().all(|(member, _)| member.list == List::Completing) {
        rated.iter_mut().for_each(|(member, _)| member.cpu_share = CpuShare::FULL);
        return Learning::None;
    }
    let least = least(policy, rated.len());
    let sum: f64 = rated.iter().filter_map(|(_, growth)| *growth).sum();
    for (member, growth) in rated {
        let cpu_share = match growth {
            None if !member.is_known => 1.0,
            Some(growth) if sum > 0.0 && member.list != List::Watching => growth / sum,
            // It keeps what it has.
            _ => member.cpu_share.get(),
        };
        member.cpu_share = CpuShare::between(least, cpu_share);
    }
    Learning::Some
}

/// The least CPU share of each of so many trials.
#[expect(clippy::cast_precision_loss, reason = "trials of one host are few")]
fn least(policy: &FlowCon, members: usize) -> f64 {
    1.0 / (policy.beta * members as f64)
}

/// One list at most, and not before an interval has passed since the last time.
fn classify(policy: &FlowCon, now: Micros, member: &mut Member, growth: f64) {
    if now - member.classified < policy.interval {
        return;
    }
    let Some(learns) = learns(policy, growth, member.estimate) else { return };
    member.classified = now;
    member.list = match member.list {
        _ if learns => List::New,
        List::New => List::Watching,
        List::Watching | List::Completing => List::Completing,
    };
}
