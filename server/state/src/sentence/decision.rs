//! Events that are decisions, with their reasons: `sojourn events --why` prints these.

use super::{lease, text::brief};
use crate::{Event, UnitKey};
use sojourn_protocol::spec::CpuSharePolicy;

impl Event {
    /// The decision with its reason, where the event is one: a grant of a lease, or a decision of the search. `cpu_shares`: by which
    /// policy of the job hosts divide their processors among its trials.
    #[must_use]
    pub fn decision(&self, cpu_shares: CpuSharePolicy) -> Option<String> {
        match self {
            Self::LeaseGranted { lease, host, unit, then, why, .. } => {
                // Evaluations have an equal CPU share.
                let is_divided =
                    cpu_shares != CpuSharePolicy::Equal && matches!(unit, UnitKey::Train { .. });
                let cpu_shares = match is_divided {
                    true => format!("; shares: {}", cpu_shares.name()),
                    false => String::new(),
                };
                let unit = lease::unit(unit, then);
                Some(format!("lease {lease} to host {host}: {unit}: {}{cpu_shares}", brief(why)))
            }
            Self::TrialsAdded { .. }
            | Self::TrialContinued { .. }
            | Self::TrialRetried { .. }
            | Self::TrialStopped { .. }
            | Self::SearchEnded { .. }
            | Self::SpaceChanged { .. }
            | Self::TrialCategorized { .. }
            | Self::TrialMoved { .. } => self.sentence(),
            _ => None,
        }
    }
}
