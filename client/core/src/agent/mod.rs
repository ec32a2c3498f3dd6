//! The agent: what a host does with its leases. Events come in, actions go out.
//!
//! `leases` takes lease events and does what follows from a transition. `answers` takes what the server says.
//! `settle` does what is due after each event. `ending` ends the agent. `disk` keeps units within the disk that is lent.

mod answers;
mod disk;
mod ending;
mod leases;
mod settle;

use crate::{
    action::Action,
    closed::ClosedLeases,
    config::AgentConfig,
    cooldown::Cooldown,
    cpu_shares::CpuShares,
    data_budget::DataBudget,
    demand::DeviceDemand,
    event::{AskId, Event, OwnerEvent, StoredResult, TransferView},
    fetch_order::FetchOrder,
    lease::{HeldLease, LeaseEvent, LeaseState},
    requests::Requests,
    retry::Rng,
    shutdown::{Mode, Notice},
    slots::Slots,
    time::Micros,
};
use sojourn_protocol::{
    api::{HeartbeatRequest, Held, WorkRequest},
    ids::LeaseId,
    inventory::{Demand, Inventory},
    time::Millis,
};
use std::{collections::VecDeque, sync::Arc};

/// Decides about the leases of one host.
///
/// This type has no clock, no I/O and no randomness of its own: the time comes in with each event and never goes back,
/// and a seed determines its pauses.
#[derive(Debug)]
pub struct Agent {
    config: Arc<AgentConfig>,
    /// By id.
    leases: Vec<HeldLease>,
    closed: ClosedLeases,
    slots: Slots,
    fetches: FetchOrder,
    requests: Requests,
    cooldown: Cooldown,
    budget: DataBudget,
    cpu_shares: CpuShares,
    mode: Mode,
    notice: Option<Notice>,
    /// Since when no unit is in a slot.
    idle_since: Option<Micros>,
    owner: Owner,
    /// Results of an earlier run that work waits for, and until when.
    head_start: Option<(Micros, VecDeque<LeaseId>)>,
    /// Calls that give leases back and haven't ended.
    open_releases: u32,
    turns: u64,
    rng: Rng,
    now: Micros,
}

/// The owner's present wishes.
#[derive(Debug, Clone, Copy)]
struct Owner {
    /// Units may compute.
    computes: bool,
    /// Units haven't computed for so long that leases are given back.
    is_suspended: bool,
    /// The disk has less room left than is kept free: no unit is begun.
    disk_is_low: bool,
}

/// One event's time, what may be asked about blobs at that time, and the actions that follow from it.
struct Turn<'a, V> {
    now: Micros,
    view: &'a V,
    out: Vec<Action>,
    /// Leases to give back in one call.
    withdrawn: Vec<LeaseId>,
}

impl Agent {
    /// An agent with the results that lie on its disk. Nothing is done before the first event.
    #[must_use]
    pub fn new(config: Arc<AgentConfig>, seed: u64, restored: Vec<StoredResult>) -> Self {
        let head_start = restored.iter().map(|result| result.lease).collect::<VecDeque<_>>();
        let mut leases: Vec<HeldLease> = restored.into_iter().map(HeldLease::restored).collect();
        leases.sort_unstable_by_key(HeldLease::id);
        leases.dedup_by_key(|lease| lease.id());
        Self {
            slots: Slots::new(&config),
            leases,
            closed: ClosedLeases::default(),
            fetches: FetchOrder::default(),
            requests: Requests::new(),
            cooldown: Cooldown::default(),
            budget: DataBudget::default(),
            cpu_shares: CpuShares::default(),
            mode: Mode::Normal,
            notice: None,
            idle_since: None,
            owner: Owner { computes: true, is_suspended: false, disk_is_low: false },
            head_start: (!head_start.is_empty()).then_some((Micros::ZERO, head_start)),
            open_releases: 0,
            turns: 0,
            rng: Rng::new(seed),
            now: Micros::ZERO,
            config,
        }
    }

    /// Begins: reports of results that were found on the disk are made, and work is asked for.
    #[must_use]
    pub fn start(&mut self, now: Micros, view: &impl TransferView) -> Vec<Action> {
        let mut turn = Turn { now, view, out: Vec::new(), withdrawn: Vec::new() };
        if let Some((until, _)) = &mut self.head_start {
            *until = now + self.config.head_start;
        }
        let restored = self.leases.iter().map(HeldLease::id);
        turn.out.extend(restored.map(Action::Report));
        self.settle(&mut turn);
        turn.out
    }

