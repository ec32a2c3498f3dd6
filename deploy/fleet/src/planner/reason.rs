//! Why something is done, or isn't: as data, with a sentence for people.

use crate::limits::Limit;
use sojourn_protocol::{
    machines::{MachineName, Market},
    money::MicroUsd,
    time::Millis,
};
use std::fmt;

/// Why machines are bought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PurchaseReason {
    /// Units wait for slots.
    Work {
        /// The job.
        job: String,
        /// Slots that are of use and aren't there.
        slots: u32,
    },
    /// Fewer would be on demand than the owner wants.
    Floor {
        /// How many are wanted.
        floor: u32,
    },
    /// No spot machine can be had.
    Fallback {
        /// The job.
        job: String,
        /// Slots that are of use and aren't there.
        slots: u32,
        /// Since how long.
        after: Millis,
    },
    /// Without them a job would end too late.
    Deadline {
        /// The job.
        job: String,
        /// Slots that are of use and aren't there.
        slots: u32,
    },
    /// The machines replace one that costs more.
    Replacement {
        /// The machine that is replaced.
        of: MachineName,
        /// How it was bought.
        market: Market,
        /// The saving in an hour.
        saving: MicroUsd,
    },
}

impl fmt::Display for PurchaseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work { job, slots } => write!(f, "job `{job}` has work for {}", more(*slots)),
            Self::Floor { floor } => {
                write!(f, "{floor} machines are to be on demand while there is work")
            }
            Self::Fallback { job, slots, after } => write!(
                f,
                "job `{job}` has work for {}, and no spot machine could be had for {}",
                more(*slots),
                seconds(*after)
            ),
            Self::Deadline { job, slots } => write!(
                f,
                "job `{job}` would miss its deadline without {}, and no spot machine can be had",
                more(*slots)
            ),
            Self::Replacement { of, market: Market::OnDemand, saving } => {
                write!(
                    f,
                    "spot machines can be had again: it replaces `{of}` and saves {saving} an hour"
                )
            }
            Self::Replacement { of, market: Market::Spot, saving } => {
                write!(f, "prices have changed: it replaces `{of}` and saves {saving} an hour")
            }
        }
    }
}

fn more(slots: u32) -> String {
    if slots == 1 { "1 more slot".to_owned() } else { format!("{slots} more slots") }
}

fn seconds(time: Millis) -> Millis {
    Millis(time.0 / 1000 * 1000)
}

/// Why a machine is to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndReason {
    /// The machine has the fleet's tag and no name.
    Nameless,
    /// Another machine has its name.
    NameTaken,
    /// The machine has never enrolled at the server.
    NeverEnrolled {
        /// How long it had for that.
        within: Millis,
    },
    /// The server doesn't know it any more.
    HostEnded,
    /// The server hasn't heard of it.
    Silent {
        /// For how long.
        since: Millis,
    },
    /// The machine has given its units back.
    Stopped,
    /// The machine's time to give units back is over.
    DrainOver,
    /// The machine was to end and is still there.
    StillThere,
    /// The machine holds no unit, and there is none for it.
    Idle,
    /// Work that was to come for it hasn't.
    IdleTooLong {
        /// For how long.
        since: Millis,
    },
    /// Fewer slots are of use than there are, and it costs most for its work.
    Surplus,
    /// Another machine has replaced it.
    Replaced {
        /// The machine that has replaced it.
        by: MachineName,
    },
    /// The money for it ends.
    Money {
        /// Which limit.
        limit: Limit,
    },
    /// The fleet is past a limit: it was lowered.
    Over {
        /// The limit that the fleet is past.
        limit: Limit,
    },
}

impl EndReason {
    /// Did the machine fail?
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        matches!(
            self,
            Self::Nameless | Self::NameTaken | Self::NeverEnrolled { .. } | Self::Silent { .. }
        )
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nameless => f.write_str("it has the fleet's tag and no name"),
            Self::NameTaken => f.write_str("another machine has its name"),
            Self::NeverEnrolled { within } => {
                write!(f, "it hasn't enrolled within {within} of its launch")
            }
            Self::HostEnded => f.write_str("the server no longer has it as a host"),
            Self::Silent { since } => {
                write!(f, "the server hasn't heard of it for {}", seconds(*since))
            }
            Self::Stopped => f.write_str("it has given its units back"),
            Self::DrainOver => f.write_str("its time to give units back is over"),
            Self::StillThere => f.write_str("it was to end and is still there"),
            Self::Idle => f.write_str("it holds no unit, and there is none for it"),
            Self::IdleTooLong { since } => {
                write!(f, "it has held no unit for {}, and none came", seconds(*since))
            }
            Self::Surplus => {
                f.write_str("fewer slots are of use than there are, and it costs most for its work")
            }
            Self::Replaced { by } => write!(f, "`{by}` has replaced it"),
            Self::Money { limit } => {
                write!(f, "the limit of {} would be passed if it stayed", limit.name())
            }
            Self::Over { limit } => write!(f, "the fleet is past its limit of {}", limit.name()),
        }
    }
}

/// Why something wasn't done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The fleet was looked at too few times since the start.
    Settling,
    /// The price of a machine isn't known, so limits can't be kept with more.
    PriceUnknown {
        /// The machine.
        machine: MachineName,
    },
    /// Purchases pause after failures.
    Paused {
        /// For how long still.
        left: Millis,
    },
    /// A limit is reached.
    LimitReached {
        /// The job that had a use for more machines.
        job: String,
        /// The limit that is reached.
        limit: Limit,
        /// Slots that would be of use.
        slots: u32,
    },
    /// No type of machine has enough memory.
    NoType {
        /// The job.
        job: String,
        /// The model.
        model: String,
        /// Bytes that a unit takes.
        memory: u64,
    },
    /// No pool sells now: no capacity, no quota, or too dear.
    NoOffer {
        /// The job.
        job: String,
        /// Slots that would be of use.
        slots: u32,
    },
    /// Machines cost more than they will have to, by what they cost lately, and there is time until the deadline.
    Waits {
        /// The job.
        job: String,
        /// Slots that would be of use.
        slots: u32,
    },
    /// The job will end after its deadline.
    Late {
        /// The job.
        job: String,
        /// By how much, at least.
        by: Millis,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settling => {
                f.write_str("nothing is bought yet: the fleet is looked at once more")
            }
            Self::PriceUnknown { machine } => {
                write!(f, "nothing is bought: the price of `{machine}` isn't known")
            }
            Self::Paused { left } => {
                write!(f, "nothing is bought for {} after failures", seconds(*left))
            }
            Self::LimitReached { job, limit, slots } => write!(
                f,
                "job `{job}` has work for {}, and the limit of {} is reached",
                more(*slots),
                limit.name()
            ),
            Self::NoType { job, model, memory } => write!(
                f,
                "of the types that may be bought and have a price none has the {} MiB of memory for a unit of `{model}` of job `{job}`",
                memory.div_ceil(1 << 20)
            ),
            Self::NoOffer { job, slots } => write!(
                f,
                "job `{job}` has work for {}, and no pool sells a machine for it now",
                more(*slots)
            ),
            Self::Waits { job, slots } => write!(
                f,
                "job `{job}` has work for {}, and time to wait for lower prices",
                more(*slots)
            ),
            Self::Late { job, by } => {
                write!(f, "job `{job}` will miss its deadline by {} or more", seconds(*by))
            }
        }
    }
}
