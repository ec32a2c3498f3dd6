//! Which machines serve which work: a count, not a schedule. The server alone decides which host gets which unit.

use std::collections::BTreeSet;

/// Slots of a machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Supply {
    pub(super) slots: u32,
    /// Bytes of memory of each; 0 where nobody knows.
    pub(super) memory: u64,
}

/// Work of one kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask {
    /// The job, by its place.
    pub(super) job: usize,
    /// Bytes that a unit takes.
    pub(super) memory: u64,
    /// Slots that are of use.
    pub(super) slots: u32,
}

/// So many slots of a machine for an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AskSlots {
    /// The ask, by its place.
    pub(super) ask: usize,
    pub(super) slots: u32,
}

/// The slots of each machine by ask, and the slots of each ask that have none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) machines: Vec<Vec<AskSlots>>,
    pub(super) unmet: Vec<u32>,
    /// Machines with slots for each job.
    pub(super) hosts: Vec<u32>,
}

/// Gives slots to asks: what takes most memory first, since fewest machines have it; and of the machines those that come
/// first. No more than `hosts` machines serve a job.
pub(super) fn assign(supply: &[Supply], asks: &[Ask], hosts: &[Option<u32>]) -> Assignment {
    let mut free: Vec<u32> = supply.iter().map(|machine| machine.slots).collect();
    let mut result = Assignment {
        machines: vec![Vec::new(); supply.len()],
        unmet: asks.iter().map(|ask| ask.slots).collect(),
        hosts: vec![0; hosts.len()],
    };
    let mut serves: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut order: Vec<(usize, &Ask)> = asks.iter().enumerate().collect();
    order.sort_by_key(|(place, ask)| (std::cmp::Reverse(ask.memory), *place));
    for (place, ask) in order {
        let Some(unmet) = result.unmet.get_mut(place) else { continue };
        let most = hosts.get(ask.job).copied().flatten().unwrap_or(u32::MAX);
        let Some(count) = result.hosts.get_mut(ask.job) else { continue };
        let machines = supply.iter().zip(&mut free).zip(&mut result.machines).enumerate();
        for (index, ((machine, free), served)) in machines {
            let fits = machine.memory == 0 || machine.memory >= ask.memory;
            let slots = (*free).min(*unmet);
            let is_new = !serves.contains(&(index, ask.job));
            if !fits || slots == 0 || (is_new && *count >= most) {
                continue;
            }
            if is_new {
                serves.insert((index, ask.job));
                *count += 1;
            }
            *free -= slots;
            *unmet -= slots;
            served.push(AskSlots { ask: place, slots });
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(of: &[(usize, u64, u32)]) -> Vec<Ask> {
        of.iter().map(|&(job, memory, slots)| Ask { job, memory, slots }).collect()
    }

    #[test]
    fn what_needs_most_memory_is_served_first() {
        let supply = [Supply { slots: 1, memory: 8 }, Supply { slots: 2, memory: 2 }];
        let found = assign(&supply, &asks(&[(0, 1, 3), (0, 8, 1)]), &[None]);
        assert_eq!(found.unmet, [1, 0]);
        assert_eq!(found.machines[0], [AskSlots { ask: 1, slots: 1 }]);
        assert_eq!(found.machines[1], [AskSlots { ask: 0, slots: 2 }]);
        assert_eq!(found.hosts, [2]);
    }

    #[test]
    fn a_job_has_no_more_hosts_than_it_may() {
        let supply = [Supply { slots: 2, memory: 0 }; 4];
        let found = assign(&supply, &asks(&[(0, 1, 9), (1, 1, 1)]), &[Some(2), None]);
        assert_eq!(found.unmet, [5, 0]);
        assert_eq!((found.hosts[0], found.hosts[1]), (2, 1));
        assert_eq!(found.machines[2], [AskSlots { ask: 1, slots: 1 }]);
        assert_eq!(found.machines[3], []);
    }
}
