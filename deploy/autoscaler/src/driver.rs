//! Carries plans out: asks cloud and server, has a plan made, and does what it says.
//!
//! ```text
//!   lead -> machines, offers, prices -> report -> demand -> plan -> end, drain, buy -> report
//! ```
//!
//! Nothing is begun when the lease is about to end. What fails is logged and counted, and planned anew with the next round.
//!
//! Machines go on costing money while the server can't be reached or refuses requests, or while the cloud gives no prices. A
//! process that has led then keeps planning with the last known work and prices, buys nothing, and only ends machines that the
//! budgets can't pay for.

mod actions;

use crate::{
    leader::Lease,
    metrics::{Failed, Metrics},
    round::MachineLedger,
    server::Server,
};
use sojourn_fleet::{
    cloud::{Cloud, CloudError, CloudMachine, Offers},
    planner::{self, Memory, Note, Plan, Situation},
    settings::Settings,
};
use sojourn_http::CallError;
use sojourn_protocol::{
    demand::DemandView,
    error::error_chain,
    machines::{LeaderAnswer, MachinesRequest},
    time::{Millis, UnixMillis},
};
use std::{sync::Arc, time::Duration};
use tracing::{info, warn};

/// The longest that a call of the cloud may take.
const CLOUD_TIMEOUT: Duration = Duration::from_secs(120);
/// The message where the server doesn't know who leads.
pub(crate) const UNKNOWN_LEADER: &str =
    "the server has started just now, and waits up to 5 minutes for whoever led this fleet before";

/// The options of a driver.
#[derive(Debug, Clone)]
pub struct Options {
    /// The fleet's name.
    pub fleet: String,
    /// This process: no other has the same.
    pub holder: String,
    /// How the fleet is planned.
    pub settings: Settings,
    /// How long offers are reused before the cloud is asked for new ones.
    pub prices: Millis,
    /// Nothing is changed: it is only said what would be done.
    pub dry_run: bool,
}

/// The outcome of a round.
#[derive(Debug)]
pub enum Round {
    /// Another process leads, or none does yet.
    Standby {
        /// The process that leads, where it is known.
        leader: Option<String>,
    },
    /// Something that is needed for a plan couldn't be had: it is logged.
    Failed,
    /// A plan was made, and what it says done, as far as it could be.
    Planned(Box<Plan>),
}

/// Time and chance of the process.
#[derive(Debug, Clone, Copy)]
pub struct Outside {
    /// The time.
    pub now: fn() -> UnixMillis,
    /// A number that no other call gives.
    pub seed: fn() -> u64,
}

/// One fleet's driver.
pub struct Driver<S, C, W = Outside> {
    server: S,
    cloud: C,
    options: Options,
    world: W,
    lease: Lease,
    ledger: MachineLedger,
    memory: Memory,
    offers: Option<(UnixMillis, Offers)>,
    /// The work in the server's last answer; dropped when this process stops leading, unless calls to the server fail.
    demand: Option<DemandView>,
    /// The leader as it was logged last: whether this process leads, and which other one does where that is known.
    told_leader: Option<(bool, Option<String>)>,
    /// A call of this round has failed.
    failed: Failures,
    metrics: Arc<Metrics>,
}

/// Where time and chance come from.
pub trait World: Send + Sync {
    /// The time. It never goes back.
    fn now(&self) -> UnixMillis;
    /// A number that no other call gives.
    fn seed(&self) -> u64;
}

impl World for Outside {
    fn now(&self) -> UnixMillis {
        (self.now)()
    }

    fn seed(&self) -> u64 {
        (self.seed)()
    }
}

/// The kinds of calls that have failed in a round.
#[derive(Debug, Clone, Copy, Default)]
struct Failures {
    /// The server can't be reached, or refuses what is asked.
    server: bool,
    /// The offers are those of before.
    offers: bool,
    /// A machine couldn't be ended.
    end: bool,
}

