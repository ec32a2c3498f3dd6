//! A host asks for work: what it should hold, what it shouldn't, what is new; or it waits.

use crate::{
    command::ReplyTo,
    core::Core,
    effect::{Answer, Effect},
    event::LeaseEnd,
    parked::Rank,
    round::PIECE,
    state::Lease,
};
use sojourn_protocol::{
    api::{WorkAnswer, WorkRequest},
    digest::BlobRef,
    ids::{HostId, JobId, LeaseId, TrialId},
    inventory::Demand,
    time::Millis,
};
use std::collections::{BTreeMap, BTreeSet};

/// Slots that one device of a host may have.
const MOST_SLOTS: u32 = 1024;
/// Devices that one host may ask for.
const MOST_DEVICES: usize = 16;
/// Asks are paced by holding them, so a host that hears something may ask again at once.
const ASK_AGAIN: Millis = Millis(0);
/// Waiting hosts that what has become open is offered to, of those that anything may be offered to.
const FASTEST: usize = 8;

impl Core {
    pub(crate) fn ask(&mut self, to: ReplyTo, host: HostId, mut request: WorkRequest) {
        if self.refuse_stranger(to, host) {
            return;
        }
        for demand in &mut request.demand {
            demand.slots = demand.slots.min(MOST_SLOTS);
            demand.idle = demand.idle.min(demand.slots);
            demand.wanted = demand.wanted.min(demand.slots.saturating_mul(2));
        }
        request.demand.truncate(MOST_DEVICES);
        if let Some(older) = self.soft.parked.take(host) {
            self.reply(older.to, Ok(Answer::Work(Box::new(self.nothing(host)))));
        }
        let now = self.now;
        let contact = self.soft.contacts.entry(host).or_default();
        let cache = contact.cache;
        if let Some(inventory) = &request.inventory
            && contact.has(inventory)
        {
            for device in contact.devices() {
                self.soft.schedule.estimates.told(host, device);
            }
        }
        let contact = self.soft.contacts.entry(host).or_default();
        let (other_cache, goes_on) =
            (contact.cache != cache, contact.could_do_with(&request.demand, now));
        if other_cache {
            // Shards find homes anew.
            self.soft.schedule.housed = (0, BTreeSet::new());
        }
        if goes_on {
            self.plans_go_on();
        }
        // A slot that is to go is there until its unit has ended.
        let busy = u32::try_from(self.started_leases(host)).unwrap_or(u32::MAX);
        let contact = self.soft.contacts.entry(host).or_default();
        contact.slots = contact.slots.max(busy);
        self.touch(host, &request.holding);
        self.renew_fleet(host);
        self.renew_homes();
        let wait = request.wait.0.min(self.config.longest_wait.0);
        let answer = self.work(host, &request);
        if wait == 0 || answer.send_inventory || says_something(&answer) {
            return self.reply(to, Ok(Answer::Work(Box::new(answer))));
        }
        let until = self.now + Millis(wait);
        self.soft.notify.remove(&host);
        let speed = self.soft.schedule.fleet.speed(host);
        self.soft.parked.park(host, to, request, until, speed);
        self.look_for_copies();
    }

    pub(crate) fn hang_up(&mut self, to: ReplyTo) {
        self.soft.parked.forget(to);
        for _ in 0..self.soft.assimilations.hang_up(to) {
            self.effect(Effect::Assimilate);
        }
    }

    /// Answers parked hosts for which something has changed: those whom what has become open concerns, or, where
    /// more has changed, while there is work, whoever waits for it, the fastest first, for they choose before the
    /// others; then those that have something else to hear.
    pub(crate) fn answer_parked(&mut self) {
        let work = std::mem::take(&mut self.soft.work_changed);
        let opened = std::mem::take(&mut self.soft.opened);
        let notify = std::mem::take(&mut self.soft.notify);
        let at_once = work && self.are_few_parked();
        for (job, trial) in opened.into_iter().filter(|_| !at_once) {
            for host in self.hosts_for(job, trial) {
                if self.supply() > 0 {
                    self.answer_if_possible(host);
                }
            }
        }
        let mut looked_at = None;
        if at_once {
            self.soft.round.forget();
            looked_at = self.look_through(None, usize::MAX).0;
        } else {
            if work {
                self.soft.round.want();
            }
            self.go_round();
        }
        let mut rest: Vec<Rank> = notify
            .into_iter()
            .filter_map(|host| self.soft.parked.rank(host))
            .filter(|rank| looked_at.is_none_or(|last| *rank > last))
            .collect();
        rest.sort_unstable();
        for rank in rest {
            self.answer_if_possible(rank.host);
        }
    }

