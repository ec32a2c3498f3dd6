//! Hosts come, show themselves and go: enrolment, revocation, presence, the fleet.

use crate::{
    fault::CoreFault,
    leases::LeaseHandler,
    ledger::Ledger,
    reply::{Refusal, Reply, conflict, invalid},
};
use sojourn_protocol::{
    digest::Digest,
    error::{ApiError, ErrorKind},
    ids::{HostId, LeaseId, TokenId},
    incarnation::Incarnation,
    names::OwnerName,
    text::plain_name,
    time::{Millis, UnixMillis},
    tokens::{TokenGrant, TokenState},
};
use sojourn_scheduling::{
    hosts::{DevicePool, DeviceSlots, Heard, Hosts, Verdict, next_presence_check, reliable_speed},
    waiters::Wake,
};
use sojourn_state::{By, Event, Host, Job};
use std::collections::BTreeSet;

/// Characters of a host's name that are kept.
const MAX_NAME_CHARS: usize = 80;
/// A server that has just started forgets no host before this: they must have had the time to come back.
const MIN_FORGET_UPTIME: Millis = Millis::from_secs(24 * 3600);
/// Hosts that one sweep notes at most: the next one goes on.
const MAX_HOSTS_NOTED: usize = 10_000;
/// Hosts that one sweep forgets at most: for each, all remembered leases are looked through.
const MAX_HOSTS_FORGOTTEN: usize = 32;

/// Enrolment, presence and cool-downs of hosts.
pub(crate) struct HostHandler<'a> {
    pub(crate) ledger: Ledger<'a>,
    pub(crate) hosts: &'a mut Hosts,
}

