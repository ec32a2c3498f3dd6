//! A host asks for work: what it should hold, what it shouldn't, what is new; or it waits.

use crate::{command::ReplyTo, core::Core, effect::Answer, event::LeaseEnd};
use sojourn_protocol::{
    api::{WorkAnswer, WorkRequest},
    ids::{HostId, LeaseId},
    time::Millis,
};
use std::collections::BTreeSet;

/// Slots that one host may have.
const MOST_SLOTS: u32 = 1024;
/// Asks are paced by holding them, so a host that hears something may ask again at once.
const ASK_AGAIN: Millis = Millis(0);

impl Core {
    pub(crate) fn ask(&mut self, to: ReplyTo, host: HostId, mut request: WorkRequest) {
        if self.refuse_stranger(to, host) {
            return;
        }
        request.slots = request.slots.min(MOST_SLOTS);
        request.idle = request.idle.min(request.slots);
        if let Some(older) = self.soft.parked.take(host) {
            self.reply(older.to, Ok(Answer::Work(self.nothing(host))));
        }
        self.soft.contacts.entry(host).or_default().slots = request.slots;
        if let Some(inventory) = &request.inventory {
            let contact = self.soft.contacts.entry(host).or_default();
            contact.cached = inventory.cached.iter().copied().collect();
            contact.numeric_class = Some(inventory.numeric_class);
            contact.flops = inventory.flops;
            contact.device.clone_from(&inventory.device);
        }
        self.touch(host, &request.holding);
        let wait = request.wait.0.min(self.config.longest_wait.0);
        let answer = self.work(host, &request);
        if wait == 0 || answer.send_inventory || says_something(&answer) {
            return self.reply(to, Ok(Answer::Work(answer)));
        }
        let until = self.now + Millis(wait);
        self.soft.notify.remove(&host);
        self.soft.parked.park(host, to, request, until);
    }

    pub(crate) fn hang_up(&mut self, to: ReplyTo) {
        self.soft.parked.forget(to);
    }

    /// Answers parked hosts for which something has changed, in the order in which they came: while there
    /// is work, whoever waits for it; then those that have something else to hear.
    pub(crate) fn answer_parked(&mut self) {
        let work = std::mem::take(&mut self.soft.work_changed);
        let notify = std::mem::take(&mut self.soft.notify);
        let mut place = 0;
        while work
            && self.supply() > 0
            && let Some((at, host)) = self.soft.parked.at_or_behind(place)
        {
            place = at + 1;
            self.answer_if_possible(host);
        }
        let mut rest: Vec<(u64, HostId)> = notify
            .into_iter()
            .filter_map(|host| Some((self.soft.parked.place(host)?, host)))
            .filter(|(at, _)| *at >= place)
            .collect();
        rest.sort_unstable();
        for (_, host) in rest {
            self.answer_if_possible(host);
        }
    }

    /// Answers a parked host where there is something to say; else it goes on waiting.
    fn answer_if_possible(&mut self, host: HostId) {
        let Some(parked) = self.soft.parked.take(host) else { return };
        let answer = self.work(host, &parked.request);
        if says_something(&answer) {
            self.reply(parked.to, Ok(Answer::Work(answer)));
        } else {
            self.soft.parked.put_back(host, parked);
        }
    }

    pub(crate) fn expire_parked(&mut self) {
        while let Some((host, parked)) = self.soft.parked.take_due(self.now) {
            // It waited here all the time.
            self.touch(host, &[]);
            self.reply(parked.to, Ok(Answer::Work(self.nothing(host))));
        }
    }

    fn work(&mut self, host: HostId, request: &WorkRequest) -> WorkAnswer {
        let mut answer = self.nothing(host);
        answer.drop = self.drop_useless(host, &request.holding);
        answer.reports = self.ended_reports(host, &request.reported);
        let held: BTreeSet<LeaseId> = request.holding.iter().map(|held| held.lease).collect();
        let live = self.state.hosts.get(&host).map(|host| host.live.clone()).unwrap_or_default();
        let class = self.soft.contacts.get(&host).and_then(|contact| contact.numeric_class);
        for lease in live.difference(&held) {
            let granted_to = self.state.leases.get(lease).and_then(|lease| lease.class);
            if (class.is_some() && granted_to != class) || self.is_paused(*lease) {
                // It began anew, with another arithmetic or for a job that is to stand still.
                self.end_lease(*lease, LeaseEnd::Revoked);
                continue;
            }
            self.soft.set_term(*lease, self.fresh_term(*lease));
            answer.leases.extend(self.wire_lease(*lease));
        }
        let resent = u32::try_from(answer.leases.len()).unwrap_or(u32::MAX);
        let most = request.slots.saturating_mul(2);
        let most = most.saturating_sub(u32::try_from(live.len()).unwrap_or(u32::MAX));
        let wanted = request.wanted.saturating_sub(resent).min(most);
        let idle = request.idle.saturating_sub(resent);
        answer.leases.extend(self.grant(host, idle, wanted));
        answer
    }

    fn nothing(&self, host: HostId) -> WorkAnswer {
        let contact = self.soft.contacts.get(&host);
        WorkAnswer {
            leases: Vec::new(),
            drop: Vec::new(),
            reports: Vec::new(),
            ask_again: ASK_AGAIN,
            send_inventory: contact.is_none_or(|contact| contact.numeric_class.is_none()),
        }
    }
}

fn says_something(answer: &WorkAnswer) -> bool {
    !answer.leases.is_empty() || !answer.drop.is_empty() || !answer.reports.is_empty()
}
