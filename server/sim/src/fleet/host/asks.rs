//! What a host says of itself: what it could do with, what it holds, what it has cached.

use super::{Host, HostContext, There};
use crate::fleet::{
    cache::{Name, needs},
    plan::Plan,
    queue::Event,
    scenario::HostGroup,
};
use sojourn_core::ReplyTo;
use sojourn_protocol::{
    api::{Held, HeldState, WorkRequest},
    inventory::{Demand, Inventory, Links},
    quantity::SaturatingFrom as _,
    time::Millis,
    unit::Lease,
};
use std::collections::BTreeSet;

impl Host {
    /// Has it an ask to send? One is open while it could do with more, and newer ones say more.
    pub(crate) fn want(&mut self, around: &mut HostContext<'_>) {
        if self.there != There::Here || self.ask_due || self.is_silent(around.now) {
            return;
        }
        let (idle, wanted) = self.demand(around.plan);
        let heard = self.asked.is_none() || idle > self.asked_idle;
        if wanted > 0 && heard {
            self.ask_due = true;
            // Whoever is there from the beginning has asked before it.
            let latency = if around.now > 0 { self.latency(around.plan) } else { 0 };
            let at = around.now + latency;
            around.queue.add(at, Event::Ask { host: self.index, boot: self.boot });
        }
    }

    /// What it asks then: for nothing, so that the server knows.
    pub(crate) fn last_request(&self, now: u64) -> WorkRequest {
        WorkRequest {
            demand: Vec::new(),
            holding: self.holding(now),
            reported: Vec::new(),
            wait: Millis(0),
            inventory: None,
        }
    }

    pub(crate) fn request(&mut self, around: &HostContext<'_>, reply: ReplyTo) -> WorkRequest {
        let (idle, wanted) = self.demand(around.plan);
        self.asked = Some(reply);
        self.asked_idle = idle;
        self.said_at = around.now;
        let device = around.plan.kinds.get(self.kind).map(|kind| &kind.device);
        let told = device.filter(|_| std::mem::take(&mut self.send_inventory));
        let inventory = told.map(|device| Inventory {
            cached: self.cache.data(),
            devices: vec![device.clone()],
            client: "sim".into(),
            links: Links {
                download: Some(self.down.bytes_per_second().unwrap_or(u64::MAX)),
                upload: Some(self.up.bytes_per_second().unwrap_or(u64::MAX)),
            },
            cache: Some(self.cache.limit()),
        });
        let slots = u32::saturating_from(self.slots.len());
        let device = device.map_or_else(String::new, |device| device.name.clone());
        WorkRequest {
            demand: vec![Demand { device, slots, idle, wanted }],
            holding: self.holding(around.now),
            reported: Vec::new(),
            wait: Millis(around.plan.longest_wait.div_ceil(1000)),
            inventory,
        }
    }

    /// Idle slots, and leases wanted.
    fn demand(&self, plan: &Plan) -> (u32, u32) {
        let number = |count: usize| u32::saturating_from(count);
        let held = number(self.waiting.len() + self.slots.iter().flatten().count());
        let slots = number(self.slots.len());
        let ahead = self.group(plan).map_or(0, HostGroup::units_ahead);
        let wanted = (slots + slots * ahead).saturating_sub(held);
        (slots.saturating_sub(held), wanted)
    }

    /// Leases that it holds and hasn't reported.
    pub(crate) fn holding(&self, now: u64) -> Vec<Held> {
        let waiting = self.waiting.iter().map(|waiting| {
            let state = match waiting.is_ready() {
                true => HeldState::Waiting,
                false => HeldState::Fetching {
                    fetched: self.fetched_of(&waiting.lease, &waiting.missing, now),
                },
            };
            Held::new(waiting.lease.id, state)
        });
        let running = self.slots.iter().flatten().map(|running| {
            let (done, of) = running.progress(now);
            let state = match running.is_at_work() {
                true => HeldState::Running { done, of },
                false => HeldState::Awaiting {
                    done,
                    of,
                    fetched: self.fetched_of(&running.lease, running.missing(), now),
                },
            };
            Held::new(running.lease.id, state)
        });
        let uploads = self.up.items().map(|upload| {
            let sent = self.up.progress(now);
            let state = HeldState::Sending { sent };
            Held {
                made: upload.whole.then_some(upload.blob),
                ..Held::new(upload.report.lease, state)
            }
        });
        waiting.chain(running).chain(uploads).collect()
    }

    /// Bytes of a lease's blobs that are there, with what has come of the one that is on the line.
    fn fetched_of(&self, lease: &Lease, missing: &BTreeSet<Name>, now: u64) -> u64 {
        let there = needs(lease).into_iter().filter(|need| !missing.contains(&need.name));
        let coming = self.down.items().next();
        let coming = coming.filter(|fetch| missing.contains(&fetch.need.name));
        let coming = coming.map_or(0, |_| self.down.progress(now));
        there.fold(coming, |all, need| all.saturating_add(need.blob.bytes))
    }

    /// Does it hold anything that must be kept alive?
    pub(crate) fn is_busy(&self) -> bool {
        !self.waiting.is_empty()
            || self.slots.iter().any(Option::is_some)
            || self.up.items().next().is_some()
    }
}
