//! How many slots are of use for each workload, by what the server says and by deadlines.

use super::{
    Situation,
    assign::Ask,
    memory::Memory,
    pools::{count, float},
    worth::{self, Speed},
};
use sojourn_protocol::{
    demand::{JobDemand, WorkloadDemand},
    time::Millis,
};

/// Of the time until a deadline so much is planned with; the rest is for interruptions and starts.
const PUNCTUAL: f64 = 0.8;
/// Of that time so much is planned with where purchases wait for lower prices: they wait less as it runs out.
const IN_TIME: f64 = 0.96;

/// Work of one kind, and the slots that are of use for it.
#[derive(Debug, Clone)]
pub(super) struct SlotDemand<'a> {
    /// The job's place.
    pub(super) at: usize,
    pub(super) job: &'a JobDemand,
    pub(super) workload: &'a WorkloadDemand,
    /// Slots that have or could have a unit, now or soon. Machines that are there are kept for them.
    pub(super) keep: u32,
    /// Slots for which machines are bought.
    pub(super) buy: u32,
    /// The work will be late, or nearly, if it waits for cheaper machines.
    pub(super) urgent: bool,
    /// How long the work takes on `buy` slots.
    pub(super) time: Millis,
    /// By how much it will be late at least.
    pub(super) late: Option<Millis>,
    /// How many times as long as its longest trial needs there is; 1 without a deadline: then it is to end soon.
    pub(super) patience: f64,
}

/// The slots that are of use, of jobs in their order. Of each job the work with the least time to spare comes first, so that
/// what no machine is there for can wait. Slots of hosts that weren't bought are taken off.
pub(super) fn wants<'a>(situation: &Situation<'a>, memory: &Memory) -> Vec<SlotDemand<'a>> {
    let jobs = situation.demand.jobs.iter().enumerate();
    let mut wants: Vec<SlotDemand<'a>> = jobs
        .flat_map(|(at, job)| job.workloads.iter().map(move |workload| (at, job, workload)))
        .map(|(at, job, workload)| want(situation, memory, at, job, workload))
        .collect();
    wants.sort_by(|a, b| a.at.cmp(&b.at).then(a.patience.total_cmp(&b.patience)));
    let mut others = situation.demand.other_slots;
    for want in &mut wants {
        // They work for nothing, so they come first. What runs on bought machines stays there.
        let free = others.min(want.keep);
        others -= free;
        want.keep = want.keep.saturating_sub(free);
        want.buy = want.buy.saturating_sub(free);
    }
    wants
}

fn want<'a>(
    situation: &Situation<'a>,
    memory: &Memory,
    at: usize,
    job: &'a JobDemand,
    workload: &'a WorkloadDemand,
) -> SlotDemand<'a> {
    let now_or_soon = workload.runnable.saturating_add(workload.running);
    let any = now_or_soon.saturating_add(workload.soon);
    let most = workload.parallel.max(workload.running);
    let keep = if any > 0 { most } else { 0 };
    let mut buy = now_or_soon.min(most);
    let speed = best_speed(situation, memory, workload);
    let longest = worth::time_of(workload.longest, speed);
    let all = worth::time_of(workload.rows, speed);
    let (mut urgent, mut late, mut patience) = (false, None, 1.0);
    if let Some(deadline) = job.deadline {
        let left = deadline - situation.now;
        let start = situation.settings.times.boot;
        let usable = (float(left.0.saturating_sub(start.0)) * PUNCTUAL).max(0.0);
        let enough = enough_slots(float(all.0), float(longest.0), usable);
        urgent = enough.is_none_or(|slots| slots >= buy);
        buy = enough.map_or(buy, |slots| slots.min(buy));
        patience = float(left.0.saturating_sub(start.0)) * IN_TIME / float(longest.0.max(1));
        late = longest.0.checked_sub(left.0).filter(|by| *by > 0).map(Millis);
    }
    let parts = all.0.checked_div(u64::from(buy)).unwrap_or(all.0);
    let time = Millis(parts.max(longest.0));
    SlotDemand { at, job, workload, keep, buy, urgent, time, late, patience }
}

/// The fewest slots with which trials end in time, the longest first (Graham 1969: a list schedule takes at most
/// `all / n + longest * (1 - 1 / n)`); none where even one for each trial may be too few.
fn enough_slots(all: f64, longest: f64, usable: f64) -> Option<u32> {
    if longest >= usable {
        return None;
    }
    let slots = (all - longest).max(0.0) / (usable - longest);
    Some(count(slots).saturating_add(1))
}

/// The speed of the types that such work is done on: the median over those that would do.
fn best_speed(situation: &Situation<'_>, memory: &Memory, workload: &WorkloadDemand) -> Speed {
    let (settings, offers) = (situation.settings, situation.offers);
    let fit = offers.types.values().filter(|kind| {
        let slots = worth::slots(workload, kind, settings);
        settings.types.admit(kind) && settings.types.slot_memory(kind, slots) >= workload.memory
    });
    let mut speeds: Vec<Speed> =
        fit.map(|kind| worth::speed(workload, kind, memory, settings)).collect();
    if speeds.iter().any(|speed| speed.measured) {
        speeds.retain(|speed| speed.measured);
    }
    speeds.sort_by(|a, b| a.nanos_per_row.total_cmp(&b.nanos_per_row));
    let nominal = Speed { nanos_per_row: float(workload.nanos_per_row.max(1)), measured: false };
    speeds.get(speeds.len() / 2).copied().unwrap_or(nominal)
}

impl SlotDemand<'_> {
    /// For [`assign`](super::assign::assign): what machines are kept for.
    pub(super) const fn keep_ask(&self) -> Ask {
        Ask { job: self.at, memory: self.workload.memory, slots: self.keep }
    }

    /// The same, of what they are bought for.
    pub(super) const fn buy_ask(&self) -> Ask {
        Ask { job: self.at, memory: self.workload.memory, slots: self.buy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_time_to_spare_fewer_slots_are_enough() {
        assert_eq!(enough_slots(64.0, 1.0, 64.0), Some(2));
        assert_eq!(enough_slots(64.0, 1.0, 8.0), Some(10));
        assert_eq!(enough_slots(1.0, 1.0, 8.0), Some(1));
        assert_eq!(enough_slots(64.0, 1.0, 1.0), None);
    }
}