impl HostHandler<'_> {
    /// Enrols a host with the hash of its token.
    pub(crate) fn enrol(
        &mut self,
        name: &str,
        token_sha256: Digest,
        with: Option<TokenId>,
    ) -> Reply<HostId> {
        if self.ledger.state.tokens.contains_key(&token_sha256) {
            return conflict("that token is taken");
        }
        let name = plain_name(name, MAX_NAME_CHARS);
        if name.is_empty() {
            return invalid("a host needs a name");
        }
        let owner = with.map(|token| self.owner_for(token)).transpose()?.unwrap_or_default();
        let host = self.ledger.state.next_host();
        let token = with;
        self.ledger.record(Event::HostEnrolled { host, name, token_sha256, owner, token })?;
        Ok(host)
    }

    /// The owner of the hosts that enrol with this token, if one more may.
    fn owner_for(&self, token: TokenId) -> Reply<OwnerName> {
        let refuse = |message: String| Err(Refusal::new(ErrorKind::Unauthorized, message));
        let Some(issued) = self.ledger.state.issued.get(token) else {
            return refuse(format!("there is no token {token}"));
        };
        let why = match issued.state(self.ledger.clock.now()) {
            TokenState::Valid => match &issued.grant {
                TokenGrant::Enrol { owner, .. } => return Ok(owner.clone()),
                TokenGrant::Access { .. } | TokenGrant::PageLink { .. } => {
                    "isn't for enrolling".to_owned()
                }
            },
            TokenState::Used => match issued.enrolled {
                1 => "was for one host, which has enrolled".to_owned(),
                hosts => format!("was for {hosts} hosts, which have all enrolled"),
            },
            TokenState::Expired => "has expired".to_owned(),
            TokenState::Revoked => "was revoked".to_owned(),
        };
        refuse(format!("enrolment token {token} {why}"))
    }

    /// Revokes a host: its token opens nothing any more, its leases end, its open request is refused.
    pub(crate) fn revoke(&mut self, host: HostId) -> Reply<()> {
        let known = self.ledger.state.hosts.get(&host);
        let known =
            known.ok_or_else(|| ApiError::new(ErrorKind::NotFound, format!("no host {host}")))?;
        let leases: Vec<LeaseId> = known.live.iter().copied().collect();
        if !known.revoked {
            self.ledger.record(Event::HostRevoked { host })?;
            self.update_fleet(host);
            // It has no say any more in how long others may take, and what memory.
            self.ledger.planner.forget_hosts(&BTreeSet::from([host]));
        }
        LeaseHandler { ledger: self.ledger.reborrow(), hosts: self.hosts }.revoke(leases)?;
        let message = format!("host {host} is revoked");
        self.refuse_open_request(host, ApiError::new(ErrorKind::Unauthorized, message));
        Ok(())
    }

    /// Has a host get no new work, or work again. What it holds goes on: only its deadlines end that.
    pub(crate) fn block(&mut self, host: HostId, blocked: bool, by: By) -> Reply<()> {
        let known = self.ledger.state.hosts.get(&host);
        let known =
            known.ok_or_else(|| ApiError::new(ErrorKind::NotFound, format!("no host {host}")))?;
        if known.revoked {
            let message = format!("host {host} is revoked: its machine has to enrol again");
            return conflict(message);
        }
        if known.blocked != blocked {
            self.ledger.record(match blocked {
                true => Event::HostBlocked { host, by },
                false => Event::HostUnblocked { host, by },
            })?;
            self.update_fleet(host);
        }
        Ok(())
    }

    /// Hears which start of a host's client sends a request, before the request itself.
    pub(crate) fn hear_incarnation(
        &mut self,
        host: HostId,
        incarnation: Incarnation,
        rival: Option<Incarnation>,
    ) -> Reply<()> {
        self.ledger.state.check_host(host)?;
        let heard = Heard {
            incarnation,
            rival,
            is_asking: self.ledger.waiters.polls_mut().is_open(host),
            now: self.ledger.clock.now(),
            term: self.ledger.config.lease_term,
        };
        match self.hosts.open_session(host).incarnations.hear(heard) {
            Verdict::Works => Ok(()),
            Verdict::WorksAgain => {
                // The open request is the copy's.
                self.refuse_open_request(host, ApiError::copied_identity());
                Ok(())
            }
            Verdict::Waits { current } => {
                self.refuse_open_request(host, ApiError::with_rival(incarnation));
                Err(ApiError::with_rival(current).into())
            }
            Verdict::Unclear { other } => Err(ApiError::with_rival(other).into()),
            Verdict::Copy => Err(ApiError::copied_identity().into()),
        }
    }

    /// Answers the open request of a host, if it has one.
    fn refuse_open_request(&mut self, host: HostId, error: ApiError) {
        if let Some(poll) = self.ledger.waiters.polls_mut().take(host) {
            self.ledger.reply(poll.to, Err(error));
        }
    }

    /// Takes a host off the list, as an operator says: as if it had been away for long.
    pub(crate) fn forget(&mut self, host: HostId) -> Reply<()> {
        let refuse = |why: &str| conflict(format!("host {host} {why}"));
        let Some(known) = self.ledger.state.hosts.get(&host) else {
            return Err(Refusal::new(ErrorKind::NotFound, format!("no host {host}")));
        };
        let (now, term) = (self.ledger.clock.now(), self.ledger.config.lease_term);
        let session = self.hosts.session(host);
        let is_silent = session.is_none_or(|session| session.seen_at + term <= now);
        if !known.live.is_empty() {
            return refuse("holds leases: it is forgotten once they have ended");
        }
        if !known.revoked && (!is_silent || self.ledger.waiters.polls_mut().is_open(host)) {
            return refuse("is in contact: end its client first");
        }
        if !self.may_forget(known) {
            return refuse(
                "is revoked, and would enrol again with a token that still lets it: revoke that token first",
            );
        }
        if self.ledger.state.without_work(BTreeSet::from([host])).is_empty() {
            return refuse("had leases that are still remembered, for a day after their end");
        }
        self.ledger.record(Event::HostForgotten { host })?;
        self.hosts.end_cooldown(host);
        self.hosts.end_session(host);
        self.ledger.planner.forget_hosts(&BTreeSet::from([host]));
        Ok(())
    }

    /// A host was heard of, and may have other slots than before.
    pub(crate) fn update_fleet(&mut self, host: HostId) {
        let now = self.ledger.clock.now();
        let look_at = next_presence_check(now, self.ledger.config.lease_term);
        let reliability = self.ledger.cost(self.hosts).reliability(host);
        let leaves = self.hosts.leaves_at(self.ledger.state, host).is_some();
        let Some((session, fleet, offers)) = self.hosts.session_in_fleet(host) else { return };
        let Some(of_host) = self.ledger.state.hosts.get(&host) else { return };
        let estimates = self.ledger.planner.estimates();
        let takes_units = of_host.is_admitted() && !leaves;
        let with_slots = session.devices.values().filter(|slots| slots.count > 0 && takes_units);
        let is_distrusted = self.ledger.state.has_lost_trust(host);
        let vouching = with_slots.clone().filter(|_| !is_distrusted);
        let offered = vouching.flat_map(|slots| slots.classes.iter().map(|of| of.class));
        let offers_others = offers.set(host, &of_host.owner, offered.collect());
        let speed = |slots: &DeviceSlots| {
            let key = slots.key(host, slots.classes.fastest().class);
            reliable_speed(estimates.pace(key), reliability)
        };
        let known = fleet.pools(host);
        let is_known = |(slots, known): (&DeviceSlots, &DevicePool)| {
            known.device == slots.device.name
                && (known.slots, &known.classes) == (slots.count, &slots.classes)
        };
        if with_slots.clone().count() == known.len() && with_slots.clone().zip(known).all(is_known)
        {
            let mut speeds = with_slots.clone().map(speed).zip(known);
            if speeds.any(|(speed, known)| speed != known.speed) {
                fleet.set_speeds(host, with_slots.map(speed));
            }
            if offers_others {
                fleet.touch();
                self.ledger.waiters.wake(Wake::All);
            }
            return;
        }
        let pools = with_slots.map(|slots| DevicePool {
            device: slots.device.name.clone(),
            slots: slots.count,
            classes: slots.classes.clone(),
            speed: speed(slots),
        });
        let pools: Vec<DevicePool> = pools.collect();
        if fleet.set(host, pools, look_at) {
            self.ledger.waiters.wake(Wake::All);
        }
    }

    /// Takes the hosts out of the fleet that haven't been heard of for a lease's term.
    pub(crate) fn check_presence(&mut self) {
        let (now, term) = (self.ledger.clock.now(), self.ledger.config.lease_term);
        for host in self.hosts.fleet_mut().due_for_check(now) {
            let seen = self.hosts.session(host).map_or(UnixMillis(0), |session| session.seen_at);
            let seen = if self.ledger.waiters.waits(host) { now } else { seen };
            let next = next_presence_check(seen, term);
            if next > now {
                self.hosts.fleet_mut().present_until(host, next);
            } else if self.hosts.fleet_mut().leave(host) {
                self.hosts.offers_mut().leave(host);
                self.ledger.waiters.wake(Wake::All);
            }
        }
    }

    /// Ends the cool-downs that are over.
    pub(crate) fn expire_cooldowns(&mut self) {
        if self.hosts.expire_cooldowns(self.ledger.clock.now()) {
            self.ledger.waiters.wake(Wake::All);
        }
    }

    /// Workloads that were held back may be tried.
    pub(crate) fn expire_holds(&mut self) {
        self.hosts.strikes_mut().expire(self.ledger.clock.now());
        self.ledger.waiters.wake(Wake::All);
    }

    /// Notes which hosts are there, where the journal's note is old, and forgets those that weren't there for long. Sessions
    /// are lost with the server, so it first lets the hosts come back.
    pub(crate) fn forget_absent(&mut self) -> Result<(), CoreFault> {
        let (clock, now) = (self.ledger.clock, self.ledger.clock.now());
        if clock.is_recovering() || clock.is_warming_up(MIN_FORGET_UPTIME) {
            return Ok(());
        }
        let after = self.ledger.config.forget_hosts;
        let late = self.ledger.config.note_interval();
        let old = |host: &&Host| host.last_known_at() + late <= now;
        let old: Vec<&Host> = self.ledger.state.hosts.values().filter(old).collect();
        let is_here = |host: &&Host| self.hosts.session(host.id).is_some();
        // Of hosts that enrolled before there were notes nothing is known: the time begins now.
        let noted = old.iter().filter(|host| is_here(host) || host.seen_at == UnixMillis(0));
        let noted: Vec<HostId> = noted.map(|host| host.id).take(MAX_HOSTS_NOTED).collect();
        let absent = |host: &&Host| {
            !is_here(host)
                && host.seen_at > UnixMillis(0)
                && host.last_known_at() + after + late <= now
                && self.may_forget(host)
        };
        let absent: BTreeSet<HostId> =
            old.iter().copied().filter(|host| absent(host)).map(|host| host.id).collect();
        let absent = self.ledger.state.without_work(absent);
        if !noted.is_empty() {
            self.ledger.record(Event::HostsSeen { hosts: noted })?;
        }
        for host in absent.into_iter().take(MAX_HOSTS_FORGOTTEN) {
            self.ledger.record(Event::HostForgotten { host })?;
            self.hosts.end_cooldown(host);
        }
        Ok(())
    }

    /// A revoked host would enrol again as soon as it was forgotten, if it may.
    fn may_forget(&self, host: &Host) -> bool {
        let state = &*self.ledger.state;
        let with = host.token.and_then(|token| state.issued.get(token));
        let may_enrol = match (host.token, with) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(_), Some(token)) => token.state(self.ledger.clock.now()) == TokenState::Valid,
        };
        !(host.revoked && may_enrol)
    }

    /// Forgets hosts that were silent for as long as ended leases are remembered. They are returned.
    pub(crate) fn forget_silent(&mut self) -> BTreeSet<HostId> {
        let now = self.ledger.clock.now();
        let before = UnixMillis(now.0.saturating_sub(self.ledger.config.remember_leases.0));
        let waiters = &*self.ledger.waiters;
        let silent = self.hosts.forget_silent(before, |host| waiters.waits(host));
        self.ledger.planner.forget_hosts(&silent);
        let jobs = &self.ledger.state.jobs;
        let runs = |job| jobs.get(&job).is_some_and(Job::is_running);
        self.hosts.strikes_mut().retain_jobs(runs, now);
        silent
    }
}