/// The machines, offers and work that a round has found.
struct Found {
    machines: Vec<CloudMachine>,
    offers: Offers,
    demand: DemandView,
    /// Some of the data is from an earlier round, because the server or the cloud didn't answer.
    is_old: bool,
}

impl<S: Server, C: Cloud, W: World> Driver<S, C, W> {
    /// A driver that knows nothing yet.
    pub fn new(server: S, cloud: C, options: Options, world: W, metrics: Arc<Metrics>) -> Self {
        let lease = Lease::new(&options.fleet, options.holder.clone());
        let ledger = MachineLedger::new(options.settings.clone());
        Self {
            server,
            cloud,
            options,
            world,
            lease,
            ledger,
            memory: Memory::default(),
            offers: None,
            demand: None,
            told_leader: None,
            failed: Failures::default(),
            metrics,
        }
    }

    /// The memory that the last plan left, for whoever shows it.
    #[must_use]
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// One round.
    pub async fn round(&mut self) -> Round {
        self.failed = Failures::default();
        let leads = self.options.dry_run || self.renew_lease().await;
        let may_use_old_demand = self.failed.server && self.demand.is_some();
        if !leads && !may_use_old_demand {
            self.demand = None;
            // Another may change the fleet meanwhile: what is known of it is read anew.
            self.memory = Memory::default();
            self.ledger = MachineLedger::new(self.options.settings.clone());
            self.metrics.standby();
            if self.failed.server {
                return Round::Failed;
            }
            let leader = self.lease.leader().map(str::to_owned);
            return Round::Standby { leader };
        }
        let Some(found) = self.find(leads).await else { return Round::Failed };
        let before = self.memory.interruptions();
        let plan = planner::plan(&Situation {
            now: self.world.now(),
            seed: self.world.seed(),
            machines: &found.machines,
            offers: &found.offers,
            demand: &found.demand,
            is_old: found.is_old,
            settings: &self.options.settings,
            memory: &self.memory,
        });
        self.memory = plan.memory.clone();
        let interruptions = self.memory.interruptions().saturating_sub(before);
        self.metrics.planned(self.world.now(), &plan, &found.machines, interruptions);
        for note in &plan.notes {
            log_note(note);
        }
        if self.options.dry_run {
            for action in &plan.actions {
                self.memory.not_done(action);
            }
        } else if found.is_old {
            self.end_for_money(&plan).await;
        } else {
            self.carry_out(&plan, &found).await;
        }
        Round::Planned(Box::new(plan))
    }

    /// Should the next round start soon, because a machine couldn't be ended and still costs money?
    #[must_use]
    pub const fn is_urgent(&self) -> bool {
        self.failed.end
    }

    /// Gives the lease back.
    pub async fn shut_down(&mut self) {
        if let Some(request) = self.lease.give_back()
            && let Err(error) = self.server.lead(&request).await
        {
            warn!(error = %error_chain(&error), "the lease can't be given back; it ends by itself");
        }
    }

    /// Requests or renews the lease where that is due. Returns whether enough of the lease is left to act.
    async fn renew_lease(&mut self) -> bool {
        let now = self.world.now();
        if let Some(request) = self.lease.request(now) {
            match self.server.lead(&request).await {
                Ok(answer) => {
                    self.lease.answered(now, &answer);
                    self.tell_leader(answer);
                }
                Err(error) => self.call_failed("lead", &error),
            }
        }
        self.lease.may_act(self.world.now())
    }

    /// Says who leads, where that has changed.
    fn tell_leader(&mut self, answer: LeaderAnswer) {
        let leader = Some((answer.leads, answer.holder));
        if leader == self.told_leader {
            return;
        }
        match &leader {
            Some((true, _)) => info!("this process leads"),
            Some((false, Some(holder))) => {
                info!(leader = holder, "another process leads; this one stands by")
            }
            _ => info!("{UNKNOWN_LEADER}"),
        }
        self.told_leader = leader;
    }

