//! How the delivery of one result goes: what comes next, when, and when to give up.

use crate::{
    event::{CallError, ReportError, UploadError},
    retry::{self, Rng},
    time::Micros,
};

/// How often a report may be refused for want of its checkpoint.
const MAX_CONFLICTS: u8 = 5;
/// How often a result's file may be unreadable for no reason that says that it is lost. A program that is ending
/// meets such errors; its results must survive it.
const MAX_UNREADABLE: u8 = 5;
/// How much longer than others the pauses grow while something before the server refuses a checkpoint: each attempt
/// sends all of it again, and only a person can change it.
const REFUSED_PAUSE_FACTOR: u64 = 20;

/// How far the delivery of a result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivery {
    pub(crate) next: DeliveryStep,
    /// The earliest time of the next step.
    pub(crate) due: Micros,
    /// Attempts that failed.
    attempts: u32,
    /// Attempts that something before the server refused.
    refusals: u32,
    conflicts: u8,
    unreadable: u8,
}

/// The next step of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum DeliveryStep {
    /// Send the checkpoint from its first byte on.
    #[default]
    Upload,
    /// Ask how much of the checkpoint the server has, and send the rest.
    Locate,
    /// Make the report.
    Report,
}

/// Why a delivery is given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GivenUp {
    NotWanted(String),
    FileLost(String),
}

/// When to try again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    pub(crate) now: Micros,
    /// The longest pause.
    pub(crate) max_pause: Micros,
}

impl Delivery {
    /// Was the server asked so often that it must have another report?
    pub(crate) const fn is_contested(&self) -> bool {
        self.conflicts > 1
    }

    /// An upload broke off.
    pub(crate) fn upload_failed(
        mut self,
        error: UploadError,
        clock: Clock,
        rng: &mut Rng,
    ) -> Result<Self, GivenUp> {
        self.next = DeliveryStep::Locate;
        match error {
            UploadError::Later(call) => Ok(self.later(call, clock, rng)),
            UploadError::RefusedOnTheWay(CallError { retry_after }) => {
                let max = Micros(clock.max_pause.0.saturating_mul(REFUSED_PAUSE_FACTOR));
                self.due = clock.now + retry::pause(self.refusals, max, retry_after, rng);
                self.refusals = self.refusals.saturating_add(1);
                Ok(self)
            }
            UploadError::Unreadable(reason) if self.unreadable >= MAX_UNREADABLE => {
                Err(GivenUp::FileLost(reason))
            }
            UploadError::Unreadable(_) => {
                self.unreadable += 1;
                Ok(self.later(CallError::default(), clock, rng))
            }
            UploadError::Lost(reason) => Err(GivenUp::FileLost(reason)),
            UploadError::NotWanted(reason) => Err(GivenUp::NotWanted(reason)),
        }
    }

    /// A report was not taken.
    pub(crate) fn report_failed(
        mut self,
        error: ReportError,
        has_checkpoint: bool,
        clock: Clock,
        rng: &mut Rng,
    ) -> Result<Self, GivenUp> {
        match error {
            ReportError::NoAnswer(call) => {
                self.next = DeliveryStep::Report;
                Ok(self.later(call, clock, rng))
            }
            ReportError::UploadMissing(_) if has_checkpoint && self.conflicts < MAX_CONFLICTS => {
                self.conflicts += 1;
                (self.next, self.due) = (DeliveryStep::Locate, clock.now);
                Ok(self)
            }
            ReportError::UploadMissing(reason) | ReportError::NotWanted(reason) => {
                Err(GivenUp::NotWanted(reason))
            }
        }
    }

    fn later(mut self, call: CallError, clock: Clock, rng: &mut Rng) -> Self {
        self.due = clock.now + retry::pause(self.attempts, clock.max_pause, call.retry_after, rng);
        self.attempts = self.attempts.saturating_add(1);
        self
    }
}