    /// While there is work, answers so many of those that wait behind this one; the last of them, and whether any had
    /// something to hear.
    fn look_through(&mut self, behind: Option<Rank>, most: usize) -> (Option<Rank>, bool) {
        let (mut last, mut of_use) = (behind, false);
        for _ in 0..most {
            if self.supply() == 0 {
                break;
            }
            let Some(rank) = self.soft.parked.first_behind(last) else { break };
            last = Some(rank);
            of_use |= self.answer_if_possible(rank.host);
        }
        (last, of_use)
    }

    /// Goes on with a round through all that wait, where its next piece is due.
    fn go_round(&mut self) {
        if self.supply() == 0 {
            return self.soft.round.forget();
        }
        let Some(behind) = self.soft.round.due(self.now) else { return };
        match self.look_through(behind, PIECE) {
            (Some(last), true) => self.soft.round.goes_on(last),
            _ => self.soft.round.end(self.now),
        }
    }

    /// Looks again at places that left something to others for so long.
    pub(crate) fn look_again(&mut self) {
        let due = self.soft.schedule.look_again.take_due(self.now);
        if due.is_empty() {
            return;
        }
        if self.are_few_parked() {
            self.soft.schedule.look_again.clear();
            self.soft.work_changed = true;
        } else {
            self.soft.notify.extend(due);
        }
    }

    /// Are those that wait so few that all of them can be looked at in one step?
    fn are_few_parked(&self) -> bool {
        self.soft.parked.len() <= PIECE
    }

    /// Hosts that wait and could do with what has just become open of a trial: whom its plan names, who holds its
    /// checkpoint, who keeps its shards or holds them, the fastest first, and the fastest of all. Others hear of it
    /// when they ask again.
    fn hosts_for(&self, job: JobId, trial: TrialId) -> Vec<HostId> {
        let Some(known) = self.state.jobs.get(&job) else { return Vec::new() };
        let Some(of_job) = known.trial(trial) else { return Vec::new() };
        let planned = self.planned_host(known, of_job);
        let last = of_job.history.last().map(|hop| hop.host);
        let first = planned.into_iter().chain(last);
        let mut hosts: Vec<HostId> = first.filter(|host| self.soft.parked.waits(*host)).collect();
        match self.soft.schedule.homes.get(&job) {
            Some(homes) => {
                let open = of_job.open_chain().open().flat_map(|shard| homes.all(shard));
                let waiting = open.filter_map(|host| self.soft.parked.rank(host));
                let waiting: BTreeSet<Rank> = waiting.collect();
                hosts.extend(waiting.into_iter().map(|rank| rank.host));
                // What is evaluated needs no home.
                hosts.extend(self.soft.parked.fastest().take(1));
            }
            None => {
                hosts.extend(self.waiting_holders(known, of_job).take(FASTEST));
                hosts.extend(self.soft.parked.fastest().take(FASTEST));
            }
        }
        let mut seen = BTreeSet::new();
        hosts.retain(|host| seen.insert(*host));
        hosts
    }

    /// Answers a parked host with blobs to fetch, and with what else there is to say.
    pub(crate) fn answer_with(&mut self, host: HostId, fetch: Vec<BlobRef>) {
        let Some(parked) = self.soft.parked.take(host) else { return };
        let answer = WorkAnswer { fetch, ..self.work(host, &parked.request) };
        self.reply(parked.to, Ok(Answer::Work(Box::new(answer))));
    }

    /// Answers a parked host where there is something to say; else it goes on waiting.
    fn answer_if_possible(&mut self, host: HostId) -> bool {
        let Some(parked) = self.soft.parked.take(host) else { return false };
        let answer = self.work(host, &parked.request);
        let answered = says_something(&answer);
        if answered {
            self.reply(parked.to, Ok(Answer::Work(Box::new(answer))));
        } else {
            self.soft.parked.put_back(host, parked);
        }
        answered
    }

