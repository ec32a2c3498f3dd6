//! A virtual host: the agent that a daemon runs, on a machine whose disk, line and slots are made up.
//!
//! ```text
//!             calls: over the line's latency ----> the core
//!   Agent --> blobs, checkpoints: over the line    (events in virtual time come back to the agent)
//!             units: in slots, for as long as the cost model says
//! ```
//!
//! Here: when it is there, and what its agent's actions start. `machine.rs`: its disk and its line. `calls.rs`: its
//! calls to the server. `units.rs` and `running.rs`: its slots, and a unit in one. `train.rs`: what a unit really
//! comes to.

mod calls;
mod machine;
mod running;
mod train;
mod units;

use super::{
    cache::Evicted,
    job::count,
    link::Ending,
    plan::Plan,
    queue::{Event, HostCall, Queue},
    scenario::HostGroup,
    tally::{Bar, Tally},
    training::Trains,
};
use crate::call::Call;
use machine::{Fetch, Machine, trial_of};
use running::Running;
use sojourn_client_core::{
    self as client, Action, Agent, AgentConfig, BlobClass, DeviceSlots, Micros, Priority,
    UploadStart, Uploaded, lease::LeaseState,
};
use sojourn_protocol::{
    digest::BlobRef,
    ids::{HostId, LeaseId},
};
use std::{collections::VecDeque, sync::Arc};

/// All that a host may look at and write to.
pub(crate) struct HostContext<'a> {
    pub(crate) now: u64,
    pub(crate) plan: &'a Plan,
    pub(crate) queue: &'a mut Queue,
    /// Calls that reach the server at this instant.
    pub(crate) calls: &'a mut VecDeque<HostCall>,
    /// Events that the host's agent is still to hear of at this instant.
    pub(crate) pending: &'a mut VecDeque<client::Event>,
    pub(crate) tally: &'a mut Tally,
    /// Where bars of a chart go, if one is wanted.
    pub(crate) bars: Option<&'a mut Vec<Bar>>,
    /// The implementation that really trains; `None` where nothing is trained.
    pub(crate) trains: Option<&'a mut dyn Trains>,
    /// The error of training or of the surrogate, which ends the run; `None` while there is none.
    pub(crate) broken: &'a mut Option<String>,
    /// Hosts whose clients have ended in good order at this instant.
    pub(crate) exits: &'a mut Vec<u32>,
}

/// A host.
#[derive(Debug)]
pub(crate) struct Host {
    /// The host's number among all places.
    pub(crate) index: u32,
    /// Which machine stands there.
    pub(crate) id: HostId,
    pub(crate) kind: usize,
    /// Counts its starts; what was scheduled for an earlier one is void.
    pub(crate) boot: u32,
    config: Arc<AgentConfig>,
    /// None while the machine is away.
    agent: Option<Agent>,
    machine: Machine,
    slots: Vec<Option<Running>>,
    serial: u32,
    network: calls::Network,
    /// When it is woken next.
    tick_at: Option<u64>,
    /// Until when its slot time has been counted.
    counted_to: u64,
    /// Since when no unit runs.
    idle_since: Option<u64>,
}

/// How agents work on hosts of a kind.
pub(crate) fn agent_config(plan: &Plan, kind: usize, group: &HostGroup) -> AgentConfig {
    let name = plan.kinds.get(kind).map_or_else(String::new, |kind| kind.device.name.clone());
    AgentConfig {
        units_ahead: group.units_ahead(),
        ask_wait: Micros(plan.longest_wait),
        ..AgentConfig::new(vec![DeviceSlots { name, slots: group.places() }])
    }
}

impl Host {
    pub(crate) fn new(
        index: u32,
        kind: usize,
        group: &HostGroup,
        config: Arc<AgentConfig>,
    ) -> Self {
        Self {
            index,
            id: HostId(0),
            kind,
            boot: 0,
            config,
            agent: None,
            machine: Machine::new(group),
            slots: (0..group.places()).map(|_| None).collect(),
            serial: 0,
            network: calls::Network::default(),
            tick_at: None,
            counted_to: 0,
            idle_since: None,
        }
    }

    pub(crate) const fn is_here(&self) -> bool {
        self.agent.is_some()
    }

    /// The host's slots, and those of them in which a unit runs; 0 of both while it is away.
    pub(crate) fn slots_and_busy(&self) -> (u64, u64) {
        if !self.is_here() {
            return (0, 0);
        }
        let running = self.slots.iter().flatten();
        (count(self.slots.len()), count(running.filter(|of| of.is_at_work()).count()))
    }

    /// Since when no unit runs, where it is there.
    pub(crate) fn idle_since(&self) -> Option<u64> {
        self.idle_since.filter(|_| self.is_here())
    }

    /// A slot has become free.
    fn note_idle(&mut self, now: u64) {
        if self.slots.iter().all(Option::is_none) {
            self.idle_since = Some(now);
        }
    }

