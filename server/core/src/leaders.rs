//! Leaders among processes of which only one is to act, as those that buy machines.
//!
//! Soft state. After a start the server doesn't know who led before. So in the longest term that it would have given, it
//! believes the first that says it leads already, and lets others wait.

use sojourn_protocol::{
    machines::{LeaderAnswer, LeaderRequest, MAX_LEADER_TERM},
    time::{Millis, UnixMillis},
};
use std::collections::BTreeMap;

/// Roles that are led; more are refused. There is one today.
const MAX_ROLES: usize = 64;

/// The leaders, by role.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Leaders {
    by_role: BTreeMap<String, Leader>,
    /// Until then one may lead that asked before the server started.
    unknown_until: UnixMillis,
}

#[derive(Debug, Clone, PartialEq)]
struct Leader {
    holder: String,
    until: UnixMillis,
}

impl Leaders {
    /// The server has started: who led before may do so until its term ends.
    pub(crate) fn start(&mut self, now: UnixMillis) {
        (self.unknown_until, self.by_role) = (now + MAX_LEADER_TERM, BTreeMap::new());
    }

    /// A process asks to lead. Nobody else does before its term has ended.
    pub(crate) fn ask(&mut self, request: LeaderRequest, now: UnixMillis) -> LeaderAnswer {
        let LeaderRequest { role, holder, term, renews } = request;
        let term = term.min(MAX_LEADER_TERM);
        self.by_role.retain(|_, leader| leader.until > now);
        match self.by_role.get_mut(&role) {
            Some(leader) if leader.holder == holder => {
                leader.until = now + term;
                LeaderAnswer { holder: Some(holder), leads: term.0 > 0, term }
            }
            Some(leader) => {
                let (other, left) = (leader.holder.clone(), leader.until - now);
                LeaderAnswer { holder: Some(other), leads: false, term: left }
            }
            None => self.first(role, holder, term, renews, now),
        }
    }

    /// Nobody leads, as far as is known.
    fn first(
        &mut self,
        role: String,
        holder: String,
        term: Millis,
        renews: bool,
        now: UnixMillis,
    ) -> LeaderAnswer {
        if now < self.unknown_until && !renews {
            return LeaderAnswer { holder: None, leads: false, term: self.unknown_until - now };
        }
        if self.by_role.len() >= MAX_ROLES {
            return LeaderAnswer { holder: None, leads: false, term: MAX_LEADER_TERM };
        }
        if term.0 > 0 {
            let leader = Leader { holder: holder.clone(), until: now + term };
            self.by_role.insert(role, leader);
        }
        LeaderAnswer { holder: Some(holder), leads: term.0 > 0, term }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(leaders: &mut Leaders, holder: &str, renews: bool, now: u64) -> bool {
        let request = LeaderRequest {
            role: "autoscaler".into(),
            holder: holder.into(),
            term: Millis(60_000),
            renews,
        };
        leaders.ask(request, UnixMillis(now)).leads
    }

    #[test]
    fn one_leads_at_a_time_also_after_a_restart() {
        let mut leaders = Leaders::default();
        let start = 1_000_000;
        leaders.start(UnixMillis(start));
        assert!(!ask(&mut leaders, "a", false, start), "another may lead since before");
        assert!(ask(&mut leaders, "b", true, start + 1), "it says that it does");
        assert!(!ask(&mut leaders, "c", true, start + 2));
        assert!(ask(&mut leaders, "b", true, start + 60_000));
        assert!(!ask(&mut leaders, "a", false, start + 119_999));
        let later = start + MAX_LEADER_TERM.0;
        assert!(ask(&mut leaders, "a", false, later), "the term of b has ended");
        assert!(!ask(&mut leaders, "b", true, later + 1));
        let back = LeaderRequest {
            role: "autoscaler".into(),
            holder: "a".into(),
            term: Millis(0),
            renews: true,
        };
        assert!(!leaders.ask(back, UnixMillis(later + 2)).leads);
        assert!(ask(&mut leaders, "b", false, later + 3), "it was given back");
    }
}
