//! Strangers of a world: honest ones, and those that lie.

use super::{FIRST, HOSTILE, SECOND, World};
use crate::chaos::{host::Host, liar::Lies};
use sojourn_core::{Command, ReplyTo};
use sojourn_protocol::{
    api::{RollbackOptions, RollbackRequest},
    digest::Digest,
    ids::{HostId, JobId, TokenId},
    quantity::SaturatingFrom as _,
};

/// The token of an owner who lies in league with another one.
const ACCOMPLICE: TokenId = TokenId(4);

impl World {
    /// Enrols a host of each class for each of two honest strangers, and the liars.
    pub(super) fn enrol_strangers(&mut self) -> Result<(), String> {
        let Some(liar) = self.scenario.liar else { return Ok(()) };
        let classes = 0..liar.classes();
        let honest =
            classes.flat_map(|class| [FIRST, SECOND].map(|owner| (owner, class, Lies::Never)));
        let lying = liar.hosts().into_iter().map(|(owner, class, lies)| {
            (if owner == 0 { HOSTILE } else { ACCOMPLICE }, class, lies)
        });
        let all: Vec<(TokenId, u32, Lies)> = honest.chain(lying).collect();
        for ((owner, class, lies), n) in all.into_iter().zip(self.scenario.hosts + 1..) {
            let class = Digest::of(&[u8::saturating_from(class)]);
            let millis = u64::from(5 + self.below(400));
            let mut host = Host::new(HostId(u64::from(n)), class, 1, millis);
            host.lies = lies;
            host.lie = (lies != Lies::Never).then_some(self.scenario.lie);
            self.enrol(n, host, Some(owner))?;
        }
        Ok(())
    }

    /// Takes back whatever the server asks about.
    pub(super) fn answer_asked(&mut self) -> Result<(), String> {
        let core = self.server.core().filter(|_| self.scenario.liar.is_some());
        let asked = core.into_iter().flat_map(|core| core.state().jobs.values());
        let asked = asked
            .filter(|job| job.is_running())
            .flat_map(|job| job.asked.keys().map(move |host| (job.id, *host)));
        let asked: Vec<(JobId, HostId)> = asked.collect();
        for (job, host) in asked {
            let options = RollbackOptions::default();
            let request = RollbackRequest::Host { host, options };
            self.apply(Command::Rollback { to: ReplyTo(0), job, request })?;
        }
        Ok(())
    }
}