    /// The machine is there, and its program starts.
    pub(crate) fn come(&mut self, around: &mut HostContext<'_>) {
        self.counted_to = around.now;
        self.idle_since = Some(around.now);
        let stored = self.machine.stored(Micros(around.plan.heartbeat));
        let seed = around.plan.seed ^ u64::from(self.index) << 32 ^ u64::from(self.boot);
        let mut agent = Agent::new(Arc::clone(&self.config), seed, stored);
        let actions = agent.start(Micros(around.now), &self.machine.view(around.now));
        self.agent = Some(agent);
        self.network.start();
        for action in actions {
            self.carry_out(action, around);
        }
        self.handle_pending(around);
    }

    /// Takes the host away, with all that it had in work.
    pub(crate) fn go(&mut self, is_replaced: bool, around: &mut HostContext<'_>) {
        self.close_books(around);
        around.tally.checkpoints_up += self.machine.crash(is_replaced, around.now);
        self.agent = None;
        self.boot += 1;
        self.tick_at = None;
    }

    /// Counts the slot time up to now and aborts all running units: the run ends, or the host goes away.
    pub(crate) fn close_books(&mut self, around: &mut HostContext<'_>) {
        self.count_time(around);
        for slot in 0..self.slots.len() {
            self.abort(slot, around);
        }
    }

    /// Tells the host that it will be taken away in so many microseconds.
    pub(crate) fn preempted(&mut self, left: u64, around: &mut HostContext<'_>) {
        self.tell(client::Event::Preempted(Some(Micros(left))), around);
    }

    /// Wakes the agent, if this is the time at which it wanted to be woken.
    pub(crate) fn tick(&mut self, around: &mut HostContext<'_>) {
        if self.tick_at == Some(around.now) {
            self.tick_at = None;
            self.tell(client::Event::Tick, around);
        }
    }

    /// Tells the agent of an event, and does what it says.
    pub(crate) fn tell(&mut self, event: client::Event, around: &mut HostContext<'_>) {
        around.pending.push_back(event);
        self.handle_pending(around);
    }

    fn handle_pending(&mut self, around: &mut HostContext<'_>) {
        self.count_time(around);
        let now = around.now;
        while let Some(event) = around.pending.pop_front() {
            let Some(agent) = &mut self.agent else { continue };
            let actions = agent.handle(Micros(now), event, &self.machine.view(now));
            for action in actions {
                self.carry_out(action, around);
            }
        }
        let deadline = self.agent.as_ref().and_then(Agent::next_deadline);
        if let Some(Micros(at)) = deadline
            && self.tick_at.is_none_or(|tick_at| at < tick_at)
        {
            self.tick_at = Some(at);
            let (host, boot) = (self.index, self.boot);
            around.queue.add(at, Event::Tick { host, boot });
        }
    }

    fn carry_out(&mut self, action: Action, around: &mut HostContext<'_>) {
        match action {
            Action::Ask(ask) => self.call(Call::Ask(ask), around),
            Action::Beat => self.call(Call::Beat, around),
            Action::Report(lease) => self.call(Call::Report(lease), around),
            Action::Release(leases, reason) => {
                self.call(Call::Release(Box::new((leases, reason))), around);
            }
            Action::Fetch(blob, class, priority) => self.fetch(blob, class, priority, around),
            Action::CancelFetch(blob) => {
                let next = self.machine.cancel_fetch(&blob, around.now);
                self.fetch_ends(next, around);
            }
            Action::Unpin(blob) => self.machine.cache.unpin(&blob),
            Action::Evict(blob) => self.machine.cache.evict(&blob),
            Action::Start(lease, slot) => self.start(*lease, slot.number, around),
            Action::HandOver(lease, shard) => self.hand_over(lease, &shard, around),
            Action::StopAfterBatch(lease) => self.stop(lease, around),
            Action::StopNow(lease) => {
                self.kill(lease, around);
                let stopped = client::UnitError::Stopped;
                around.pending.push_back(client::Event::UnitFailed(lease, stopped, None));
            }
            Action::Kill(lease) => self.kill(lease, around),
            Action::Upload(lease, UploadStart::FirstByte) => self.upload(lease, around),
            Action::Upload(lease, UploadStart::Locate) => self.call(Call::Locate(lease), around),
            Action::DeleteResult(lease) => {
                let next = self.machine.delete_result(lease, around.now);
                self.upload_ends(next, around);
            }
            Action::Exit => around.exits.push(self.index),
            Action::SetCpuShares(_) => {}
        }
    }

    fn fetch(
        &mut self,
        blob: BlobRef,
        class: BlobClass,
        priority: Priority,
        around: &mut HostContext<'_>,
    ) {
        if self.machine.cache.pin(&blob.sha256) {
            around.pending.push_back(client::Event::BlobReady(blob.sha256));
            return;
        }
        let trial = match class {
            BlobClass::Checkpoint => self.fetching().find_map(|lease| trial_of(&lease.unit, &blob)),
            BlobClass::Data => None,
        };
        // A checkpoint is as large as the scenario says, whatever the core takes it for.
        let job = trial.and_then(|(job, _)| around.plan.job(job));
        let bytes = job.and_then(|job| job.checkpoint_bytes).unwrap_or(blob.bytes);
        let is_prefetch = priority == Priority::Prefetch;
        let fetch = Fetch { blob: BlobRef { bytes, ..blob }, trial, is_prefetch };
        if self.machine.down.is_instant() {
            return self.has_fetched(&fetch, around);
        }
        let ending = self.machine.fetch(fetch, around.now);
        self.fetch_ends(ending, around);
    }

