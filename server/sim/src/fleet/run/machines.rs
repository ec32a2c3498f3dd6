//! Machines that somebody buys and gives back while a fleet works.

use super::{NOBODY, Run};
use crate::fleet::{
    host::{Host, agent_config},
    job::index,
    machines::Site,
    queue::Event,
};
use sojourn_core::{Answer, Command};
use sojourn_protocol::{
    digest::Digest,
    error::{ApiError, ErrorKind},
    machines::MachineName,
    quantity::SaturatingFrom as _,
    time::{Millis, UnixMillis},
};
use std::sync::Arc;

impl Run<'_> {
    /// Is nothing more to come of those who buy machines?
    pub(super) fn machines_are_done(&self) -> bool {
        self.machines.as_ref().is_none_or(|machines| machines.is_done())
    }

    /// Asks whoever buys machines when the clock says so.
    pub(super) fn machines_event(&mut self) -> Result<(), String> {
        if self.asked_at != Some(self.now) {
            return Ok(());
        }
        self.asked_at = None;
        self.ask_machines()
    }

    /// Asks whoever buys machines, who lets happen what he wants.
    pub(super) fn ask_machines(&mut self) -> Result<(), String> {
        let Some(machines) = self.machines.take() else { return Ok(()) };
        let now = UnixMillis(self.now / 1000);
        self.is_away = machines.server_is_away(now);
        let acted = machines.act(now, self);
        let next = machines.next_at();
        self.machines = Some(machines);
        acted?;
        let at = next.map(|at| at.0.saturating_mul(1000).max(self.now + 1000));
        if let Some(at) = at.filter(|at| self.asked_at.is_none_or(|asked| *at < asked)) {
            self.asked_at = Some(at);
            self.queue.add(at, Event::Machines);
        }
        Ok(())
    }

    /// Can the server not be reached now?
    pub(super) fn server_is_away(&self) -> bool {
        let now = UnixMillis(self.now / 1000);
        self.machines.as_ref().map_or(self.is_away, |machines| machines.server_is_away(now))
    }

    /// Tells whoever buys machines of those whose clients have ended.
    pub(super) fn tell_exits(&mut self) -> Result<(), String> {
        if self.exits.is_empty() {
            return Ok(());
        }
        let now = UnixMillis(self.now / 1000);
        let exits = std::mem::take(&mut self.exits);
        let Some(machines) = &mut self.machines else { return Ok(()) };
        let of = |exit: u32| self.bought.iter().find(|(_, host)| **host == index(exit));
        for (name, _) in exits.into_iter().filter_map(of) {
            machines.exited(now, name);
        }
        self.ask_machines()
    }

    fn host_of(&self, machine: &MachineName) -> Option<&Host> {
        self.hosts.get(*self.bought.get(machine)?)
    }
}

impl Site for Run<'_> {
    fn ask(&mut self, command: Command) -> Result<Result<Answer, ApiError>, String> {
        if self.is_away {
            let away = ApiError::new(ErrorKind::Unavailable, "the server can't be reached");
            return Ok(Err(away));
        }
        self.apply(command)?;
        self.answer.take().ok_or_else(|| "the server has answered nothing".to_owned())
    }

    fn all_ended(&self) -> bool {
        self.submitted == self.plan.jobs.len() && self.ended == self.submitted
    }

    fn comes(
        &mut self,
        machine: &MachineName,
        group: usize,
        secret: &str,
    ) -> Result<Result<(), ApiError>, String> {
        let plan = self.plan;
        let kind = plan.kinds.iter().position(|kind| kind.group == group);
        let known = kind.zip(plan.groups.get(group));
        let (kind, of) = known.ok_or_else(|| format!("there is no group {group} of hosts"))?;
        if self.bought.contains_key(machine) {
            return Err(format!("machine {machine} is there already"));
        }
        let issued = self.core.state().issued.by_secret(Digest::of(secret.as_bytes()));
        let Some(with) = issued.map(|token| token.id) else {
            return Ok(Err(ApiError::new(ErrorKind::Unauthorized, "there is no such token")));
        };
        let token_sha256 = Digest::of(format!("token of {machine}").as_bytes());
        let name = machine.to_string();
        let enrol = Command::EnrolWithToken { to: NOBODY, name, token_sha256, with };
        let id = match self.ask(enrol)? {
            Ok(Answer::Enrolled(id)) => id,
            Ok(_) => return Err(format!("machine {machine} can't enrol")),
            Err(error) => return Ok(Err(error)),
        };
        let place = self.hosts.len();
        let config = Arc::new(agent_config(plan, kind, of));
        let mut host = Host::new(u32::saturating_from(place), kind, of, config);
        host.id = id;
        self.hosts.push(host);
        self.bought.insert(machine.clone(), place);
        self.with(place, Host::come);
        Ok(Ok(()))
    }

    fn noticed(&mut self, machine: &MachineName, left: Millis) {
        if let Some(host) = self.bought.get(machine).copied() {
            let left = left.0.saturating_mul(1000);
            self.with(host, |host, around| host.preempted(left, around));
        }
    }

    fn goes(&mut self, machine: &MachineName) {
        if let Some(host) = self.bought.remove(machine) {
            self.with(host, |host, around| host.go(true, around));
            self.tally.departures += 1;
        }
    }

    fn idle_since(&self, machine: &MachineName) -> Option<UnixMillis> {
        self.host_of(machine)?.idle_since().map(|at| UnixMillis(at / 1000))
    }
}
