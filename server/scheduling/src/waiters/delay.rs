//! Delay scheduling: when a host is offered again what it left to others (Zaharia et al., EuroSys 2010).

use sojourn_protocol::{ids::HostId, time::UnixMillis};
use std::collections::{BTreeMap, BTreeSet};

/// By host, the soonest time at which it is to be offered work again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DelayTimers {
    at: BTreeMap<HostId, UnixMillis>,
    by_time: BTreeSet<(UnixMillis, HostId)>,
}

impl DelayTimers {
    /// Offers a host work again then, or before.
    pub fn at(&mut self, at: UnixMillis, host: HostId) {
        match self.at.insert(host, at) {
            Some(before) if before <= at => {
                self.at.insert(host, before);
                return;
            }
            Some(before) => {
                self.by_time.remove(&(before, host));
            }
            None => {}
        }
        self.by_time.insert((at, host));
    }

    /// Takes out the hosts whose time has come.
    pub fn take_due(&mut self, now: UnixMillis) -> Vec<HostId> {
        let mut due = Vec::new();
        while let Some((at, host)) = self.by_time.first().copied().filter(|(at, _)| *at <= now) {
            self.by_time.remove(&(at, host));
            self.at.remove(&host);
            due.push(host);
        }
        due
    }

    /// Forgets all: every host is looked at now.
    pub fn clear(&mut self) {
        self.at.clear();
        self.by_time.clear();
    }

    /// When the first one's time comes.
    pub fn first(&self) -> Option<UnixMillis> {
        self.by_time.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soonest_time_of_each_host_counts() {
        let mut look = DelayTimers::default();
        let [a, b] = [HostId(1), HostId(2)];
        look.at(UnixMillis(30), a);
        look.at(UnixMillis(20), b);
        look.at(UnixMillis(10), a);
        look.at(UnixMillis(40), a);
        assert_eq!(look.first(), Some(UnixMillis(10)));
        assert_eq!(look.take_due(UnixMillis(9)), []);
        assert_eq!(look.take_due(UnixMillis(20)), [a, b]);
        assert_eq!(look, DelayTimers::default());
        look.at(UnixMillis(5), b);
        look.clear();
        assert_eq!(look.take_due(UnixMillis(9)), []);
    }
}