    /// Leases whose first blobs are on their way.
    fn fetching(&self) -> impl Iterator<Item = &sojourn_protocol::unit::Lease> {
        let leases = self.agent.iter().flat_map(Agent::leases);
        leases.filter_map(|held| match held.state() {
            LeaseState::Fetching(fetching) => Some(&*fetching.lease),
            _ => None,
        })
    }

    fn fetch_ends(&self, ending: Option<Ending>, around: &mut HostContext<'_>) {
        if let Some(ending) = ending {
            let (host, boot, serial) = (self.index, self.boot, ending.serial);
            around.queue.add(ending.at, Event::Fetched { host, boot, serial });
        }
    }

    /// A download is through.
    pub(crate) fn fetched(&mut self, serial: u32, around: &mut HostContext<'_>) {
        let Some((fetch, next)) = self.machine.fetched(serial, around.now) else { return };
        self.fetch_ends(next, around);
        self.has_fetched(&fetch, around);
        self.handle_pending(around);
    }

    fn has_fetched(&mut self, fetch: &Fetch, around: &mut HostContext<'_>) {
        let Fetch { blob, trial, is_prefetch } = fetch;
        around.tally.requests.transfers += 1;
        match trial {
            None => {
                around.tally.shards += 1;
                around.tally.shard_bytes += blob.bytes;
            }
            Some(_) => around.tally.checkpoints_down += blob.bytes,
        }
        self.network.inventory_changed |= *is_prefetch;
        let class = trial.map_or(BlobClass::Data, |_| BlobClass::Checkpoint);
        self.store(blob, class, true);
        around.pending.push_back(client::Event::BlobReady(blob.sha256));
    }

    /// Takes a blob into the cache; the server hears of shards that had to go for it.
    fn store(&mut self, blob: &BlobRef, class: BlobClass, is_pinned: bool) {
        let evicted = self.machine.cache.insert(blob, class, is_pinned);
        self.network.inventory_changed |= evicted == Evicted::Data;
    }

    /// The server has said what it lacks of a result's checkpoint: that is sent.
    pub(crate) fn located(&mut self, lease: LeaseId, around: &mut HostContext<'_>) {
        self.upload(lease, around);
        self.handle_pending(around);
    }

    fn upload(&mut self, lease: LeaseId, around: &mut HostContext<'_>) {
        if self.machine.up.is_instant() {
            return self.has_sent(lease, around);
        }
        let ending = self.machine.upload(lease, around.now);
        self.upload_ends(ending, around);
    }

    fn upload_ends(&self, ending: Option<Ending>, around: &mut HostContext<'_>) {
        if let Some(ending) = ending {
            let (host, boot, serial) = (self.index, self.boot, ending.serial);
            around.queue.add(ending.at, Event::Sent { host, boot, serial });
        }
    }

    /// An upload is through.
    pub(crate) fn sent(&mut self, serial: u32, around: &mut HostContext<'_>) {
        let Some((lease, _, next)) = self.machine.up.end(around.now, serial) else { return };
        self.upload_ends(next, around);
        self.has_sent(lease, around);
        self.handle_pending(around);
    }

    fn has_sent(&mut self, lease: LeaseId, around: &mut HostContext<'_>) {
        let Some(stored) = self.machine.outbox.get_mut(&lease) else { return };
        around.tally.requests.transfers += 1;
        around.tally.checkpoints_up += stored.bytes - stored.sent;
        stored.sent = stored.bytes;
        around.pending.push_back(client::Event::Uploaded(lease, Uploaded::Sent));
    }

    /// Counts what its slots did since they were last counted.
    fn count_time(&mut self, around: &mut HostContext<'_>) {
        let passed = around.now - self.counted_to;
        self.counted_to = around.now;
        let Some(agent) = self.agent.as_ref().filter(|_| passed > 0) else { return };
        let running = self.slots.iter().flatten();
        let busy = count(running.clone().filter(|running| running.is_at_work()).count());
        let stand = count(running.count()) - busy;
        let free = count(self.slots.len()) - busy;
        let is_coming =
            |lease: &&client::lease::HeldLease| matches!(lease.state(), LeaseState::Fetching(_));
        let coming = agent.leases().iter().filter(is_coming).count();
        let waiting = free.min(count(coming) + stand);
        around.tally.busy += busy * passed;
        around.tally.waiting += waiting * passed;
        around.tally.idle += (free - waiting) * passed;
    }

    fn group<'p>(&self, plan: &'p Plan) -> Option<&'p HostGroup> {
        plan.groups.get(plan.kinds.get(self.kind)?.group)
    }

    fn latency(&self, plan: &Plan) -> u64 {
        self.group(plan).map_or(0, |group| group.latency.0)
    }
}