    pub(crate) fn expire_parked(&mut self) {
        while let Some((host, parked)) = self.soft.parked.take_due(self.now) {
            // It waited here all the time.
            self.touch(host, &[]);
            let fetch = self.fetch_ahead(host);
            let answer = WorkAnswer { fetch, ..self.nothing(host) };
            self.reply(parked.to, Ok(Answer::Work(Box::new(answer))));
        }
    }

    pub(crate) fn work(&mut self, host: HostId, request: &WorkRequest) -> WorkAnswer {
        let mut answer = self.nothing(host);
        answer.drop = self.drop_useless(host, &request.holding);
        answer.reports = self.ended_reports(host, &request.reported);
        answer.stop = self.tell_to_stop(host);
        answer.evict = self.soft.evict.remove(&host).unwrap_or_default();
        let held: BTreeSet<LeaseId> = request.holding.iter().map(|held| held.lease).collect();
        let live = self.state.hosts.get(&host).map(|host| &host.live).into_iter().flatten();
        let lacking: Vec<LeaseId> = live.filter(|id| !held.contains(id)).copied().collect();
        let mut resent: BTreeMap<String, u32> = BTreeMap::new();
        for id in lacking {
            let Some(lease) = self.state.leases.get(&id) else { continue };
            let device = lease.device.clone();
            if self.is_misplaced(lease) || self.is_paused(id) {
                // It began anew, with other devices or for a job that is to stand still.
                self.end_lease(id, LeaseEnd::Revoked);
                continue;
            }
            self.soft.set_term(id, self.fresh_term(id));
            answer.leases.extend(self.wire_lease(id));
            *resent.entry(device).or_default() += 1;
        }
        for lease in self.promised_but(host, &held) {
            *resent.entry(lease.device.clone()).or_default() += 1;
            answer.leases.push(lease);
        }
        let demand = self.demand_left(host, &request.demand, &resent);
        answer.leases.extend(self.grant(host, &demand));
        answer
    }

    /// Was the lease granted for a device that its host doesn't have, or that calculates otherwise now?
    fn is_misplaced(&self, lease: &Lease) -> bool {
        let contact = self.soft.contacts.get(&lease.host).filter(|contact| contact.is_known());
        contact.is_some_and(|contact| {
            let device = contact.device(&lease.device);
            device.is_none_or(|device| lease.class != Some(device.numeric_class))
        })
    }

    /// What the slots could do with beside the leases that they are given again, and no more than twice their
    /// number in all.
    fn demand_left(
        &self,
        host: HostId,
        demand: &[Demand],
        resent: &BTreeMap<String, u32>,
    ) -> Vec<Demand> {
        let live = self.state.hosts.get(&host).map(|host| &host.live);
        let live = live.into_iter().flatten().filter_map(|lease| self.state.leases.get(lease));
        let live: Vec<&str> = live.map(|lease| lease.device.as_str()).collect();
        let left = demand.iter().map(|demand| {
            let again = resent.get(&demand.device).copied().unwrap_or(0);
            let has = live.iter().filter(|device| **device == demand.device).count();
            let has = u32::try_from(has).unwrap_or(u32::MAX);
            let most = demand.slots.saturating_mul(2).saturating_sub(has);
            Demand {
                idle: demand.idle.saturating_sub(again),
                wanted: demand.wanted.saturating_sub(again).min(most),
                ..demand.clone()
            }
        });
        left.collect()
    }

    pub(crate) fn nothing(&self, host: HostId) -> WorkAnswer {
        let contact = self.soft.contacts.get(&host);
        WorkAnswer {
            leases: Vec::new(),
            drop: Vec::new(),
            reports: Vec::new(),
            ask_again: ASK_AGAIN,
            send_inventory: contact.is_none_or(|contact| !contact.is_known()),
            stop: Vec::new(),
            fetch: Vec::new(),
            evict: Vec::new(),
        }
    }
}

fn says_something(answer: &WorkAnswer) -> bool {
    let WorkAnswer { leases, drop, reports, stop, evict, fetch: _, .. } = answer;
    !(leases.is_empty()
        && drop.is_empty()
        && reports.is_empty()
        && stop.is_empty()
        && evict.is_empty())
}
