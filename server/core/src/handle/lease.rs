//! Heartbeats, releases, and what may be uploaded or read under a lease.

use super::report::plain;
use crate::{
    command::ReplyTo,
    core::Core,
    effect::{Answer, Effect},
    event::{LeaseEnd, UnitKey},
    state::{Lease, PastState},
};
use sojourn_protocol::{
    api::{HeartbeatAnswer, Held, HeldState, ReleaseAnswer, ReportAnswer},
    digest::Digest,
    error::ErrorKind,
    ids::{HostId, LeaseId},
    report::{ReportEnd, ReportState},
    time::Millis,
};

/// Calls to give leases back that cost a host nothing.
pub(crate) const FREE_RETURNS: u32 = 4;
/// The longest reason that is kept, in characters.
const LONGEST_REASON: usize = 200;
/// Bytes a millisecond of a line on which a host may still deliver: 100 kB/s.
const SLOW_UPLOAD: u64 = 100;

impl Core {
    pub(crate) fn heartbeat(
        &mut self,
        to: ReplyTo,
        host: HostId,
        holding: &[Held],
        reported: &[LeaseId],
    ) {
        if self.refuse_stranger(to, host) {
            return;
        }
        self.touch(host, holding);
        let drop = self.drop_useless(host, holding);
        let reports = self.ended_reports(host, reported);
        let stop = self.to_stop(host);
        self.reply(to, Ok(Answer::Heartbeat(HeartbeatAnswer { drop, reports, stop })));
    }

    /// Replies with a refusal where the host isn't enrolled or was revoked.
    pub(crate) fn refuse_stranger(&mut self, to: ReplyTo, host: HostId) -> bool {
        let known = self.state.hosts.get(&host).is_some_and(|host| !host.revoked);
        if !known {
            self.refuse(to, ErrorKind::Unauthorized, format!("host {host} is revoked or unknown"));
        }
        !known
    }

    /// The host lives, and so do the leases that it holds.
    pub(crate) fn touch(&mut self, host: HostId, holding: &[Held]) {
        for lease in self.to_take_back(host, holding) {
            self.end_lease(lease, LeaseEnd::Revoked);
        }
        let contact = self.soft.contacts.entry(host).or_default();
        contact.seen_at = self.now;
        let slots = usize::try_from(contact.slots).unwrap_or(usize::MAX);
        let mut started = self.started_leases(host);
        let busy = holding.iter().any(|held| held.state.progress().is_some());
        for held in holding {
            let own = self.state.leases.get(&held.lease).is_some_and(|lease| lease.host == host);
            let Some(mut term) = self.soft.terms.get(&held.lease).copied().filter(|_| own) else {
                self.watch_late(held);
                self.soft.promises.was_promised(held.lease, self.state.last_lease);
                continue;
            };
            term.renew_by = self.now + self.config.lease_term;
            match held.state {
                HeldState::Waiting => {
                    // Its turn comes when the unit before it ends, however long that takes; where none
                    // runs, it should have come.
                    if !term.started && busy {
                        term.due = term.due.max(self.now + self.config.start_grace);
                    }
                }
                HeldState::Fetching { fetched } => {
                    if fetched > term.fetched {
                        term.fetched = fetched;
                        term.due = term.due.max(self.now + self.config.start_grace);
                    }
                }
                HeldState::Running { done, of } | HeldState::Awaiting { done, of, .. } => {
                    let starts = !term.started && started < slots;
                    if starts {
                        (term.since, term.first) = (self.now, done);
                        term.started = true;
                        started += 1;
                    }
                    if starts || (term.started && done > term.done) {
                        (term.done, term.of, term.done_at) = (done, of, self.now);
                        let whole = self.estimate(held.lease);
                        let left = u64::from(of.saturating_sub(done));
                        let left = whole.0.saturating_mul(left) / u64::from(of.max(1));
                        term.due = self.now + self.patience(held.lease, Millis(left));
                    }
                    // What it waits for is on its way: a line that is slow, but carries.
                    if let HeldState::Awaiting { fetched, .. } = held.state
                        && fetched > term.fetched
                    {
                        term.fetched = fetched;
                        term.due = term.due.max(self.now + self.config.start_grace);
                    }
                }
                HeldState::Finished | HeldState::Sending { .. } => {
                    // Its slot has moved on; what is left is the way to us.
                    if term.started && !term.finished {
                        started = started.saturating_sub(1);
                    }
                    term.made = held.made;
                    if !term.finished {
                        term.finished = true;
                        term.due = self.now + self.delivery(held.lease);
                    }
                    // More than ever before: a line that is slow, but carries.
                    if let HeldState::Sending { sent } = held.state
                        && sent > term.sent
                    {
                        term.sent = sent;
                        term.due = term.due.max(self.now + self.config.start_grace);
                    }
                }
            }
            self.soft.set_term(held.lease, term);
        }
    }