    /// Takes an event, and says what is to be done.
    #[must_use]
    pub fn handle(&mut self, now: Micros, event: Event, view: &impl TransferView) -> Vec<Action> {
        let mut turn = Turn { now, view, out: Vec::new(), withdrawn: Vec::new() };
        // Units say this batch by batch, or each second, and nothing is due because of it.
        let is_progress = matches!(event, Event::Progress(..) | Event::Usage(..));
        self.take(event, &mut turn);
        let plans = self.cpu_shares.due().is_some_and(|due| due <= now);
        if !is_progress || plans {
            self.settle(&mut turn);
        }
        turn.out
    }

    fn take<V: TransferView>(&mut self, event: Event, turn: &mut Turn<'_, V>) {
        match event {
            Event::Work(ask, result) => self.work_answered(ask, result, turn),
            Event::Heartbeat(result) => self.heartbeat_answered(result, turn),
            Event::Report(lease, result) => self.report_ended(lease, result, turn),
            Event::Released(leases, result) => self.release_ended(&leases, result, turn),
            Event::BlobReady(blob) => self.blob_ready(&blob, turn),
            Event::BlobFailed(blob, error) => self.blob_failed(&blob, &error, turn),
            Event::Progress(lease, progress) => {
                self.apply(lease, LeaseEvent::Progress(progress), turn);
            }
            Event::Usage(lease, sample, capacity) => {
                let unit = self.lease(lease).and_then(HeldLease::in_slot);
                let done = unit.map_or(0, |unit| unit.progress.done);
                self.cpu_shares.record(lease, &sample, (done, capacity));
                let held = self.index(lease).ok().and_then(|at| self.leases.get_mut(at));
                if let Some(held) = held.filter(|held| held.is_in_slot()) {
                    held.losses.heard(sample.loss, done);
                }
            }
            Event::ShardNeeded(lease, blob) => {
                // It may have come while this was said.
                if !self.fetches.is_here(&blob) {
                    self.apply(lease, LeaseEvent::ShardMissing(blob), turn);
                    self.end_without_room(lease, &blob, turn);
                }
            }
            Event::PartSaved(lease) => {
                self.apply(lease, LeaseEvent::PartSaved, turn);
            }
            Event::SlotFree(lease, trainer) => self.slot_free(lease, trainer, turn.now),
            Event::UnitEnded(lease, result) => {
                self.cooldown.reset();
                self.apply(lease, LeaseEvent::UnitEnded(result), turn);
            }
            Event::UnitFailed(lease, error, part) => {
                let event = match part {
                    Some(part) => LeaseEvent::HostFaultWithPart(part),
                    None => LeaseEvent::HostFault(error),
                };
                self.apply(lease, event, turn);
            }
            Event::Uploaded(lease, uploaded) => self.upload_ended(lease, Ok(uploaded), turn),
            Event::UploadFailed(lease, error) => self.upload_ended(lease, Err(error), turn),
            Event::Owner(wish) => self.owner_says(wish, turn),
            Event::Preempted(left) => self.drain(Some(left), turn),
            Event::Shutdown => self.stop(turn),
            Event::DiskGone => self.disk_gone(turn),
            Event::Tick => {}
        }
    }

    fn owner_says<V: TransferView>(&mut self, wish: OwnerEvent, turn: &mut Turn<'_, V>) {
        match wish {
            OwnerEvent::Compute(computes) => self.owner.computes = computes,
            OwnerEvent::Suspend(suspended) => self.owner.is_suspended = suspended,
            OwnerEvent::Drain => self.drain(None, turn),
            OwnerEvent::InventoryChanged => self.requests.inventory_changed = true,
            OwnerEvent::DiskLow(low) => {
                let before = std::mem::replace(&mut self.owner.disk_is_low, low);
                self.requests.inventory_changed |= before != low;
                if low {
                    self.fetches.stop_ahead(&mut turn.out);
                }
            }
            OwnerEvent::Budget { period, limit, used } => self.budget.set(period, limit, used),
        }
    }

