//! The lowest view: what every estimate of time rests on.

use super::{Estimates, PreferredClasses};
use crate::{config::CoreConfig, hosts::Hosts};
use sojourn_protocol::{ids::HostId, time::UnixMillis};
use sojourn_state::State;

/// The part that counts of the reliability of a host whose results were refuted, in thousandths. Such a host is given units
/// when no other host could do them about as soon.
const DISTRUSTED_RATIO: u64 = 10;

/// How long things take. It reads, and changes nothing.
#[derive(Clone, Copy)]
pub struct Cost<'a> {
    /// The durable state.
    pub state: &'a State,
    /// Hosts in contact.
    pub hosts: &'a Hosts,
    /// Estimates of times.
    pub estimates: &'a Estimates,
    /// The numeric classes that jobs prefer.
    pub preferred: &'a PreferredClasses,
    /// The settings.
    pub config: &'a CoreConfig,
    /// The time of the step.
    pub now: UnixMillis,
}

impl<'a> Cost<'a> {
    /// The share of its units that a host may be expected to do in time, in thousandths. Nobody is to wait for a host that
    /// has lost trust, however fast it seems.
    pub fn reliability(&self, host: HostId) -> u64 {
        let Some(host) = self.state.hosts.get(&host) else { return 1000 };
        let ratio = host.reliability.ratio(self.now);
        if self.state.has_lost_trust(host.id) { ratio * DISTRUSTED_RATIO / 1000 } else { ratio }
    }
}
