//! How a job stands to its deadline.

use super::{Views, time_left::Remaining};
use sojourn_protocol::{
    figures::duration,
    time::{Millis, UnixMillis},
};
use sojourn_state::{Job, JobEnd};
use std::fmt;

impl Views<'_> {
    /// How a job that has a deadline stands to it. One that was cancelled or has failed neither kept nor missed it.
    pub(super) fn deadline(&self, job: &Job, left: Option<Remaining>) -> Option<String> {
        let deadline = job.spec.placement.deadline?;
        let ended = match job.end {
            None => None,
            Some((JobEnd::Finished, at)) => Some(at),
            Some((JobEnd::Cancelled | JobEnd::Failed, _)) => return None,
        };
        let due = job.submitted_at + deadline;
        let standing = DeadlineStanding::of(due, ended, left, self.now);
        Some(format!("{} after it was submitted: {standing}", duration(deadline.0)))
    }
}

/// How a job stands to its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeadlineStanding {
    /// The job has ended in time.
    Kept,
    /// The job has ended so much too late.
    Missed(Millis),
    /// The job goes on, so long after its deadline.
    Passed(Millis),
    /// The longest trial alone takes so long on the fastest device in contact: more hosts don't help.
    TrialTooLong {
        /// So long.
        takes: Millis,
        /// More than the time that is left by so much.
        late: Millis,
    },
    /// All its work takes so long on all slots in contact.
    TooFewSlots {
        /// So long.
        takes: Millis,
        /// More than the time that is left by so much.
        late: Millis,
        /// So many tenths of the slots in contact would keep it.
        tenths: u64,
    },
    /// By its hops so far it ends so much too late.
    Unlikely(Millis),
    /// So much time is left, and nothing says that it won't be kept.
    Open(Millis),
}

impl DeadlineStanding {
    /// The standing of a job that is to end at `due`. `left`: how long it has to go, where that is known.
    fn of(
        due: UnixMillis,
        ended: Option<UnixMillis>,
        left: Option<Remaining>,
        now: UnixMillis,
    ) -> Self {
        if let Some(ended) = ended {
            return if ended > due { Self::Missed(ended - due) } else { Self::Kept };
        }
        if now > due {
            return Self::Passed(now - due);
        }
        let time = due - now;
        let late = |takes: Millis| Millis(takes.0.saturating_sub(time.0));
        let Some(Remaining { longest, all, expected }) = left else { return Self::Open(time) };
        if longest > time {
            return Self::TrialTooLong { takes: longest, late: late(longest) };
        }
        if all > time {
            let tenths = all.0.saturating_mul(10).div_ceil(time.0.max(1));
            return Self::TooFewSlots { takes: all, late: late(all), tenths };
        }
        match expected.map(late) {
            Some(late) if late.0 > 0 => Self::Unlikely(late),
            _ => Self::Open(time),
        }
    }
}

impl fmt::Display for DeadlineStanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let long = |time: &Millis| duration(time.0);
        match self {
            Self::Kept => f.write_str("kept"),
            Self::Missed(late) => write!(f, "missed by {}", long(late)),
            Self::Passed(since) => write!(f, "passed {} ago", long(since)),
            Self::TrialTooLong { takes, late } => write!(
                f,
                "can't be kept: its longest trial alone takes {} on the fastest device in contact, {} too long; a faster device would \
                 help, more hosts would not",
                long(takes),
                long(late)
            ),
            Self::TooFewSlots { takes, late, tenths } => write!(
                f,
                "can't be kept by the hosts in contact: they need {} at least, {} too long; {}.{} times as many would keep it",
                long(takes),
                long(late),
                tenths / 10,
                tenths % 10
            ),
            Self::Unlikely(late) => {
                write!(f, "will be missed by about {} at the pace so far", long(late))
            }
            Self::Open(left) => write!(f, "in {}", long(left)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000;

    fn at(minute: u64) -> UnixMillis {
        UnixMillis(minute * MINUTE)
    }

    fn left(all: u64, longest: u64, expected: Option<u64>) -> Option<Remaining> {
        let minutes = |count: u64| Millis(count * MINUTE);
        let (longest, all) = (minutes(longest), minutes(all));
        Some(Remaining { longest, all, expected: expected.map(minutes) })
    }

    #[test]
    fn a_job_that_has_ended_says_whether_it_was_in_time() {
        let of = |ended| DeadlineStanding::of(at(60), Some(at(ended)), None, at(500)).to_string();
        assert_eq!(of(60), "kept");
        assert_eq!(of(72), "missed by 12 min");
    }

    #[test]
    fn before_the_end_it_is_said_what_would_keep_it() {
        let of = |left, now| DeadlineStanding::of(at(120), None, left, at(now)).to_string();
        assert_eq!(of(None, 0), "in 2.0 h");
        assert_eq!(of(left(50, 10, Some(100)), 0), "in 2.0 h");
        assert_eq!(
            of(left(100, 100, None), 80),
            "can't be kept: its longest trial alone takes 1.7 h on the fastest device in contact, 60 min too long; a faster device \
             would help, more hosts would not"
        );
        assert_eq!(
            of(left(100, 30, Some(130)), 60),
            "can't be kept by the hosts in contact: they need 1.7 h at least, 40 min too long; 1.7 times as many would keep it"
        );
        assert_eq!(
            of(left(40, 30, Some(75)), 60),
            "will be missed by about 15 min at the pace so far"
        );
        assert_eq!(of(left(1, 1, None), 121), "passed 60 s ago");
    }
}
