//! Leases for a host that asks: what was chosen for its slots, and who pays for it.

use super::{choose::Chosen, reason::Words};
use crate::{
    core::Core,
    event::{Event, UnitKey},
    schedule::PlaceName,
    state::Job,
};
use sojourn_protocol::{ids::HostId, inventory::Demand, time::Millis, unit};

impl Core {
    /// Grants units for each device, up to as many as are wanted there. Those for idle slots come first; the
    /// others are handed out ahead, and only while other hosts' idle slots don't need them.
    pub(crate) fn grant(&mut self, host: HostId, demand: &[Demand]) -> Vec<unit::Lease> {
        let mut leases = Vec::new();
        let mut filled = Vec::new();
        for Demand { device, idle, wanted, .. } in demand {
            let idle = *idle.min(wanted);
            let given =
                (0..idle).map_while(|_| self.grant_one(host, device, false)).collect::<Vec<_>>();
            filled.push(u32::try_from(given.len()) == Ok(idle));
            leases.extend(given);
        }
        for (Demand { device, idle, wanted, .. }, filled) in demand.iter().zip(filled) {
            let ahead = if filled { wanted.saturating_sub(*idle) } else { 0 };
            for _ in 0..ahead {
                if self.supply() <= self.soft.parked.idle_beside(host) {
                    return leases;
                }
                let Some(lease) = self.grant_one(host, device, true) else { break };
                leases.push(lease);
            }
        }
        leases
    }

    fn grant_one(&mut self, host: HostId, device: &str, ahead: bool) -> Option<unit::Lease> {
        let chosen = self.choose(host, device, ahead)?;
        self.give(host, device, chosen)
    }

    /// Gives a host's device what was chosen for it.
    pub(crate) fn give(
        &mut self,
        host: HostId,
        device: &str,
        chosen: Chosen,
    ) -> Option<unit::Lease> {
        if let Some(after) = chosen.after {
            return self.promise(host, device, chosen, after);
        }
        let lease = self.next_lease();
        let known = self.soft.contacts.get(&host)?.device(device);
        let class = known.map(|device| device.numeric_class);
        let place = PlaceName { host, device, flops: known.map_or(0.0, |device| device.flops) };
        let takes = self.unit_micros(place, chosen.unit, &chosen.then);
        let hops = chosen.then.len() + 1;
        let others = self.soft.parked.idle_beside(host);
        let why = Words { reason: chosen.why, hops, takes, others }.text();
        self.soft.contacts.get(&host)?;
        let job = chosen.unit.job();
        let (planned, copy_of) = (chosen.planned, chosen.copy_of);
        let is_hop = matches!(chosen.unit, UnitKey::Train { .. });
        self.pass_over_before(job);
        self.emit(Event::LeaseGranted {
            lease,
            host,
            device: device.to_owned(),
            unit: chosen.unit,
            then: chosen.then,
            until: chosen.until,
            base: chosen.base,
            class,
            copy_of,
            why,
        });
        if let Some(known) = self.state.leases.get(&lease).cloned() {
            self.has_shards_of(&known);
            if copy_of.is_none() {
                self.granted_by_plan(&known, planned);
            }
        }
        if is_hop {
            self.look_for_copies();
        }
        self.soft.set_term(lease, self.term_of(lease, Millis(takes / 1000)));
        let micros = self.weighed(job, takes);
        self.shares_of(job).give(job, lease, micros);
        self.wire_lease(lease)
    }

    /// Units that could be granted to somebody.
    pub(crate) fn supply(&self) -> usize {
        self.state.jobs.values().map(Job::supply).sum()
    }
}
