//! The cloud's notices that this machine will be preempted. All clouds have their metadata service at the same address; the
//! daemon finds out which one answers.
//!
//! | cloud | request | time before preemption |
//! |---|---|---|
//! | [AWS](aws) | `spot/instance-action`, `events/recommendations/rebalance` | two minutes; not announced |
//! | [GCP](gcp) | `instance/preempted`, `instance/maintenance-event` | 30 seconds; a minute or more |
//! | [Azure](azure) | `scheduledevents` | 30 seconds or more |

mod aws;
mod azure;
mod cloud;
mod gcp;
mod service;
mod watch;

pub(crate) use service::Service;
pub(crate) use watch::Watch;

use jiff::Timestamp;
use std::time::Duration;
use tokio::time::Instant;

/// A cloud's announcement that this machine ends. Equal as long as the cloud announces the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Announcement {
    /// The cloud's name for it.
    pub(crate) what: String,
    pub(crate) when: When,
}

/// When a machine is preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Unknown: preemption has only become likelier.
    Unknown,
    /// So long after the first announcement.
    Within(Duration),
    /// At this time by the cloud's clock. It is announced at most `at_most` before, which bounds the error of this machine's
    /// clock.
    At { time: Timestamp, at_most: Duration },
}

/// A preemption notice. It holds a steady instant, so that later changes of the clock don't matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// The cloud's name for it.
    pub(crate) what: String,
    ends: Option<Instant>,
}

impl Announcement {
    /// The notice of an announcement that is first seen at `now`, when the machine's clock shows `clock`.
    pub(crate) fn notice(&self, now: Instant, clock: Timestamp) -> Notice {
        let left = match self.when {
            When::Unknown => None,
            When::Within(left) => Some(left),
            When::At { time, at_most } => {
                // A time in the past: preemption may come at any moment.
                let left = Duration::try_from(time.duration_since(clock)).unwrap_or_default();
                Some(left.min(at_most))
            }
        };
        Notice { what: self.what.clone(), ends: left.map(|left| now + left) }
    }
}

impl Notice {
    /// How long the machine has yet, where that is known.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.left_at(Instant::now())
    }

    fn left_at(&self, now: Instant) -> Option<Duration> {
        Some(self.ends?.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;

    #[test]
    fn a_clock_that_is_wrong_or_jumps_gives_no_more_time_than_there_is() {
        let (start, clock) =
            (Instant::now(), Timestamp::UNIX_EPOCH + SignedDuration::from_hours(9));
        let (seconds, day) = (Duration::from_secs, SignedDuration::from_hours(24));
        let time = clock + SignedDuration::from_secs(100);
        let announcement = Announcement {
            what: "stop".to_owned(),
            when: When::At { time, at_most: seconds(120) },
        };
        for (shown, left) in [(clock, 100), (clock - day, 120), (clock + day, 0)] {
            let notice = announcement.notice(start, shown);
            assert_eq!(notice.left_at(start), Some(seconds(left)), "{shown}");
            // Whatever the clock shows then.
            let later = start + seconds(60);
            assert_eq!(notice.left_at(later), Some(seconds(left).saturating_sub(seconds(60))));
        }
        let within = Announcement { what: "preempted".to_owned(), when: When::Within(seconds(30)) };
        assert_eq!(within.notice(start, clock + day).left_at(start), Some(seconds(30)));
        let likely = Announcement { what: "rebalance".to_owned(), when: When::Unknown };
        assert_eq!(likely.notice(start, clock).left_at(start), None);
    }
}
