//! A trial that runs on a host.

use crate::{cpu_share::CpuShare, history::History};
use sojourn_protocol::{
    cpu_shares::{Carried, List},
    quantity::Micros,
};

/// An estimate of how long a trial takes on this host with all of the processor that is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    /// From its beginning to its end.
    pub whole: Option<Micros>,
    /// From now on.
    pub remaining: Option<Micros>,
}

/// A trial that runs here.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member {
    pub(crate) list: List,
    pub(crate) cpu_share: CpuShare,
    /// When it came, or last went from list to list or could have.
    pub(crate) classified: Micros,
    /// Has it ever had a growth efficiency?
    pub(crate) is_known: bool,
    pub(crate) history: History,
    pub(crate) estimate: Estimate,
}

impl Member {
    pub(crate) fn new(now: Micros, window: Micros, carried: &Carried) -> Self {
        Self {
            list: carried.list,
            cpu_share: CpuShare::FULL,
            classified: now,
            is_known: false,
            history: History::new(window, carried),
            estimate: Estimate::default(),
        }
    }
}
