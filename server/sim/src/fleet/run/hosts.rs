//! The comings and goings of machines, and what they say to the core.

use super::{NOBODY, Run};
use crate::{
    call::Call,
    fleet::{
        arrival::Back,
        host::Host,
        job::{count, index},
        queue::{Event, HostCall},
    },
};
use sojourn_client_core::AskId;
use sojourn_core::{Answer, Command, ReplyTo, UnitKey};
use sojourn_protocol::{
    api::HeartbeatRequest,
    digest::Digest,
    error::Retry,
    ids::{HostId, LeaseId},
    quantity::SaturatingFrom as _,
    report::Outcome,
};

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
            let Some(Ok(Answer::Enrolled(id))) = self.answer.take() else {
                return Err("a host can't enrol".into());
            };
            if let Some(host) = self.hosts.get_mut(index) {
                host.id = id;
            }
        }
        self.with(index, Host::come);
        Ok(())
    }

    pub(super) fn goes(&mut self, index: usize, boot: u32) {
        if self.hosts.get(index).is_none_or(|host| host.boot != boot) {
            return;
        }
        let is_replaced = self.stays.get(index).is_some_and(|stays| stays.back == Back::Another);
        self.with(index, |host, around| host.go(is_replaced, around));
        self.tally.departures += 1;
        match self.hosts.get(index).and_then(|host| self.plan.preempted(host.kind)) {
            Some(preempted) => {
                let host = u32::saturating_from(index);
                self.queue.add(self.now + preempted.back.0, Event::Comes { host });
            }
            None => self.come_next(index),
        }
    }

    /// Is nobody there, and nobody to come?
    pub(super) fn is_deserted(&self) -> bool {
        !self.hosts.iter().any(Host::is_here)
    }

    /// A host's call reaches the server.
    pub(super) fn call(&mut self, call: HostCall) -> Result<(), String> {
        let HostCall { host, boot, call } = call;
        let (index, is_away) = (index(host), self.server_is_away());
        let Some(host) = self.hosts.get_mut(index).filter(|host| host.boot == boot) else {
            return Ok(());
        };
        let (id, now) = (host.id, self.now);
        if is_away {
            self.with(index, |host, around| host.hears(call.failed(None), around));
            return Ok(());
        }
        match &call {
            Call::Ask(ask) if self.plan.rounds => {
                self.next_round.push((index, boot, *ask));
                return Ok(());
            }
            Call::Ask(ask) => return self.ask(index, boot, *ask),
            Call::Beat => {
                let Some(request) = host.heartbeat_request(now) else { return Ok(()) };
                let (holding, reported) = (request.holding, request.reported);
                self.apply(Command::Heartbeat {
                    to: NOBODY,
                    host: id,
                    request: HeartbeatRequest::new(holding, reported),
                })?;
            }
            Call::Release(call) => {
                let (leases, reason) = (**call).clone();
                self.apply(Command::Release { to: NOBODY, host: id, leases, reason })?;
            }
            Call::Report(lease) => self.report(index, *lease)?,
            Call::Locate(lease) => {
                self.tally.requests.transfers += 1;
                let (lease, is_refused) = (*lease, self.core.is_provisional(id, *lease));
                self.with(index, |host, around| match is_refused {
                    // The server takes nothing of a unit before the result that it goes on from.
                    true => host.hears(call.failed(None), around),
                    false => host.located(lease, around),
                });
                return Ok(());
            }
        }
        let event = self.answer.take().and_then(|answer| call.answered(answer));
        if let Some(event) = event {
            self.with(index, |host, around| host.hears(event, around));
        }
        Ok(())
    }

    fn report(&mut self, index: usize, lease: LeaseId) -> Result<(), String> {
        let Some(host) = self.hosts.get(index) else { return Ok(()) };
        let (id, Some((report, uploaded))) = (host.id, host.report(lease)) else { return Ok(()) };
        let micros = match &report.outcome {
            Outcome::Trained(trained) => trained.train_micros,
            Outcome::Evaluated(evaluated) => evaluated.train_micros,
            Outcome::Failed(_) => 0,
        };
        // The core doesn't take it before the result that it goes on from.
        if !self.core.is_provisional(id, lease) {
            self.tally.reports(lease, micros);
            if !self.core.state().leases.contains_key(&lease) {
                self.tally.comes_late(lease);
            }
        }
        self.apply(Command::Report { to: NOBODY, host: id, report, uploaded })?;
        if let Some(Err(error)) = &self.answer
            && error.kind.retry() == Retry::Never
        {
            self.tally.loses(lease);
        }
        Ok(())
    }

    /// Where hosts ask all together: they do, if nobody has anything left to do. Evaluations are rounds of their own.
    pub(super) fn begin_round(&mut self) -> Result<(), String> {
        let out = &self.core.state().leases;
        let assimilating = self.woken || self.idle < self.plan.assimilators;
        if assimilating || !out.is_empty() || self.queue.next_at() == Some(self.now) {
            return Ok(());
        }
        let mut asks = std::mem::take(&mut self.next_round).into_iter();
        for (index, boot, ask) in asks.by_ref() {
            self.ask(index, boot, ask)?;
            let mut out = self.core.state().leases.values();
            if out.any(|lease| !matches!(lease.unit, UnitKey::Train { .. })) {
                break;
            }
        }
        self.next_round.extend(asks);
        Ok(())
    }

    fn ask(&mut self, index: usize, boot: u32, ask: AskId) -> Result<(), String> {
        self.asks = self.asks.wrapping_add(1);
        let to = ReplyTo((count(index) + 1) << 32 | u64::from(self.asks));
        let mut asked = None;
        self.if_booted_at(index, boot, |host, around| {
            let request = host.work_request(ask, to, around);
            asked = request.map(|request| (host.id, request));
        });
        let Some((host, request)) = asked else { return Ok(()) };
        self.apply(Command::Ask { to, host, request })
    }
}
