//! The server while a fleet is removed: nobody may buy meanwhile, and its ledger learns which machines have ended.

use crate::{driver::World, leader::Lease, round::MachineLedger, server::Server};
use sojourn_fleet::{
    cloud::{Cloud, CloudError, Offers},
    planner::Memory,
    settings::Settings,
};
use sojourn_http::CallError;
use sojourn_programs::exit::Failure;
use sojourn_protocol::{
    error::error_chain,
    machines::{MAX_LEADER_TERM, MachinesRequest},
    time::Millis,
};
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
    ledger: MachineLedger,
    offers: Option<Offers>,
    /// The server couldn't be reached when it was asked last.
    is_away: bool,
}

/// Why the ledger wasn't told.
#[derive(Debug, thiserror::Error)]
enum ReportError {
    #[error(transparent)]
    Server(#[from] CallError),
    #[error(transparent)]
    Cloud(#[from] CloudError),
}

impl<S: Server, W: World> RemovalServer<S, W> {
    pub(super) fn new(server: S, world: W, fleet: &str, settings: Settings) -> Self {
        let holder = format!("remove-{}-{:016x}", std::process::id(), world.seed());
        let lease = Lease::new(fleet, holder);
        let ledger = MachineLedger::new(settings);
        Self { server, world, lease, ledger, offers: None, is_away: false }
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

    /// Tells the server which machines have ended: they cost no more. What can't be told now is told with a later pass.
    pub(super) async fn report(&mut self, cloud: &dyn Cloud) {
        if self.is_away {
            return;
        }
        if let Err(error) = self.try_report(cloud).await {
            warn!(error = %error_chain(&error), "the server isn't told which machines have ended");
        }
    }

    /// The same at the end, when no pass follows.
    pub(super) async fn report_last(&mut self, cloud: &dyn Cloud) {
        if let Err(error) = self.try_report(cloud).await {
            warn!(
                error = %error_chain(&error),
                "the server wasn't told which machines have ended: they go on costing in its ledger, until `remove` or `run` is \
                 called for this fleet again"
            );
        }
    }

    async fn try_report(&mut self, cloud: &dyn Cloud) -> Result<(), ReportError> {
        if !self.ledger.is_loaded() {
            self.ledger.load(&self.server.costs().await?);
        }
        let machines = cloud.machines().await?;
        let offers = match &self.offers {
            Some(offers) => offers,
            // They have prices of machines that the server doesn't know.
            None => self.offers.insert(cloud.offers().await.unwrap_or_else(|error| {
                warn!(error = %error_chain(&error), "machines without a price aren't told of");
                Offers::default()
            })),
        };
        // The server knows what machines have cost; of others the price of now is near enough for their last minutes.
        loop {
            let questions = self.ledger.questions(&machines);
            if questions.is_empty() {
                break;
            }
            questions.iter().for_each(|question| self.ledger.answer(question, None));
        }
        let now = self.world.now();
        let memory = Memory::default();
        let reports = self.ledger.reports(&machines, offers, &memory, now);
        if !reports.is_empty() {
            let request = MachinesRequest { machines: reports };
            self.server.report(&request).await?;
            self.ledger.reported(request.machines, now);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