    /// The body of a request for work that [`Action::Ask`] started. `inventory`: where it has changed since the last
    /// answered request, or [`Agent::sends_inventory`].
    pub fn work_request(
        &mut self,
        ask: AskId,
        inventory: Option<Inventory>,
        view: &impl TransferView,
    ) -> WorkRequest {
        let holding = self.holding(view);
        let reported = self.acknowledged();
        // It may have changed since the request was begun; what the server is told counts.
        let demand: Vec<DeviceDemand> = self.device_demands().collect();
        let open = self.requests.ask_mut(ask).filter(|open| !open.is_last);
        let Some(open) = open else {
            let (demand, wait) = (Vec::new(), Millis(0));
            return WorkRequest { demand, holding, reported: Vec::new(), wait, inventory: None };
        };
        reported.clone_into(&mut open.reported);
        open.has_inventory = inventory.is_some();
        open.demand = demand;
        let wait = Millis(self.config.ask_wait.0.div_ceil(1000));
        WorkRequest { demand: self.demand(), holding, reported, wait, inventory }
    }

    /// The body of a heartbeat that [`Action::Beat`] started.
    pub fn heartbeat_request(&mut self, view: &impl TransferView) -> HeartbeatRequest {
        let reported = self.acknowledged();
        self.requests.beat_names(&reported);
        HeartbeatRequest { holding: self.holding(view), reported }
    }

    /// Is it the request for work that counts?
    #[must_use]
    pub fn is_current(&self, ask: AskId) -> bool {
        self.requests.current().is_some_and(|open| open.id == ask)
    }

    /// Does the server want to hear the inventory with the next request?
    #[must_use]
    pub const fn sends_inventory(&self) -> bool {
        self.requests.sends_inventory
    }

    /// The held leases, as the server is told of them.
    #[must_use]
    pub fn holding(&self, view: &impl TransferView) -> Vec<Held> {
        let held = self.leases.iter().filter_map(|lease| lease.held(view));
        held.map(|held| self.cpu_shares.tell(held)).collect()
    }

    /// Acknowledged reports whose end isn't known.
    #[must_use]
    pub fn acknowledged(&self) -> Vec<LeaseId> {
        let is_acknowledged =
            |lease: &&HeldLease| matches!(lease.state(), LeaseState::Acknowledged(_));
        self.leases.iter().filter(is_acknowledged).map(HeldLease::id).collect()
    }

    /// The demand for work of each device.
    #[must_use]
    pub fn demand(&self) -> Vec<Demand> {
        let devices = self.config.devices.iter().zip(self.device_demands());
        devices.map(|(device, demand)| demand.of(&device.name)).collect()
    }

    /// The leases that are held, by their id.
    #[must_use]
    pub fn leases(&self) -> &[HeldLease] {
        &self.leases
    }

    /// A lease that is held.
    #[must_use]
    pub fn lease(&self, id: LeaseId) -> Option<&HeldLease> {
        self.leases.get(self.index(id).ok()?)
    }

    /// Results that the server hasn't acknowledged.
    #[must_use]
    pub fn undelivered(&self) -> usize {
        self.leases.iter().filter(|lease| lease.is_undelivered()).count()
    }

    /// For how long yet no work is asked for, and after which fault.
    #[must_use]
    pub fn cooldown(&self) -> Option<(Micros, &str)> {
        self.cooldown.left(self.now)
    }

    /// Slots that are out of use because their trainers failed again and again.
    #[must_use]
    pub fn slots_out_of_use(&self) -> usize {
        self.slots.out_of_use()
    }

    /// Slots of a device that units may get, by its index in [`AgentConfig::devices`].
    #[must_use]
    pub fn usable_slots(&self, device: usize) -> u32 {
        self.slots.usable(device)
    }

    /// Does it end, and take no work any more?
    #[must_use]
    pub const fn is_leaving(&self) -> bool {
        !matches!(self.mode, Mode::Normal)
    }

    /// Did the server not answer the last call that any server answers?
    #[must_use]
    pub const fn is_server_away(&self) -> bool {
        self.requests.is_away()
    }

    /// May new units be begun with the month's bytes?
    #[must_use]
    pub fn is_budget_open(&self) -> bool {
        self.budget.is_open()
    }

    fn index(&self, id: LeaseId) -> Result<usize, usize> {
        self.leases.binary_search_by_key(&id, HeldLease::id)
    }
}
