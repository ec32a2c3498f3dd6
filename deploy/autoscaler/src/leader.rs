//! The lease by which one autoscaler of a fleet acts: pure, over its own clock.

use sojourn_protocol::{
    machines::{LeaderAnswer, LeaderRequest},
    time::{Millis, UnixMillis},
};

/// For how long is asked.
pub(crate) const TERM: Millis = Millis::from_secs(300);
/// Nothing is begun so shortly before the term ends: no call takes longer.
pub(crate) const MARGIN: Millis = Millis::from_secs(130);
/// The longest wait before the next ask, where another leads.
const PATIENCE: Millis = Millis::from_secs(30);

/// The lease of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    role: String,
    holder: String,
    /// When it was granted last, and until when.
    granted: Option<(UnixMillis, UnixMillis)>,
    ask_at: UnixMillis,
    /// The process that leads, as the server said last; none where that isn't known.
    leader: Option<String>,
}

impl Lease {
    /// For the fleet of this name. `holder` is this process: no other has the same.
    pub(crate) fn new(fleet: &str, holder: String) -> Self {
        let role = format!("autoscaler/{fleet}");
        Self { role, holder, granted: None, ask_at: UnixMillis(0), leader: None }
    }

    /// The request that is due now, if any: the lease is renewed when a third of it is over.
    pub(crate) fn request(&self, now: UnixMillis) -> Option<LeaderRequest> {
        (now >= self.ask_at).then(|| self.ask(TERM, self.is_held(now)))
    }

    /// Can nobody else have it yet? A server that has just started believes who says so.
    fn is_held(&self, now: UnixMillis) -> bool {
        self.granted.is_some_and(|(_, until)| now < until)
    }

    fn ask(&self, term: Millis, renews: bool) -> LeaderRequest {
        LeaderRequest { role: self.role.clone(), holder: self.holder.clone(), term, renews }
    }

    /// The answer to what was asked at a time. The term counts from then: the server's begins later.
    pub(crate) fn answered(&mut self, asked_at: UnixMillis, answer: &LeaderAnswer) {
        let term = answer.term.0.min(TERM.0);
        self.leader.clone_from(&answer.holder);
        if answer.leads {
            self.granted = Some((asked_at, asked_at + Millis(term)));
            self.ask_at = asked_at + Millis(term / 3);
        } else {
            self.granted = None;
            self.ask_at = asked_at + Millis(term.min(PATIENCE.0));
        }
    }

    /// May something be begun now?
    pub(crate) fn may_act(&self, now: UnixMillis) -> bool {
        self.granted.is_some_and(|(_, until)| now + MARGIN < until)
    }

    /// Does another process lead?
    pub(crate) fn leader(&self) -> Option<&str> {
        self.leader.as_deref().filter(|leader| *leader != self.holder)
    }

    /// Gives it back, where it may be held.
    pub(crate) fn give_back(&mut self) -> Option<LeaderRequest> {
        let request = self.granted.is_some().then(|| self.ask(Millis(0), true));
        self.granted = None;
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(leads: bool, term: Millis) -> LeaderAnswer {
        LeaderAnswer { holder: Some(if leads { "me" } else { "you" }.into()), leads, term }
    }

    #[test]
    fn a_lease_is_renewed_at_a_third_and_ends_by_its_own_clock() {
        let mut lease = Lease::new("team", "me".into());
        let start = UnixMillis(1000);
        let first = lease.request(start).unwrap();
        assert_eq!(
            (first.role.as_str(), first.term, first.renews),
            ("autoscaler/team", TERM, false)
        );
        assert!(!lease.may_act(start));
        lease.answered(start, &answer(true, TERM));
        assert!(lease.may_act(start) && lease.leader().is_none());
        assert_eq!(lease.request(start + Millis(TERM.0 / 3 - 1)), None);
        assert!(lease.request(start + Millis(TERM.0 / 3)).unwrap().renews);
        let last = start + Millis(TERM.0 - MARGIN.0);
        assert!(lease.may_act(UnixMillis(last.0 - 1)) && !lease.may_act(last));
        let late = lease.request(start + TERM).unwrap();
        assert!(!late.renews, "another may have it by then");
        assert_eq!(lease.give_back().unwrap().term, Millis(0));
        assert!(lease.give_back().is_none() && !lease.may_act(start));
    }

    #[test]
    fn where_another_leads_it_waits_its_time_and_no_longer_than_half_a_minute() {
        let mut lease = Lease::new("team", "me".into());
        lease.answered(UnixMillis(0), &answer(false, Millis(5000)));
        assert_eq!(lease.leader(), Some("you"));
        assert!(!lease.may_act(UnixMillis(0)) && lease.request(UnixMillis(4999)).is_none());
        assert!(lease.request(UnixMillis(5000)).is_some());
        lease.answered(UnixMillis(0), &answer(false, TERM));
        assert!(lease.request(UnixMillis(0) + PATIENCE).is_some());
    }
}
