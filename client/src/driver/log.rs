//! The log lines about the agent's decisions.

use super::Driver;
use crate::trainers::runner::UnitRunner;
use sojourn_http::trace::UNITS;
use sojourn_protocol::{
    api::ReportAnswer,
    report::{ReportEnd, ReportState},
    text::plain_line,
};

/// Characters of the server's reason that are kept.
const MAX_REASON_CHARS: usize = 500;

impl<R: UnitRunner> Driver<R> {
    /// Logs the results of reports.
    pub(super) fn log_report_ends(&self, reports: &[ReportAnswer]) {
        for report in reports {
            let ReportState::Ended(end) = &report.state else { continue };
            let lease = report.lease;
            if self.agent.lease(lease).is_none() {
                continue;
            }
            let span = self.traces.span(lease);
            match end {
                ReportEnd::Assimilated { version } => {
                    tracing::debug!(target: UNITS, parent: &span, lease = lease.0, %version, "a result was used");
                }
                ReportEnd::Superseded => {
                    tracing::debug!(target: UNITS, parent: &span, lease = lease.0, "a result came too late");
                }
                // The report itself says that the unit failed.
                ReportEnd::Rejected { reason } if self.failed.contains(&lease) => {
                    tracing::debug!(target: UNITS, parent: &span, lease = lease.0, reason, "a failure was counted");
                }
                ReportEnd::Rejected { reason } => {
                    tracing::warn!(parent: &span, %lease, reason, "the server refused a result");
                }
            }
        }
    }

    /// The server has said why it gives this machine nothing, or no more. A new reason is logged.
    pub(super) fn note_waiting(&mut self, reason: Option<&str>) {
        let reason = reason.map(|reason| plain_line(reason, MAX_REASON_CHARS));
        if let Some(reason) =
            reason.as_ref().filter(|reason| self.waiting.as_ref() != Some(*reason))
        {
            tracing::warn!(reason, "the server has work, and none for this machine");
        }
        self.waiting = reason;
    }

    /// Forgets units without leases, and logs changes of slots and of the month's budget.
    pub(super) fn update(&mut self) {
        let agent = &self.agent;
        self.units.retain(|lease| agent.lease(lease).is_some());
        self.traces.retain(|lease| agent.lease(lease).is_some());
        self.failed.retain(|lease| agent.lease(*lease).is_some());
        for (index, device) in self.context.trainers.devices.iter().enumerate() {
            device.trainers.set_usable(agent.usable_slots(index));
        }
        let out_of_use = agent.slots_out_of_use();
        let minutes = sojourn_client_core::OUT_OF_USE.0 / 60_000_000;
        if out_of_use > self.out_of_use {
            tracing::error!(minutes, "a slot fails again and again; it is taken out of use");
        } else if out_of_use < self.out_of_use {
            tracing::info!("a slot is in use again");
        }
        self.out_of_use = out_of_use;
        let is_open = agent.is_budget_open();
        if let Some(until) = self.context.storage.usage.month_end().filter(|_| self.budget_open) {
            if !is_open {
                tracing::info!(%until, "the month's budget of bytes is used up; taking no work");
            }
        } else if is_open && !self.budget_open {
            tracing::info!("the month's budget has bytes again; taking work");
        }
        self.budget_open = is_open;
    }
}
