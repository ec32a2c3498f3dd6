//! Sampling: whose results are verified, by how many parties, and how many of them. The method is adaptive replication, as
//! BOINC has it (Anderson, 2020, "BOINC: a platform for volunteer computing", section 3.4).
//!
//! The record that counts is the party's: of all hosts of an issued owner together, so that nobody earns trust with one host
//! and spends it with others. A host of the operator is a party by itself.

use super::{Host, Job, State, Trust};
use sojourn_protocol::{
    ids::{HostId, LeaseId},
    names::OwnerName,
    quantity::to_usize,
    spec::Verify,
};

/// The unit of verification rates: per mille.
pub const PER_MILLE: u32 = 1000;
/// The rate at which results of a stranger with the best record are verified: one in twenty.
const LEAST_RATE: u32 = 50;
/// A new host of a trusted party has so many results of its own confirmed before its party's rate holds for it.
const OWN_CONFIRMED: u32 = 3;

/// How the results of a host in a job are verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checks {
    /// How many of a thousand trained results are verified.
    pub hops: u32,
    /// The same of evaluations on which nothing depends yet.
    pub evaluations: u32,
}

impl Host {
    /// Is it a stranger's: of an issued owner whom the operator hasn't vouched for, and no machine that was bought?
    #[must_use]
    pub fn is_strangers(&self) -> bool {
        !self.owner.is_default() && !self.trusted && self.machine.is_none()
    }
}

impl Trust {
    /// How many of a thousand results are verified by this record alone: all of them up to ten in a row, then ten of the row's length,
    /// and at least one in twenty.
    fn adaptive_rate(&self) -> u32 {
        match self.is_earned() {
            true => (super::verification::TRUSTED_AFTER * PER_MILLE / self.in_row).max(LEAST_RATE),
            false => PER_MILLE,
        }
    }
}

impl State {
    /// Is it a stranger's host?
    pub fn is_strangers(&self, host: HostId) -> bool {
        self.hosts.get(&host).is_some_and(Host::is_strangers)
    }

    /// How many parties have to come to the same result before one of this host's counts in a job; `None` where the host is
    /// believed. Every decision about that asks here.
    pub fn verified_quorum_for(&self, job: &Job, host: HostId) -> Option<usize> {
        let of_strangers = || {
            let is_verified = job.spec.placement.verifies_strangers() && self.is_strangers(host);
            is_verified.then_some(to_usize(Verify::QUORUM))
        };
        job.verified_quorum().or_else(of_strangers)
    }

    /// Is a host no stranger's, or a stranger's who has earned trust?
    #[must_use]
    pub fn is_established(&self, host: HostId) -> bool {
        !self.is_strangers(host) || self.record_of(host).is_earned()
    }

    /// The record of the party behind a host.
    pub(crate) fn record_of(&self, host: HostId) -> Trust {
        let Some(known) = self.hosts.get(&host) else { return Trust::default() };
        match known.is_strangers() {
            true => self.records.get(&known.owner).copied().unwrap_or_default(),
            false => known.trust,
        }
    }

    /// How the results of a lease are verified; `None` where its host is believed.
    pub fn checks_of(&self, lease: LeaseId) -> Option<Checks> {
        let lease = self.lease(lease)?;
        let job = self.jobs.get(&lease.unit.job())?;
        self.verified_quorum_for(job, lease.host)?;
        let host = self.hosts.get(&lease.host)?;
        let record = self.record_of(lease.host);
        let adaptive = self.stranger_rate(host).unwrap_or(0);
        let Some(verify) = job.spec.placement.verifies_all() else {
            return Some(Checks { hops: adaptive, evaluations: PER_MILLE });
        };
        let given = match (record.is_lost(), host.is_strangers(), record.is_earned()) {
            (true, _, _) => PER_MILLE,
            (false, false, true) => (verify.rate * verify.rate / PER_MILLE).max(1),
            (false, _, _) => verify.rate,
        };
        let rate = given.max(adaptive);
        Some(Checks { hops: rate, evaluations: rate })
    }

    /// How many of a thousand trained results of a stranger's host are verified, by its record and its party's; `None` of the
    /// operator's hosts.
    pub fn stranger_rate(&self, host: &Host) -> Option<u32> {
        if !host.is_strangers() {
            return None;
        }
        let rate = match host.trust.in_row < OWN_CONFIRMED {
            true => PER_MILLE,
            false => self.record_of(host.id).adaptive_rate(),
        };
        // That looks at all trials: only where it matters.
        let is_doubted = rate < PER_MILLE && self.is_contradicted(&host.owner);
        Some(if is_doubted { PER_MILLE } else { rate })
    }

    /// Does a result of one of this owner's hosts differ from another party's, and nobody knows yet which is right?
    fn is_contradicted(&self, owner: &OwnerName) -> bool {
        let running = self.jobs.values().filter(|job| job.is_running());
        let mut disputes = running.flat_map(Job::disputes);
        disputes.any(|of| of.hosts(self).any(|host| self.owner_of(host) == Some(owner)))
    }

    /// Have two hosts the same party behind them?
    pub fn are_of_one_party(&self, one: HostId, other: HostId) -> bool {
        let owner = |host: HostId| self.hosts.get(&host).filter(|host| host.is_strangers());
        one == other
            || owner(one).zip(owner(other)).is_some_and(|(one, other)| one.owner == other.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_party_is_verified_less_and_less_down_to_one_in_twenty() {
        let rate = |in_row| Trust { in_row, ..Trust::default() }.adaptive_rate();
        assert_eq!([0, 9, 10, 20, 40, 100].map(rate), [1000, 1000, 1000, 500, 250, 100]);
        assert_eq!([200, 201, u32::MAX].map(rate), [50, 50, 50]);
        let refuted = Trust { in_row: 0, refuted: 1, confirmed: 500, ..Trust::default() };
        assert_eq!(refuted.adaptive_rate(), 1000, "after the first doubt every result again");
    }
}
