//! Where a trial stays, in jobs whose trials stay on hosts.

use super::{FoldFault, Lease, State, Trial, is_default};
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    ids::{HostId, JobId, TrialId},
    residency::{Category, MoveKind},
    time::UnixMillis,
};

/// Where a trial stays, and what looks at its loss have shown. All but the host goes with it from host to host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Residence {
    /// The trial's host; none before its first hop, and while the search holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostId>,
    /// How far it seems to be.
    #[serde(default, skip_serializing_if = "is_default")]
    pub category: Category,
    /// Since when it has counted as converged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub converged_at: Option<UnixMillis>,
    /// Has it used its one speculative move?
    #[serde(default, skip_serializing_if = "is_default")]
    pub has_moved: bool,
    /// Has it been moved to rebalance the hosts, or for what they have left to do?
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_rebalanced: bool,
}

impl Trial {
    /// The host on which it stays.
    #[must_use]
    pub fn home(&self) -> Option<HostId> {
        self.residence.as_ref()?.host
    }

    fn residence_mut(&mut self) -> &mut Residence {
        self.residence.get_or_insert_default()
    }

    /// The trial goes on after it had nothing left to train: its host may have taken another trial meanwhile.
    pub(super) fn leave_home_if_done(&mut self) {
        if let Some(residence) = self.residence.as_mut().filter(|_| self.chain.is_done()) {
            residence.host = None;
        }
    }
}

impl State {
    /// A hop was granted: from now on its trial stays on that host, where those of its job do.
    pub(super) fn settle_trial(&mut self, lease: &Lease) -> Result<(), FoldFault> {
        let Some(hop) = lease.unit.hop().filter(|_| lease.speculative_for.is_none()) else {
            return Ok(());
        };
        let job = self.known_job_mut(hop.job)?;
        // Who verifies a hop isn't where its trial stays.
        let verifies = job.verification_of(&lease.unit).is_some();
        if job.spec.placement.residency.keeps_trials() && !verifies {
            self.known_trial_mut(hop.job, hop.trial)?.residence_mut().host = Some(lease.host);
        }
        Ok(())
    }

    /// A look has put a trial into a category.
    pub(super) fn trial_categorized(
        &mut self,
        (job, trial): (JobId, TrialId),
        category: Category,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        let residence = self.known_trial_mut(job, trial)?.residence_mut();
        residence.category = category;
        residence.converged_at = (category == Category::Converged).then_some(at);
        Ok(())
    }

    /// A trial stays on another host from now on; on the same one where a move was weighed and none was better, which counts as one.
    pub(super) fn trial_moved(
        &mut self,
        (job, trial): (JobId, TrialId),
        to: HostId,
        kind: MoveKind,
    ) -> Result<(), FoldFault> {
        self.known_host(to)?;
        let residence = self.known_trial_mut(job, trial)?.residence_mut();
        residence.host = Some(to);
        match kind {
            MoveKind::Speculative => residence.has_moved = true,
            MoveKind::Rebalance | MoveKind::Remaining => residence.is_rebalanced = true,
        }
        Ok(())
    }
}
