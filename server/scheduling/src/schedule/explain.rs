//! Why a device got a unit: kept as numbers during the decision, and written as text for the grant.

use sojourn_protocol::{
    ids::{HostId, LeaseId},
    manifest::DataSplit,
    quantity::Micros,
};
use sojourn_workgen::{DataLocality, NEXT_BY_ORDER, PolicyReason, locality_text};
use std::fmt::{self, Write as _};

/// Bytes that the text of most grants takes.
const USUAL_BYTES: usize = 160;

/// Why a unit was chosen for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantReason {
    /// A policy chose it.
    Policy(PolicyReason),
    /// The trial is first in depth. `begins`: nothing of it is trained yet.
    Depth { begins: bool },
    /// The trial is the longest: it would otherwise end when the other slots have nothing left.
    Critical,
    /// The hop was planned there.
    Planned(PlannedStep),
    /// An evaluation: more of them wait than twice the slots.
    Backlog(usize),
    /// An evaluation: the host has trained what is evaluated.
    Own,
    /// An evaluation: there is no hop for the device.
    NoHop,
    /// A second copy of a running hop.
    Speculation(Speculation),
    /// A result is checked: the host is to come to the same.
    Verification(LeaseId),
    /// Somebody asked for this evaluation, outside the search.
    Requested(DataSplit),
}

/// A hop of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedStep {
    /// The hop's number among the plan's hops, from 1.
    pub step: u64,
    /// How many these are.
    pub steps: u64,
    /// Microseconds from its planned start to now, and from now to it: one of them is 0.
    pub late: u64,
    pub early: u64,
    /// How the shard stands to the device.
    pub standing: DataLocality,
    /// Does the shard come next by the fixed order of the trial's visits?
    pub is_fixed: bool,
}

/// The lease that a speculative lease repeats, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speculation {
    pub lease: LeaseId,
    pub host: HostId,
    /// Microseconds until that one should end.
    pub ends: u64,
    pub straggler: Straggler,
    /// The host is still fetching: as long as it has not begun, nothing is done twice.
    pub is_fetching: bool,
}

/// Why a running hop is expected to end late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Straggler {
    /// The hop's host hasn't been heard of for so many microseconds.
    Silent(u64),
    /// The hop should have ended so many microseconds ago.
    Late(u64),
    /// The hop's host is slower, or breaks deadlines.
    Slow,
}

impl fmt::Display for Speculation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lease, host, ends, straggler, is_fetching } = *self;
        write!(f, "second copy of lease {lease}, for which its trial waits: host {host} ")?;
        match straggler {
            Straggler::Silent(micros) => write!(f, "hasn't been heard of for {}", Micros(micros))?,
            Straggler::Late(micros) => write!(f, "is late by {}", Micros(micros))?,
            Straggler::Slow => write!(f, "should take another {}", Micros(ends))?,
        }
        if is_fetching { f.write_str(" and is still fetching") } else { Ok(()) }
    }
}

impl fmt::Display for GrantReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GrantReason::Policy(why) => why.fmt(f),
            GrantReason::Depth { begins: false } => {
                write!(f, "depth: of the trials that have begun and wait, it has the least left")
            }
            GrantReason::Depth { begins: true } => {
                write!(f, "depth: no trial that has begun waits, so the next one begins")
            }
            GrantReason::Critical => write!(
                f,
                "depth: the longest, which would end last: on the fastest slot it takes about as long as all trials on all slots"
            ),
            GrantReason::Planned(PlannedStep { step, steps, late, early, standing, is_fixed }) => {
                write!(f, "rollout: step {step} of the plan's {steps}, planned here")?;
                match (late, early) {
                    (0..1_000, 0..1_000) => write!(f, " for now")?,
                    (0, early) => write!(f, " for {} from now", Micros(*early))?,
                    (late, _) => write!(f, " for {} ago", Micros(*late))?,
                }
                write!(f, "; {}", locality_text(*standing))?;
                if *is_fixed { write!(f, ", {NEXT_BY_ORDER}") } else { Ok(()) }
            }
            GrantReason::Backlog(waiting) => {
                write!(f, "evaluation: {waiting} wait, more than twice the slots")
            }
            GrantReason::Own => {
                write!(f, "evaluation: trained here, and the search is to know before it goes on")
            }
            GrantReason::NoHop => write!(f, "evaluation: there is no hop for this place"),
            GrantReason::Speculation(speculation) => speculation.fmt(f),
            GrantReason::Verification(lease) => {
                write!(
                    f,
                    "check of lease {lease}: another host of the class is to come to the same result"
                )
            }
            GrantReason::Requested(split) => {
                write!(f, "evaluation on the {} data, which was asked for", split.name())
            }
        }
    }
}

/// A reason with the circumstances of the grant.
pub struct Explanation {
    /// The reason of the grant.
    pub reason: GrantReason,
    /// Hops under the lease.
    pub hops: usize,
    /// Microseconds that it should take.
    pub takes: u64,
    /// Idle slots of other hosts that wait.
    pub others: usize,
}

impl Explanation {
    /// The words, in memory that is taken once: every grant has some.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(USUAL_BYTES);
        // A string takes whatever is written to it.
        let _ = write!(text, "{self}");
        text
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)?;
        if self.hops > 1 {
            write!(f, "; {} hops in a row", self.hops)?;
        }
        write!(f, "; should take {}", Micros(self.takes))?;
        match self.others {
            0 => Ok(()),
            1 => write!(f, "; 1 slot of another host was idle, too"),
            others => write!(f, "; {others} slots of other hosts were idle, too"),
        }
    }
}
