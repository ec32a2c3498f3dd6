//! The core: the parts of the state, and the views and handlers over them.
//!
//! Each part owns its fields. A view reads some parts, a handler changes some; both borrow no more than they need.

use crate::{
    assimilation::{AssimilationHandler, MergeModeHandler},
    assimilation_queue::AssimilationQueue,
    blobs::{BlobHandler, next_collection},
    clock::Clock,
    data::PlacementHandler,
    dispatch::Dispatcher,
    fault::CoreFault,
    figures::Totals,
    hosts::HostHandler,
    jobs::JobHandler,
    leaders::Leaders,
    leases::LeaseHandler,
    ledger::{Ledger, Output},
    plans::PlanHandler,
    query::Views,
    residency::{ConvergenceChecks, ResidencyHandler},
    results::ResultHandler,
    tokens::TokenHandler,
};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use sojourn_protocol::{
    ids::{HostId, JobId, LeaseId},
    reason::WaitReason,
    storage::Storage,
    time::UnixMillis,
};
use sojourn_scheduling::{
    config::CoreConfig,
    cost::Cost,
    data::DataPlacement,
    hosts::Hosts,
    index::DerivedIndex,
    leases::{Leases, Occupancy},
    schedule::{Eligibility, Locality, Planner, Scheduler},
    waiters::Waiters,
};
use sojourn_state::{Folded, JournalPosition};
use sojourn_workgen::Policy;

/// The state machine. See the crate's text.
#[derive(Debug)]
pub struct Core {
    pub(crate) config: CoreConfig,
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) clock: Clock,
    pub(crate) rng: ChaCha8Rng,
    /// Durable: the fold of all events.
    pub(crate) state: Folded,
    pub(crate) index: DerivedIndex,
    pub(crate) hosts: Hosts,
    pub(crate) leases: Leases,
    pub(crate) data: DataPlacement,
    pub(crate) queue: AssimilationQueue,
    pub(crate) waiters: Waiters,
    pub(crate) planner: Planner,
    pub(crate) looks: ConvergenceChecks,
    /// The free space on the server's disk, as last reported by the shell. Soft state: a new core assumes that there is enough.
    pub(crate) storage: Storage,
    /// Time of the next retention check of ended jobs; `None` if all jobs are kept. Soft state: due at once after a start.
    pub(crate) next_retention: Option<UnixMillis>,
    /// The leader among the buyers of machines. Soft.
    pub(crate) leaders: Leaders,
    /// Counts since the core began. Soft.
    pub(crate) totals: Totals,
    pub(crate) output: Output,
    /// The first fault, after which it answers nothing more.
    pub(crate) fault: Option<CoreFault>,
}

impl Core {
    /// A core to which nothing has happened.
    #[must_use]
    pub fn new(config: CoreConfig) -> Self {
        Self::with_state(Folded::new(config.remember_leases), config)
    }

    pub(crate) fn with_state(state: Folded, config: CoreConfig) -> Self {
        Self {
            clock: Clock::new(state.at),
            rng: ChaCha8Rng::seed_from_u64(0),
            policy: config.policy.policy(),
            config,
            state,
            index: DerivedIndex::default(),
            hosts: Hosts::default(),
            leases: Leases::default(),
            data: DataPlacement::default(),
            queue: AssimilationQueue::default(),
            waiters: Waiters::default(),
            planner: Planner::default(),
            looks: ConvergenceChecks::default(),
            storage: Storage::default(),
            next_retention: None,
            leaders: Leaders::default(),
            totals: Totals::default(),
            output: Output::default(),
            fault: None,
        }
    }

    /// The number of the last event.
    #[must_use]
    pub fn position(&self) -> JournalPosition {
        self.state.position
    }

    /// The durable state, to look at.
    #[must_use]
    pub fn state(&self) -> &Folded {
        &self.state
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &CoreConfig {
        &self.config
    }

    /// The room on the server's disk, as the shell said last.
    #[must_use]
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Has a host a lease that isn't granted yet?
    #[must_use]
    pub fn is_provisional(&self, host: HostId, lease: LeaseId) -> bool {
        self.leases.provisional().has(host, lease)
    }

    /// Provisional leases, which may yet be granted.
    pub fn provisional_leases(&self) -> impl Iterator<Item = LeaseId> {
        self.leases.provisional().ids()
    }

    /// The next time at which something is due without a command.
    #[must_use]
    pub fn next_deadline(&self) -> Option<UnixMillis> {
        let times = [
            self.leases.deadlines().next_end(),
            self.index.wall_time(),
            self.waiters.next_deadline(),
            self.queue.first_claim_end(),
            self.hosts.first_cooldown_end(),
            self.hosts.strikes().next_end(),
            self.hosts.fleet().next_check(),
            self.planner.next_speculation(),
            self.scheduler().next_plan(),
            next_collection(&self.state.blobs, &self.config),
            self.next_retention,
            self.looks.next(),
        ];
        times.into_iter().flatten().min()
    }

    /// The rules of who may do a unit.
    pub(crate) fn eligibility(&self) -> Eligibility<'_> {
        let cost = Cost {
            state: &self.state,
            hosts: &self.hosts,
            estimates: self.planner.estimates(),
            preferred: self.planner.preferred(),
            config: &self.config,
            now: self.clock.now(),
        };
        let occupancy = Occupancy::new(cost, &self.leases);
        Eligibility::new(occupancy, &self.data, &self.waiters)
    }

