//! How long bytes take between the server and its hosts, and what follows for leases.

use super::fit::Place;
use crate::{
    core::Core,
    state::{Job, Trial},
};
use sojourn_protocol::{ids::HostId, inventory::Links};

/// Bytes per second of a line of which nothing is known.
const UNKNOWN: u64 = 125_000_000;
/// Checkpoints that take no longer than this both ways are moved for each hop. Microseconds.
const LITTLE: u64 = 200_000;
/// A lease is to train for so many times as long as its checkpoints take on their way.
const WORTH: u64 = 20;

/// What waits for its turn is handed out so many times its checkpoint's way before that.
const LEAD: u64 = 2;

/// Microseconds that a checkpoint takes from a host to the server, and from the server to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moves {
    pub(crate) send: u64,
    pub(crate) fetch: u64,
}

impl Moves {
    fn of(bytes: u64, links: Links) -> Self {
        Self { send: takes(bytes, links.upload), fetch: takes(bytes, links.download) }
    }

    /// Too little to plan for?
    pub(crate) fn is_little(self) -> bool {
        self.send.saturating_add(self.fetch) <= LITTLE
    }

    /// Hops that a lease should be of, where one takes `hop` microseconds; at the most so many.
    pub(crate) fn hops(self, hop: u64, most: u32) -> u32 {
        if self.is_little() {
            return 1;
        }
        let worth = self.send.saturating_add(self.fetch).saturating_mul(WORTH);
        let hops = worth.div_ceil(hop.max(1));
        u32::try_from(hops).unwrap_or(u32::MAX).clamp(1, most.max(1))
    }
}

impl Core {
    /// What a trial's checkpoints take between the server and a host.
    pub(crate) fn moves_of(&self, trial: &Trial, host: HostId) -> Moves {
        let links = self.soft.contacts.get(&host).map(|contact| contact.links);
        Moves::of(trial.checkpoint_bytes, links.unwrap_or_default())
    }

    /// Microseconds that so many bytes take from the server to a host.
    pub(crate) fn fetching(&self, host: HostId, bytes: u64) -> u64 {
        let links = self.soft.contacts.get(&host).map(|contact| contact.links);
        takes(bytes, links.unwrap_or_default().download)
    }

    /// What a trial takes to a host that doesn't hold its checkpoint, and back to the server; 0 where it is too
    /// little to plan for.
    pub(crate) fn way(&self, trial: &Trial, host: HostId) -> u64 {
        let moves = self.moves_of(trial, host);
        let holds = trial.history.last().is_none_or(|hop| hop.host == host);
        match moves.is_little() {
            true => 0,
            false => moves.send.saturating_add(if holds { 0 } else { moves.fetch }),
        }
    }

    /// Is it too early to give the place what is to wait there for its turn? What waits can't go elsewhere. Then for
    /// so many microseconds.
    pub(crate) fn is_early(&self, job: &Job, place: Place<'_>) -> Option<u64> {
        if !place.ahead {
            return None;
        }
        let trial = job.trials.iter().find(|trial| trial.is_running())?;
        let moves = self.moves_of(trial, place.host);
        if moves.is_little() {
            return None;
        }
        let slots = self.slots_free_at(place.host, &place.slots.device.name, place.slots.count);
        let free_at = slots.into_iter().min()?;
        let lead = moves.send.saturating_add(moves.fetch).saturating_mul(LEAD);
        free_at.checked_sub(lead).filter(|early| *early > 0)
    }

    /// What they take on the slowest lines of the hosts that are there.
    pub(crate) fn slowest_links(&self) -> Links {
        let slower = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let hosts = self.soft.schedule.fleet.hosts();
        let links = hosts.filter_map(|(host, _)| self.soft.contacts.get(&host));
        links.map(|contact| contact.links).fold(Links::default(), |all, one| Links {
            download: slower(all.download, one.download),
            upload: slower(all.upload, one.upload),
        })
    }

    /// The same over given lines; nothing where it is too little to plan for.
    pub(crate) fn moves_over(trial: &Trial, links: Links) -> Moves {
        let moves = Moves::of(trial.checkpoint_bytes, links);
        if moves.is_little() { Moves { send: 0, fetch: 0 } } else { moves }
    }
}

fn takes(bytes: u64, per_second: Option<u64>) -> u64 {
    let rate = per_second.unwrap_or(UNKNOWN).max(1);
    let micros = u128::from(bytes) * 1_000_000 / u128::from(rate);
    u64::try_from(micros).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_of_as_many_hops_as_make_its_bytes_worth_while() {
        let slow = Links { download: Some(12_500_000), upload: Some(12_500_000) };
        let moves = Moves::of(100_000_000, slow);
        assert_eq!(moves, Moves { send: 8_000_000, fetch: 8_000_000 });
        assert_eq!(moves.hops(400_000_000, 64), 1);
        assert_eq!(moves.hops(50_000_000, 64), 7);
        assert_eq!(moves.hops(1_000, 64), 64);
        let little = Moves::of(1_000_000, Links::default());
        assert_eq!((little.is_little(), little.hops(1, 64)), (true, 1));
    }
}