    /// The inputs of a plan. The cloud's machines are reported to the server before the demand is read, so that the demand
    /// includes their cost.
    async fn find(&mut self, leads: bool) -> Option<Found> {
        let machines = within(self.cloud.machines()).await;
        let machines = machines.map_err(|error| self.cloud_failed("list machines", &error)).ok()?;
        let offers = self.offers().await?;
        if leads && !self.ledger.is_loaded() {
            let costs = self.server.costs().await;
            let costs = costs.map_err(|error| self.call_failed("read costs", &error)).ok()?;
            self.ledger.load(&costs);
        }
        self.ask_prices(&machines).await;
        self.ledger.set_prices(&machines, &offers, &mut self.memory);
        let demand = if leads { self.tell_and_ask(&machines, &offers).await } else { None };
        if let Some(demand) = demand {
            self.demand = Some(demand.clone());
            return Some(Found { machines, offers, demand, is_old: self.failed.offers });
        }
        let demand = self.demand.clone().filter(|_| self.failed.server)?;
        Some(Found { machines, offers, demand, is_old: true })
    }

    /// Tells the server of machines, and asks what work there is.
    async fn tell_and_ask(
        &mut self,
        machines: &[CloudMachine],
        offers: &Offers,
    ) -> Option<DemandView> {
        if !self.options.dry_run {
            self.report(machines, offers).await?;
        }
        let demand = self.server.demand().await;
        demand.map_err(|error| self.call_failed("read demand", &error)).ok()
    }

    /// The offers of now, or of a short while ago.
    async fn offers(&mut self) -> Option<Offers> {
        let now = self.world.now();
        if let Some((at, offers)) = &self.offers
            && now < *at + self.options.prices
        {
            return Some(offers.clone());
        }
        match within(self.cloud.offers()).await {
            Ok(offers) => {
                self.offers = Some((now, offers.clone()));
                Some(offers)
            }
            Err(error) => {
                self.cloud_failed("read offers", &error);
                self.failed.offers = true;
                self.offers.as_ref().map(|(_, offers)| offers.clone())
            }
        }
    }

    /// Asks what machines have cost when they were launched.
    async fn ask_prices(&mut self, machines: &[CloudMachine]) {
        for question in self.ledger.questions(machines) {
            match within(self.cloud.spot_price_at(&question.pool, question.at)).await {
                Ok(price) => self.ledger.answer(&question, price),
                Err(error) => return self.cloud_failed("read prices", &error),
            }
        }
    }

    /// Tells the server what it doesn't know of these machines.
    async fn report(&mut self, machines: &[CloudMachine], offers: &Offers) -> Option<()> {
        let now = self.world.now();
        let reports = self.ledger.reports(machines, offers, &self.memory, now);
        if reports.is_empty() {
            return Some(());
        }
        let request = MachinesRequest { machines: reports };
        match self.server.report(&request).await {
            Ok(()) => {
                self.ledger.reported(request.machines, now);
                Some(())
            }
            Err(error) => {
                self.call_failed("report machines", &error);
                None
            }
        }
    }

    fn cloud_failed(&self, what: &str, error: &CloudError) {
        warn!(error = %error_chain(error), "can't {what}");
        self.metrics.failed(Failed::of_cloud(error));
    }

    fn call_failed(&mut self, what: &str, error: &CallError) {
        self.failed.server = true;
        warn!(error = %error_chain(error), "can't {what}");
        self.metrics.failed(Failed::of_server(error));
    }
}

fn log_note(note: &Note) {
    match note {
        Note::NoType { .. } | Note::Late { .. } | Note::PriceUnknown { .. } => warn!("{note}"),
        _ => info!("{note}"),
    }
}

/// A call of the cloud, within a time.
async fn within<A>(call: impl Future<Output = Result<A, CloudError>>) -> Result<A, CloudError> {
    match tokio::time::timeout(CLOUD_TIMEOUT, call).await {
        Ok(answer) => answer,
        Err(_) => Err(CloudError::Away(format!("no answer within {} s", CLOUD_TIMEOUT.as_secs()))),
    }
}

#[cfg(test)]
mod tests;
