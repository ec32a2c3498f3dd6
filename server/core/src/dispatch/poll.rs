//! A host asks for work: what it should hold, what it shouldn't, what is new; or it waits.

use super::dispatcher::Dispatcher;
use crate::{fault::CoreFault, hosts::HostHandler, leases::LeaseHandler, reply::Reply};
use sojourn_protocol::{
    api::{WorkAnswer, WorkRequest},
    digest::BlobRef,
    ids::{HostId, LeaseId},
    inventory::Demand,
    quantity::SaturatingFrom as _,
    time::Millis,
    unit,
};
use sojourn_scheduling::{
    hosts::{DeviceSlots, Session},
    schedule::{idle_reason, price_of_slot},
    waiters::ReplyTo,
};
use sojourn_state::{Host, Lease, LeaseEnd};
use std::collections::{BTreeMap, BTreeSet};

/// Slots that one device of a host may have.
const MAX_SLOTS: u32 = 1024;
/// Devices that one host may ask for.
const MAX_DEVICES: usize = 16;
/// Requests are paced by holding them open, so a host that was answered may ask again at once.
const ASK_AGAIN: Millis = Millis(0);

impl Dispatcher<'_> {
    /// A host asks for work. It is answered at once where there is something to say, or it doesn't want to wait; else
    /// its request is held open.
    pub(crate) fn poll(
        &mut self,
        to: ReplyTo,
        host: HostId,
        mut request: WorkRequest,
    ) -> Reply<Option<WorkAnswer>> {
        self.leases.ledger.state.check_host(host)?;
        for demand in &mut request.demand {
            demand.slots = demand.slots.min(MAX_SLOTS);
            demand.idle = demand.idle.min(demand.slots);
            demand.wanted = demand.wanted.min(demand.slots.saturating_mul(2));
        }
        request.demand.truncate(MAX_DEVICES);
        if let Some(older) = self.leases.ledger.waiters.polls_mut().take(host) {
            let nothing = self.nothing(host);
            self.answer(&older, nothing);
        }
        self.take_in_session(host, &request);
        self.leases.mark_present(host, &request.holding)?;
        self.host_handler().update_fleet(host);
        self.placement().prefer_classes();
        self.placement().reassign_replicas();
        let wait = request.wait.0.min(self.leases.ledger.config.longest_wait.0);
        let answer = self.work(host, &request)?;
        if wait == 0 || answer.send_inventory || says_something(&answer) {
            return Ok(Some(self.with_reason(host, answer)));
        }
        let until = self.leases.ledger.clock.now() + Millis(wait);
        let speed = self.leases.hosts.fleet().speed(host);
        let slots = self.leases.hosts.session(host).map_or(1, |session| session.slots);
        let price = price_of_slot(self.leases.ledger.state, slots, host).unwrap_or_default();
        let waiters = &mut *self.leases.ledger.waiters;
        waiters.forget_wakeup(host);
        waiters.polls_mut().hold(host, to, request, until, (speed, price));
        self.leases.ledger.consider_speculation();
        Ok(None)
    }

    fn host_handler(&mut self) -> HostHandler<'_> {
        HostHandler { ledger: self.leases.ledger.reborrow(), hosts: self.leases.hosts }
    }

    /// Takes in what a host says of its devices, its cache and its demand.
    fn take_in_session(&mut self, host: HostId, request: &WorkRequest) {
        let LeaseHandler { ledger, hosts } = &mut self.leases;
        let session = hosts.open_session(host);
        let cache = session.cache;
        let could = request.inventory.as_ref().map(|_| session.capabilities());
        if let Some(inventory) = &request.inventory
            && session.set_inventory(inventory)
        {
            let owner = ledger.state.owner_of(host).cloned().unwrap_or_default();
            ledger.planner.estimates_mut().claimed((host, &owner), session.devices());
            ledger.take_in_estimates();
        }
        let became_idle = session.set_demand(&request.demand, ledger.clock.now());
        // A host that came to lack the memory or the engine can't train what it keeps.
        let has_changed =
            could.is_some_and(|could| !could.is_empty() && session.capabilities() != could);
        if session.cache != cache || has_changed {
            self.data.invalidate();
        }
        if became_idle {
            ledger.planner.resume_plans();
        }
        // A slot that is to go is there until its unit has ended.
        let running = ledger.occupancy(hosts).running_leases(host);
        let running = u32::saturating_from(running);
        let session = hosts.open_session(host);
        session.slots = session.slots.max(running);
    }

    /// The connection of a request is gone: it is held open no more.
    pub(crate) fn hang_up(&mut self, to: ReplyTo) {
        self.leases.ledger.waiters.polls_mut().forget(to);
    }

    /// Answers a waiting host with blobs to fetch, and with what else there is to say.
    pub(crate) fn answer_with(
        &mut self,
        host: HostId,
        fetch: Vec<BlobRef>,
    ) -> Result<(), CoreFault> {
        let Some(poll) = self.leases.ledger.waiters.polls_mut().take(host) else { return Ok(()) };
        let answer = WorkAnswer { fetch, ..self.work(host, &poll.request)? };
        let answer = self.with_reason(host, answer);
        self.answer(&poll, answer);
        Ok(())
    }

    /// Answers a waiting host where there is something to say, else it goes on waiting. True where it was answered.
    pub(super) fn answer_if_possible(&mut self, host: HostId) -> Result<bool, CoreFault> {
        let Some(poll) = self.leases.ledger.waiters.polls_mut().take(host) else {
            return Ok(false);
        };
        let answer = self.work(host, &poll.request)?;
        let answered = says_something(&answer);
        if answered {
            let answer = self.with_reason(host, answer);
            self.answer(&poll, answer);
        } else {
            self.leases.ledger.waiters.polls_mut().put_back(host, poll);
        }
        Ok(answered)
    }

    /// Answers hosts that have waited for as long as they wanted.
    pub(crate) fn expire_polls(&mut self) -> Result<(), CoreFault> {
        let now = self.leases.ledger.clock.now();
        while let Some((host, poll)) = self.leases.ledger.waiters.polls_mut().take_due(now) {
            // It was connected all the time.
            self.leases.mark_present(host, &[])?;
            let fetch = self.placement().prefetch(host);
            let answer = WorkAnswer { fetch, ..self.nothing(host) };
            let answer = self.with_reason(host, answer);
            self.answer(&poll, answer);
        }
        Ok(())
    }

    /// The answer for a host: leases to drop and to stop, reports that have ended, blobs to evict, leases that
    /// it should hold and doesn't, new leases.
    pub(crate) fn work(
        &mut self,
        host: HostId,
        request: &WorkRequest,
    ) -> Result<WorkAnswer, CoreFault> {
        let mut answer = self.nothing(host);
        answer.drop = self.leases.drop_unwanted(host, &request.holding);
        answer.reports = self.leases.ledger.state.ended_reports(host, &request.reported);
        answer.evict = self.data.take_evictions(host);
        let held: BTreeSet<LeaseId> = request.holding.iter().map(|held| held.lease).collect();
        let mut resent: BTreeMap<String, u32> = BTreeMap::new();
        self.resend(host, &held, &mut resent, &mut answer.leases)?;
        let now = self.leases.ledger.clock.now();
        let leaves_at = self.leases.hosts.leaves_at(self.leases.ledger.state, host);
        answer.leave_within = leaves_at.map(|at| at - now);
        let known = self.leases.ledger.state.hosts.get(&host);
        let is_admitted = known.is_some_and(Host::is_admitted);
        if !self.storage.is_low() && leaves_at.is_none() && is_admitted {
            let demand = self.remaining_demand(host, &request.demand, &resent);
            self.grant(host, &demand, &mut answer.leases)?;
            self.replace_not_begun(host, request, &mut answer)?;
            self.shorten_lower(host, request)?;
        }
        answer.stop = self.leases.take_stop_requests(host);
        Ok(answer)
    }

    /// Sends the leases again that a host should hold and doesn't. `resent`: how many for each device.
    fn resend(
        &mut self,
        host: HostId,
        held: &BTreeSet<LeaseId>,
        resent: &mut BTreeMap<String, u32>,
        leases: &mut Vec<unit::Lease>,
    ) -> Result<(), CoreFault> {
        let state = &*self.leases.ledger.state;
        let live = state.hosts.get(&host).map(|host| &host.live).into_iter().flatten();
        let lacking: Vec<LeaseId> = live.filter(|id| !held.contains(id)).copied().collect();
        for id in lacking {
            let Some(lease) = self.leases.ledger.state.leases.get(&id).cloned() else { continue };
            if self.is_unknown_class(&lease) {
                continue;
            }
            if self.is_misplaced(&lease) || self.leases.ledger.state.is_paused(id) {
                // The host has restarted, with other devices or for a job that is paused.
                self.leases.close(id, LeaseEnd::Revoked)?;
                continue;
            }
            let mut deadline = self.leases.occupancy().new_deadline(id);
            // To say that it has lost the lease gives a host no more time.
            let before = self.leases.ledger.leases.deadline(id);
            deadline.bounds = before.map_or(deadline.bounds, |before| before.bounds);
            self.leases.ledger.leases.deadlines_mut().set(id, deadline);
            leases.extend(self.leases.occupancy().lease_message(id));
            *resent.entry(lease.device.clone()).or_default() += 1;
        }
        for lease in self.leases.occupancy().missing_provisional(host, held) {
            *resent.entry(lease.device.clone()).or_default() += 1;
            leases.push(lease);
        }
        Ok(())
    }

    /// Is it unknown in which instruction set the host computes a reproducible unit? It is asked for its inventory, and
    /// sent the lease after that.
    fn is_unknown_class(&self, lease: &Lease) -> bool {
        let job = self.leases.ledger.state.jobs.get(&lease.unit.job());
        let is_known = self.leases.hosts.session(lease.host).is_some_and(Session::is_known);
        !is_known && job.is_some_and(|job| job.spec.placement.reproducible)
    }

    /// Was the lease granted for a device that its host doesn't have any more, or that calculates otherwise now?
    fn is_misplaced(&self, lease: &Lease) -> bool {
        let session = self.leases.hosts.session(lease.host).filter(|session| session.is_known());
        session.is_some_and(|session| {
            let slots = session.devices.get(&lease.device);
            let offers =
                |slots: &DeviceSlots| lease.class.is_some_and(|class| slots.classes.offers(class));
            !slots.is_some_and(offers)
        })
    }

    /// The demand that remains beside the leases that are sent again: no more than twice the slots in all.
    fn remaining_demand(
        &self,
        host: HostId,
        demand: &[Demand],
        resent: &BTreeMap<String, u32>,
    ) -> Vec<Demand> {
        let state = &*self.leases.ledger.state;
        let live = state.hosts.get(&host).map(|host| &host.live);
        let live = live.into_iter().flatten().filter_map(|lease| state.leases.get(lease));
        let live: Vec<&str> = live.map(|lease| lease.device.as_str()).collect();
        let remaining = demand.iter().map(|demand| {
            let again = resent.get(&demand.device).copied().unwrap_or(0);
            let has = live.iter().filter(|device| **device == demand.device).count();
            let has = u32::saturating_from(has);
            let most = demand.slots.saturating_mul(2).saturating_sub(has);
            Demand {
                idle: demand.idle.saturating_sub(again),
                wanted: demand.wanted.saturating_sub(again).min(most),
                ..demand.clone()
            }
        });
        remaining.collect()
    }

    fn nothing(&self, host: HostId) -> WorkAnswer {
        let session = self.leases.hosts.session(host);
        WorkAnswer {
            leases: Vec::new(),
            drop: Vec::new(),
            reports: Vec::new(),
            ask_again: ASK_AGAIN,
            send_inventory: session.is_none_or(|session| !session.is_known()),
            stop: Vec::new(),
            fetch: Vec::new(),
            evict: Vec::new(),
            waiting: None,
            leave_within: None,
        }
    }

    /// An answer that is given, with the reason where it has no lease. It isn't looked for while a request is held open.
    fn with_reason(&self, host: HostId, answer: WorkAnswer) -> WorkAnswer {
        if !answer.leases.is_empty() {
            return answer;
        }
        let ledger = &self.leases.ledger;
        let reason = idle_reason(ledger.state, ledger.index, self.leases.hosts, host);
        WorkAnswer { waiting: reason.map(|reason| reason.to_string()), ..answer }
    }
}

fn says_something(answer: &WorkAnswer) -> bool {
    let WorkAnswer { leases, drop, reports, stop, evict, leave_within, fetch: _, .. } = answer;
    !(leases.is_empty()
        && leave_within.is_none()
        && drop.is_empty()
        && reports.is_empty()
        && stop.is_empty()
        && evict.is_empty())
}
