//! Hosts release leases; those that release again and again cool down.

use super::handler::LeaseHandler;
use crate::reply::Reply;
use sojourn_protocol::{
    api::ReleaseAnswer,
    ids::{HostId, LeaseId},
    reason::ReleaseReason,
    text::plain_text,
    time::Millis,
};
use sojourn_state::LeaseEnd;

/// Releases since the last report that have no consequence.
pub(crate) const FREE_RELEASES: u32 = 4;
/// The longest cool-down after releases.
const MAX_RELEASE_COOLDOWN: Millis = Millis::from_secs(600);
/// The longest cool-down of a host that let leases run out which had taken longer than any may.
const MAX_SLOW_COOLDOWN: Millis = Millis::from_secs(4 * 3600);
/// Doublings of the cool-down after releases.
const MAX_DOUBLINGS: u32 = 10;
/// Characters of a reason that are kept.
const MAX_REASON_CHARS: usize = 200;

impl LeaseHandler<'_> {
    /// A host releases leases. Those that were released: its own live ones, and its provisional ones.
    pub(crate) fn release(
        &mut self,
        host: HostId,
        leases: &[LeaseId],
        reason: &ReleaseReason,
    ) -> Reply<ReleaseAnswer> {
        self.ledger.state.check_host(host)?;
        let live = &self.ledger.state.leases;
        let own = |lease: &&LeaseId| live.get(lease).is_some_and(|lease| lease.host == host);
        let mut released: Vec<LeaseId> = leases.iter().filter(own).copied().collect();
        for lease in &released {
            let reason = plain_text(reason.as_str(), MAX_REASON_CHARS);
            self.close(*lease, LeaseEnd::GivenBack { reason })?;
        }
        // The provisional lease that goes on from a released one went with it.
        for lease in leases {
            if let Some(provisional) = self.ledger.leases.provisional_mut().take(host, *lease) {
                self.ledger.withdrawn(&provisional);
                released.push(*lease);
            }
        }
        if !released.is_empty() {
            self.count_release(host, reason);
        }
        Ok(ReleaseAnswer { released })
    }

    /// A host has held a lease for longer than any may: it gets none for at least as long. Each time since its last report
    /// doubles that.
    pub(super) fn took_too_long(&mut self, host: HostId, held: Millis, reason: &ReleaseReason) {
        let count = self.hosts.count_release(host, reason.clone());
        let doublings = count.saturating_sub(1).min(MAX_DOUBLINGS);
        let cooldown = Millis(held.0.saturating_mul(1 << doublings)).min(MAX_SLOW_COOLDOWN);
        self.hosts.cool_down(host, self.ledger.clock.now() + cooldown);
    }

    /// Counts a release, or a lease that its host never began. A host that does so again and again without a report
    /// cools down, longer each time.
    pub(crate) fn count_release(&mut self, host: HostId, reason: &ReleaseReason) {
        let reason = ReleaseReason::from(plain_text(reason.as_str(), MAX_REASON_CHARS));
        let count = self.hosts.count_release(host, reason);
        if let Some(doublings) = count.checked_sub(FREE_RELEASES) {
            let beat = self.ledger.config.heartbeat_every.0;
            let cooldown = Millis(beat.saturating_mul(1 << doublings.min(MAX_DOUBLINGS)));
            let cooldown = cooldown.min(MAX_RELEASE_COOLDOWN);
            self.hosts.cool_down(host, self.ledger.clock.now() + cooldown);
        }
    }
}