    fn scheduler(&self) -> Scheduler<'_> {
        let local = Locality::new(self.eligibility());
        Scheduler::new(local, &self.index, &self.planner, self.policy.as_ref())
    }

    /// Why nothing of a job goes on; `None` where something does, or the job isn't known.
    #[must_use]
    pub fn wait_reason(&self, job: JobId) -> Option<WaitReason> {
        self.views().job_waits(self.state.jobs.get(&job)?)
    }

    /// The answers to queries.
    pub(crate) fn views(&self) -> Views<'_> {
        let eligible = self.eligibility();
        let Eligibility { state, hosts, data, now, cost, .. } = eligible;
        Views {
            state,
            config: &self.config,
            hosts,
            leases: &self.leases,
            data,
            now,
            cost,
            eligible,
            index: &self.index,
            queue: &self.queue,
            clock: &self.clock,
            storage: &self.storage,
            planner: &self.planner,
            totals: &self.totals,
        }
    }

    /// The parts, each borrowed on its own: every handler takes those that it needs.
    fn parts(&mut self) -> Parts<'_> {
        let ledger = Ledger {
            clock: &self.clock,
            config: &self.config,
            state: &mut self.state,
            index: &mut self.index,
            leases: &mut self.leases,
            planner: &mut self.planner,
            waiters: &mut self.waiters,
            totals: &mut self.totals,
            output: &mut self.output,
        };
        Parts {
            ledger,
            hosts: &mut self.hosts,
            data: &mut self.data,
            queue: &mut self.queue,
            looks: &mut self.looks,
            policy: self.policy.as_ref(),
            rng: &mut self.rng,
            storage: &self.storage,
        }
    }

    pub(crate) fn leases(&mut self) -> LeaseHandler<'_> {
        let Parts { ledger, hosts, .. } = self.parts();
        LeaseHandler { ledger, hosts }
    }

    pub(crate) fn hosts(&mut self) -> HostHandler<'_> {
        let Parts { ledger, hosts, .. } = self.parts();
        HostHandler { ledger, hosts }
    }

    pub(crate) fn tokens(&mut self) -> TokenHandler<'_> {
        TokenHandler { hosts: self.hosts() }
    }

    pub(crate) fn placement(&mut self) -> PlacementHandler<'_> {
        let Parts { ledger, hosts, data, .. } = self.parts();
        PlacementHandler { ledger, hosts, data }
    }

    pub(crate) fn results(&mut self) -> ResultHandler<'_> {
        let Parts { ledger, hosts, data, queue, rng, .. } = self.parts();
        ResultHandler { ledger, hosts, data, queue, rng }
    }

    pub(crate) fn assimilation(&mut self) -> AssimilationHandler<'_> {
        let Parts { ledger, hosts, data, queue, rng, storage, .. } = self.parts();
        AssimilationHandler { results: ResultHandler { ledger, hosts, data, queue, rng }, storage }
    }

    pub(crate) fn merge_modes(&mut self) -> MergeModeHandler<'_> {
        let Parts { ledger, hosts, .. } = self.parts();
        MergeModeHandler { ledger, hosts }
    }

    pub(crate) fn jobs(&mut self) -> JobHandler<'_> {
        JobHandler { results: self.results() }
    }

    pub(crate) fn blobs(&mut self) -> BlobHandler<'_> {
        BlobHandler { ledger: self.parts().ledger }
    }

    pub(crate) fn plans(&mut self) -> PlanHandler<'_> {
        let Parts { ledger, hosts, data, policy, rng, .. } = self.parts();
        PlanHandler { ledger, hosts, data, policy, rng }
    }

    pub(crate) fn residency(&mut self) -> ResidencyHandler<'_> {
        let Parts { ledger, hosts, data, policy, looks, .. } = self.parts();
        ResidencyHandler { leases: LeaseHandler { ledger, hosts }, data, policy, looks }
    }

    pub(crate) fn dispatcher(&mut self) -> Dispatcher<'_> {
        let Parts { ledger, hosts, data, policy, rng, storage, .. } = self.parts();
        Dispatcher { leases: LeaseHandler { ledger, hosts }, data, policy, rng, storage }
    }
}

/// The parts of a core, each borrowed on its own.
struct Parts<'a> {
    ledger: Ledger<'a>,
    hosts: &'a mut Hosts,
    data: &'a mut DataPlacement,
    queue: &'a mut AssimilationQueue,
    looks: &'a mut ConvergenceChecks,
    policy: &'a dyn Policy,
    rng: &'a mut ChaCha8Rng,
    storage: &'a Storage,
}
