//! A host's calls to the server: each takes the line's latency, and waits while its network is cut.

use super::{Host, HostContext};
use crate::{
    call::Call,
    fleet::queue::{Event, HostCall},
};
use sojourn_client_core::{self as client, AskId, CallError, Micros};
use sojourn_core::ReplyTo;
use sojourn_protocol::{
    api::{HeartbeatRequest, WorkRequest},
    digest::BlobRef,
    ids::LeaseId,
    inventory::{Inventory, Links},
    report::Report,
    time::Millis,
};
use std::collections::BTreeSet;

/// The report of a cut-off host comes so long after its lease has run out, at the least.
const BEYOND: u64 = 1_000_000;

/// How a host stands with its server.
#[derive(Debug, Default)]
pub(crate) struct Network {
    /// Requests for work that the server holds, by whom it answers.
    asks: Vec<(ReplyTo, AskId)>,
    /// When it last said something.
    said_at: u64,
    /// Whether the cache is another than the server knows.
    pub(super) inventory_changed: bool,
    /// Units with which its network was cut, until their leases have run out.
    late: BTreeSet<LeaseId>,
    /// The network is cut until then.
    cut_until: u64,
    /// Calls that wait for the network.
    parked: Vec<Call>,
}

impl Network {
    pub(super) fn start(&mut self) {
        let said_at = self.said_at;
        *self = Self { said_at, inventory_changed: true, ..Self::default() };
    }

    fn is_cut(&self, now: u64) -> bool {
        now < self.cut_until || !self.late.is_empty()
    }

    /// The network is cut until this unit is reported.
    pub(super) fn cut(&mut self, lease: LeaseId) {
        self.late.insert(lease);
    }
}

impl Host {
    pub(super) fn call(&mut self, call: Call, around: &mut HostContext<'_>) {
        let now = around.now;
        let latency = self.latency(around.plan);
        let network = &mut self.network;
        if let Call::Report(lease) = &call
            && network.late.remove(lease)
        {
            let expired = network.said_at + around.plan.lease_term + BEYOND;
            network.cut_until = network.cut_until.max(expired).max(now);
            let (host, boot) = (self.index, self.boot);
            around.queue.add(network.cut_until, Event::Reconnected { host, boot });
            network.parked.insert(0, call);
        } else if network.is_cut(now) {
            network.parked.push(call);
        } else {
            network.said_at = now;
            let call = HostCall { host: self.index, boot: self.boot, call };
            // Whoever is there from the beginning has asked before it.
            let latency = if now > 0 { latency } else { 0 };
            // These wait for what else happens at this instant: it may change the answer.
            if latency == 0 && !matches!(call.call, Call::Ask(_) | Call::Locate(_)) {
                around.calls.push_back(call);
            } else {
                around.queue.add(now + latency, Event::Call(call));
            }
        }
    }

    /// The unit comes to nothing: its network isn't cut for it any longer.
    pub(super) fn forget_late(&mut self, lease: LeaseId, around: &mut HostContext<'_>) {
        if self.network.late.remove(&lease) {
            self.reconnected(around);
        }
    }

    /// Makes the calls that waited for the network, where it is there again.
    pub(crate) fn reconnected(&mut self, around: &mut HostContext<'_>) {
        if !self.network.is_cut(around.now) {
            for call in std::mem::take(&mut self.network.parked) {
                self.call(call, around);
            }
        }
    }

    /// A request for work reaches the server, which answers `to`. None where a newer one has replaced it.
    pub(crate) fn work_request(
        &mut self,
        ask: AskId,
        to: ReplyTo,
        around: &mut HostContext<'_>,
    ) -> Option<WorkRequest> {
        self.note_progress(around.now);
        let agent = self.agent.as_mut()?;
        if !agent.is_current(ask) {
            self.tell(client::Event::Work(ask, Err(CallError::default())), around);
            return None;
        }
        let device = around.plan.kinds.get(self.kind).map(|kind| &kind.device);
        let changed =
            std::mem::take(&mut self.network.inventory_changed) || agent.sends_inventory();
        let machine = &self.machine;
        let inventory = device.filter(|_| changed).map(|device| Inventory {
            cached: machine.cache.shards(),
            devices: vec![device.clone()],
            client: "sim".into(),
            links: Links {
                download: Some(machine.down.bytes_per_second().unwrap_or(u64::MAX)),
                upload: Some(machine.up.bytes_per_second().unwrap_or(u64::MAX)),
            },
            cache: Some(machine.cache.limit()),
            disk_is_low: false,
        });
        self.network.asks.push((to, ask));
        Some(agent.work_request(ask, inventory, &machine.view(around.now)))
    }

    /// The request for work that the server answers so, if this start of the host waits for it.
    pub(crate) fn answered(&mut self, to: ReplyTo) -> Option<AskId> {
        let at = self.network.asks.iter().position(|(of, _)| *of == to)?;
        Some(self.network.asks.swap_remove(at).1)
    }

    pub(crate) fn heartbeat_request(&mut self, now: u64) -> Option<HeartbeatRequest> {
        self.note_progress(now);
        let agent = self.agent.as_mut()?;
        Some(agent.heartbeat_request(&self.machine.view(now)))
    }

    /// How far its units are, which it says with each call.
    fn note_progress(&mut self, now: u64) {
        let Some(agent) = &mut self.agent else { return };
        for running in self.slots.iter().flatten().filter(|running| running.is_at_work()) {
            let progress = client::Event::Progress(running.lease.id, running.progress(now));
            let _none = agent.handle(Micros(now), progress, &self.machine.view(now));
        }
    }

    /// The report of a result, and the checkpoint that the server has for it.
    pub(crate) fn report(&self, lease: LeaseId) -> Option<(Report, Option<BlobRef>)> {
        let stored = self.machine.outbox.get(&lease)?;
        let uploaded = stored.checkpoint.filter(|_| stored.sent >= stored.bytes);
        Some((stored.report.clone(), uploaded))
    }

    /// A call was answered: the agent hears of it over the line's latency.
    pub(crate) fn hears(&mut self, event: client::Event, around: &mut HostContext<'_>) {
        let left = match &event {
            client::Event::Heartbeat(Ok(answer)) => answer.leave_within,
            client::Event::Work(_, Ok(answer)) => answer.leave_within,
            _ => None,
        };
        if let Some(Millis(left)) = left {
            self.preempted(left.saturating_mul(1000), around);
        }
        let latency = self.latency(around.plan);
        if latency == 0 {
            return self.tell(event, around);
        }
        let (host, boot) = (self.index, self.boot);
        let event = Event::Heard { host, boot, event: Box::new(event) };
        around.queue.add(around.now + latency, event);
    }
}
