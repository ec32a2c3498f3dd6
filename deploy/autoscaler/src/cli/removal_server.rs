//! The server while a fleet is removed: nobody may buy meanwhile.

use super::Failure;
use crate::{driver::World, leader::Lease, server::Server};
use sojourn_protocol::{error::error_chain, machines::MAX_LEADER_TERM, time::Millis};
use std::time::Duration;
use tracing::{info, warn};

/// How long a server may give nobody the lease: after its start it does so for a term, as somebody may hold one from before.
const PATIENCE: Millis = Millis(2 * MAX_LEADER_TERM.0);
/// Between two looks whether it is time to ask.
const PAUSE: Duration = Duration::from_secs(1);

/// The server of a fleet that is removed.
pub(super) struct RemovalServer<S, W> {
    server: S,
    world: W,
    lease: Lease,
    /// It couldn't be reached when it was asked last.
    is_away: bool,
}

impl<S: Server, W: World> RemovalServer<S, W> {
    pub(super) fn new(server: S, world: W, fleet: &str) -> Self {
        let holder = format!("remove-{}-{:016x}", std::process::id(), world.seed());
        let lease = Lease::new(fleet, holder);
        Self { server, world, lease, is_away: false }
    }

    /// Waits for the lease, so that nobody buys. A server that is away gives it to nobody.
    ///
    /// # Errors
    /// Where another process has it.
    pub(super) async fn acquire(&mut self) -> Result<(), Failure> {
        let since = self.world.now();
        let mut waits = false;
        loop {
            self.renew().await?;
            let now = self.world.now();
            if self.is_away || self.lease.may_act(now) {
                return Ok(());
            }
            if now > since + PATIENCE {
                return Err(Failure::work("the server gives nobody the lease of this fleet"));
            }
            if !waits {
                info!("the server has just started: waiting until it says that nobody buys");
            }
            waits = true;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Asks for the lease again where that is due. It is left to end by itself.
    ///
    /// # Errors
    /// Where another process has it.
    pub(super) async fn renew(&mut self) -> Result<(), Failure> {
        let now = self.world.now();
        let Some(request) = self.lease.request(now) else { return Ok(()) };
        match self.server.lead(&request).await {
            Ok(answer) => {
                self.is_away = false;
                self.lease.answered(now, &answer);
            }
            Err(error) => {
                if !self.is_away {
                    warn!(error = %error_chain(&error), "the server doesn't say whether anybody buys");
                }
                self.is_away = true;
            }
        }
        self.lease.leader().map_or(Ok(()), |leader| {
            Err(Failure::call(format!(
                "{leader} buys machines for this fleet: end `sojourn-autoscaler run` first"
            )))
        })
    }
}

#[cfg(test)]
mod tests;
