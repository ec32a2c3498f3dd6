//! Time that doesn't count: no server is known to have been active then, or a clock was wrong. Whatever ends by the length of
//! time that has passed is moved by it, so that no step of a clock ends anything.

use super::{Host, Job, State};
use sojourn_protocol::time::{Millis, UnixMillis};

impl State {
    /// Moves the ends of wall times, of blobs' grace periods, and of the memory of ended leases; and when hosts were heard of.
    pub(super) fn skip_time(&mut self, skipped: Millis) {
        self.jobs.values_mut().for_each(|job| job.skip_time(skipped));
        self.blobs.skip_time(skipped);
        self.hosts.values_mut().for_each(|host| host.skip_time(skipped));
        let past_order = std::mem::take(&mut self.past_order);
        self.past_order = past_order.into_iter().map(|(at, lease)| (at + skipped, lease)).collect();
        for (forget_at, lease) in &self.past_order {
            if let Some(past) = self.past.get_mut(lease) {
                past.forget_at = *forget_at;
            }
        }
    }
}

impl Host {
    /// The host wasn't away for longer. The time of a host that was never heard of begins when that is noted.
    fn skip_time(&mut self, skipped: Millis) {
        if self.seen_at > UnixMillis(0) {
            self.seen_at = self.seen_at + skipped;
        }
    }
}

impl Job {
    /// A pause, or the time after its end, has the skipped time in it already.
    fn skip_time(&mut self, skipped: Millis) {
        if self.end.is_none() && self.paused_at.is_none() {
            self.paused_for = Millis(self.paused_for.0.saturating_add(skipped.0));
        }
    }
}
