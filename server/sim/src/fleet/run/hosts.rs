//! What becomes of machines, and what they say to the core.

use super::{NOBODY, Run};
use crate::fleet::{
    arrival::Back,
    host::{Host, There},
    job::count,
    queue::Event,
};
use sojourn_core::{Answer, Command, ReplyTo, UnitKey};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{HostId, LeaseId},
    quantity::SaturatingFrom as _,
    reason::ReleaseReason,
    report::{Outcome, Report},
};

/// A host that is told that its report comes too early tries again after so long.
const AGAIN: u64 = 500_000;

impl Run<'_> {
    /// Makes the next stay of a host known to the queue.
    pub(super) fn come_next(&mut self, index: usize) {
        let Some(stays) = self.stays.get_mut(index) else { return };
        let (notice, Some(stay)) = (stays.notice, stays.next()) else { return };
        let host = u32::saturating_from(index);
        let boot = self.hosts.get(index).map_or(0, |host| host.boot);
        self.queue.add(stay.from, Event::Comes { host });
        if stay.to < u64::MAX {
            self.queue.leave(host, boot, stay.from, stay.to, notice);
        }
    }

    pub(super) fn comes(&mut self, index: usize) -> Result<(), String> {
        let another = self.stays.get(index).is_some_and(|stays| stays.back == Back::Another);
        let known = self.hosts.get(index).is_some_and(|host| host.id != HostId(0));
        if another || !known {
            let name = format!("host {index}");
            let boot = self.hosts.get(index).map_or(0, |host| host.boot);
            let token_sha256 = Digest::of(format!("token {index} {boot}").as_bytes());
            self.apply(Command::Enrol { to: NOBODY, name, token_sha256 })?;
            let Some(Answer::Enrolled(id)) = self.answer.take() else {
                return Err("a host can't enrol".into());
            };
            if let Some(host) = self.hosts.get_mut(index) {
                host.id = id;
            }
        }
        self.with(index, Host::come);
        Ok(())
    }

    pub(super) fn warned(&mut self, index: usize, boot: u32) -> Result<(), String> {
        if self.hosts.get(index).is_none_or(|host| host.boot != boot) {
            return Ok(());
        }
        let mut back = Vec::new();
        self.with(index, |host, around| back = host.wind_down(around));
        let Some(host) = self.hosts.get(index) else { return Ok(()) };
        let (id, request) = (host.id, host.last_request(self.now));
        self.release(id, back)?;
        self.apply(Command::Ask { to: NOBODY, host: id, request })?;
        match self.answer.take() {
            // What was granted in an answer that it didn't wait for any more.
            Some(Answer::Work(answer)) => {
                self.release(id, answer.leases.iter().map(|lease| lease.id).collect())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn goes(&mut self, index: usize, boot: u32) -> Result<(), String> {
        let Some(host) = self.hosts.get(index).filter(|host| host.boot == boot) else {
            return Ok(());
        };
        let (id, leaving) = (host.id, host.there == There::Leaving);
        let another = self.stays.get(index).is_some_and(|stays| stays.back == Back::Another);
        let mut held = Vec::new();
        self.with(index, |host, around| held = host.go(another, around));
        self.tally.departures += 1;
        match self.hosts.get(index).and_then(|host| self.plan.preempted(host.kind)) {
            Some(preempted) => {
                let host = u32::saturating_from(index);
                self.queue.add(self.now + preempted.back.0, Event::Comes { host });
            }
            None => self.come_next(index),
        }
        // Without notice nobody says anything: its leases run out, its ask stays open.
        if leaving { self.release(id, held) } else { Ok(()) }
    }

    fn release(&mut self, host: HostId, leases: Vec<LeaseId>) -> Result<(), String> {
        if leases.is_empty() {
            return Ok(());
        }
        let reason = ReleaseReason::Stopping;
        self.apply(Command::Release { to: NOBODY, host, leases, reason })
    }

    /// Is nobody there, and nobody to come?
    pub(super) fn is_deserted(&self) -> bool {
        self.hosts.iter().all(|host| host.there == There::Away)
    }

    pub(super) fn ask(&mut self, index: usize, boot: u32) -> Result<(), String> {
        if self.plan.rounds {
            self.next_round.push((index, boot));
            return Ok(());
        }
        self.ask_now(index, boot)
    }

    /// Where hosts ask all together: they do, if nobody has anything left to do. Evaluations are rounds of their own.
    pub(super) fn begin_round(&mut self) -> Result<(), String> {
        let out = &self.core.state().leases;
        let assimilating = self.woken || self.idle < self.plan.assimilators;
        if assimilating || !out.is_empty() || self.queue.next_at() == Some(self.now) {
            return Ok(());
        }
        let mut asks = std::mem::take(&mut self.next_round).into_iter();
        for (index, boot) in asks.by_ref() {
            self.ask_now(index, boot)?;
            let mut out = self.core.state().leases.values();
            if out.any(|lease| !matches!(lease.unit, UnitKey::Train { .. })) {
                break;
            }
        }
        self.next_round.extend(asks);
        Ok(())
    }

    fn ask_now(&mut self, index: usize, boot: u32) -> Result<(), String> {
        self.asks = self.asks.wrapping_add(1);
        let to = ReplyTo((count(index) + 1) << 32 | u64::from(self.asks));
        let mut asked = None;
        self.if_booted_at(index, boot, |host, around| {
            host.ask_due = false;
            if host.there == There::Here {
                asked = Some((host.id, host.request(around, to)));
            }
        });
        let Some((host, request)) = asked else { return Ok(()) };
        self.apply(Command::Ask { to, host, request })
    }

    pub(super) fn beat(&mut self, index: usize, boot: u32) -> Result<(), String> {
        let (now, every) = (self.now, self.plan.heartbeat);
        let Some(host) = self.hosts.get_mut(index).filter(|host| host.boot == boot) else {
            return Ok(());
        };
        let due = host.said_at + every;
        host.beat_due = host.is_busy();
        if !host.is_busy() {
            return Ok(());
        }
        let number = host.index;
        if host.is_silent(now) {
            self.queue.add(now + every, Event::Beat { host: number, boot });
            return Ok(());
        }
        if due > now {
            self.queue.add(due, Event::Beat { host: number, boot });
            return Ok(());
        }
        host.said_at = now;
        self.queue.add(now + every, Event::Beat { host: number, boot });
        let (host, holding) = (host.id, host.holding(now));
        self.apply(Command::Heartbeat { to: NOBODY, host, holding, reported: Vec::new() })?;
        if let Some(Answer::Heartbeat(answer)) = self.answer.take() {
            self.with(index, |host, around| {
                host.drop_leases(&answer.drop, around);
                host.stop(&answer.stop, around);
                host.want(around);
            });
        }
        Ok(())
    }

    pub(super) fn report(
        &mut self,
        index: usize,
        report: Report,
        uploaded: Option<BlobRef>,
    ) -> Result<(), String> {
        let Some(host) = self.hosts.get(index).map(|host| host.id) else { return Ok(()) };
        let micros = match &report.outcome {
            Outcome::Trained(trained) => trained.train_micros,
            Outcome::Evaluated(evaluated) => evaluated.train_micros,
            Outcome::Failed(_) => 0,
        };
        if self.core.is_provisional(host, report.lease) {
            // What it goes on from isn't taken in yet.
            let (host, report) = (u32::saturating_from(index), Box::new(report));
            self.queue.add(self.now + AGAIN, Event::Report { host, report, uploaded });
            return Ok(());
        }
        let lease = report.lease;
        let has_run_out = !self.core.state().leases.contains_key(&lease);
        self.tally.reports(lease, micros);
        if has_run_out {
            self.tally.comes_late(lease);
        }
        self.apply(Command::Report { to: NOBODY, host, report, uploaded })?;
        if !matches!(self.answer.take(), Some(Answer::Report(_))) {
            self.tally.loses(lease);
        }
        Ok(())
    }
}