    /// How long a host may take to deliver what it trained: a result that can't come (a proxy that lets no
    /// large request through) must not hold its unit for ever.
    fn delivery(&self, lease: LeaseId) -> Millis {
        let bytes = self.state.leases.get(&lease).and_then(|lease| self.upload_bytes(lease));
        let way = bytes.unwrap_or(0) / SLOW_UPLOAD;
        Millis(self.config.start_grace.0.saturating_add(way))
    }

    /// A lease that ran out may still bring a result; one that makes no progress hangs.
    fn watch_late(&mut self, held: &Held) {
        let lapsed = self.state.past.get(&held.lease);
        let lapsed = lapsed.is_some_and(|past| matches!(past.state, PastState::Lapsed(_)));
        if let (HeldState::Running { done, .. }, true) = (held.state, lapsed) {
            let now = self.now;
            let seen = self.soft.late.entry(held.lease).or_insert((done, now));
            if done > seen.0 {
                *seen = (done, now);
            }
        } else {
            self.soft.late.remove(&held.lease);
        }
    }

    /// Has a lease that ran out made no progress for as long as a slow unit may take?
    fn is_hung(&self, lease: LeaseId) -> bool {
        let patience = Millis(self.config.least_due.0.saturating_mul(10));
        self.soft.late.get(&lease).is_some_and(|(_, since)| *since + patience < self.now)
    }

    /// Leases that the host runs in its slots, as far as it has said.
    pub(crate) fn started_leases(&self, host: HostId) -> usize {
        let Some(host) = self.state.hosts.get(&host) else { return 0 };
        let terms = host.live.iter().filter_map(|lease| self.soft.terms.get(lease));
        terms.filter(|term| term.started && !term.finished).count()
    }

    /// Held leases that are of no use any more: not this host's, revoked, settled, or hung.
    pub(crate) fn drop_useless(&mut self, host: HostId, holding: &[Held]) -> Vec<LeaseId> {
        let dropped = self.useless(host, holding);
        for lease in &dropped {
            self.soft.late.remove(lease);
            let past = self.state.past.get(lease);
            if past.is_some_and(|past| past.lease.host == host) {
                // What it has uploaded of it so far is of no use either.
                self.soft.dropped.insert(*lease);
                self.effect(Effect::DropUpload(*lease));
            }
        }
        dropped
    }

    fn useless(&self, host: HostId, holding: &[Held]) -> Vec<LeaseId> {
        let useless = |held: &&Held| {
            let id = &held.lease;
            if let Some(lease) = self.state.leases.get(id) {
                return lease.host != host || !self.state.is_wanted(lease);
            }
            if self.soft.promises.has(host, *id) {
                return false;
            }
            let Some(past) = self.state.past.get(id) else { return true };
            match &past.state {
                PastState::Lapsed(LeaseEnd::Silent) => {
                    past.lease.host != host
                        || !self.state.is_wanted(&past.lease)
                        || self.is_hung(*id)
                }
                // What hung is to be stopped; what is trained already may still be of use.
                PastState::Lapsed(LeaseEnd::Overdue) => {
                    past.lease.host != host
                        || !held.state.is_finished()
                        || !self.state.is_wanted(&past.lease)
                }
                PastState::Lapsed(LeaseEnd::Revoked | LeaseEnd::GivenBack { .. }) => true,
                PastState::Acknowledged(_) | PastState::Failed(_) | PastState::Ended(_) => {
                    past.lease.host != host
                }
            }
        };
        holding.iter().filter(useless).map(|held| held.lease).collect()
    }

    /// Those of `reported` whose report has ended. What is forgotten has ended long ago.
    pub(crate) fn ended_reports(&self, host: HostId, reported: &[LeaseId]) -> Vec<ReportAnswer> {
        let answers = reported.iter().filter_map(|lease| {
            let state = match self.state.past.get(lease) {
                Some(past) if past.lease.host == host => past.report_state()?,
                _ if self.state.leases.contains_key(lease) => return None,
                _ => ReportState::Ended(ReportEnd::Superseded),
            };
            Some(ReportAnswer { lease: *lease, state })
        });
        answers.filter(|answer| matches!(answer.state, ReportState::Ended(_))).collect()
    }

    pub(crate) fn release(&mut self, to: ReplyTo, host: HostId, leases: &[LeaseId], reason: &str) {
        if self.refuse_stranger(to, host) {
            return;
        }
        let own =
            |lease: &&LeaseId| self.state.leases.get(lease).is_some_and(|lease| lease.host == host);
        let mut released: Vec<LeaseId> = leases.iter().filter(own).copied().collect();
        for lease in &released {
            let reason = plain(reason, LONGEST_REASON);
            self.end_lease(*lease, LeaseEnd::GivenBack { reason });
        }
        // With a lease goes what was promised on it.
        for lease in leases {
            if self.release_promise(host, *lease) {
                released.push(*lease);
            }
        }
        if !released.is_empty() {
            self.slow_down(host, reason);
        }
        self.reply(to, Ok(Answer::Released(ReleaseAnswer { released })));
    }

    /// A host that gives back unit after unit, or lets them lie, and reports nothing gets the next ones later
    /// and later.
    pub(crate) fn slow_down(&mut self, host: HostId, reason: &str) {
        let (count, last) = self.soft.returns.entry(host).or_default();
        *count += 1;
        *last = plain(reason, LONGEST_REASON);
        if let Some(doublings) = count.checked_sub(FREE_RETURNS) {
            let rest = Millis(self.config.heartbeat_every.0.saturating_mul(1 << doublings.min(10)));
            let rest = rest.min(Millis::from_secs(600));
            self.soft.resting.insert(host, self.now + rest);
        }
    }

    pub(crate) fn authorize_upload(
        &mut self,
        to: ReplyTo,
        host: HostId,
        lease: LeaseId,
        bytes: u64,
    ) {
        if self.refuse_stranger(to, host) {
            return;
        }
        let known = self.state.leases.get(&lease);
        let known = known.or_else(|| self.state.past.get(&lease).map(|past| &past.lease));
        let Some(known) = known else {
            return self.refuse_unknown(to, host, lease);
        };
        let of_host = known.host;
        let wanted = self.state.is_wanted(known);
        let expected = self.upload_bytes(known);
        if of_host != host {
            self.refuse(to, ErrorKind::Forbidden, format!("lease {lease} is another host's"));
        } else if !wanted {
            self.refuse(to, ErrorKind::Conflict, format!("the unit of lease {lease} is settled"));
        } else if expected != Some(bytes) {
            let expected = expected.unwrap_or(0);
            self.refuse(
                to,
                if bytes > expected { ErrorKind::TooLarge } else { ErrorKind::Invalid },
                format!("lease {lease} declares {expected} bytes, not {bytes}"),
            );
        } else {
            self.reply(to, Ok(Answer::UploadAuthorized));
        }
    }

    /// Refuses what concerns a lease that isn't known: for good, or until it is granted, where it is promised.
    pub(crate) fn refuse_unknown(&mut self, to: ReplyTo, host: HostId, lease: LeaseId) {
        if self.soft.promises.has(host, lease) {
            let message = format!("lease {lease} goes on from a result that isn't taken in yet");
            return self.refuse(to, ErrorKind::Unavailable, message);
        }
        self.refuse(to, ErrorKind::NotFound, format!("no lease {lease}"));
    }

    /// Bytes of the checkpoint that a lease's result comes with.
    fn upload_bytes(&self, lease: &Lease) -> Option<u64> {
        match lease.unit {
            UnitKey::Train { job, trial, .. } => {
                self.state.trial(job, trial).map(|trial| trial.checkpoint_bytes)
            }
            UnitKey::Evaluate { .. } | UnitKey::Extra { .. } => None,
        }
    }

    pub(crate) fn authorize_read(&mut self, to: ReplyTo, host: HostId, blob: Digest) {
        if self.refuse_stranger(to, host) {
            return;
        }
        let leases = self.state.hosts.get(&host).map(|host| host.live.clone()).unwrap_or_default();
        let mut leases = leases.iter().filter_map(|lease| self.wire_lease(*lease));
        let promised = || {
            let promised = self.soft.promises.of(host);
            // Its base is the host's own word, which opens nothing; it is to have that.
            let others = promised.filter(|promise| promise.base.sha256 != blob);
            let mut others = others.filter_map(|promise| self.wire_promise(promise));
            others.any(|lease| lease.unit.blobs().iter().any(|of| of.sha256 == blob))
        };
        let named =
            leases.any(|lease| lease.unit.blobs().iter().any(|of| of.sha256 == blob)) || promised();
        if named || self.may_fetch_ahead(host, blob) {
            self.reply(to, Ok(Answer::ReadAuthorized));
        } else {
            self.refuse(to, ErrorKind::Forbidden, "no lease of this host names that blob");
        }
    }
}
