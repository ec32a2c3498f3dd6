//! The whole server in numbers, for monitoring: counted anew for each query, in one pass over trials, hosts and leases.

use super::{Views, progress::Progress};
use crate::{
    figures::{
        Counts, Figures, HostStatus, JobFigures, JobStatus, LeaseStage, MAX_JOB_FIGURES,
        NoWorkReason, SlotFigures, TrialStatus, UnitKind,
    },
    leases::FREE_RELEASES,
};
use sojourn_protocol::{
    ids::{HostId, LeaseId},
    quantity::to_u64,
    reason::IdleReason,
    view::HostState,
};
use sojourn_state::{Costs, Host, Job, JobEnd, Lease, Trial, TrialEnd};
use std::collections::BTreeMap;

impl Views<'_> {
    /// The figures of this moment.
    pub(crate) fn figures(&self) -> Figures {
        let state = self.state;
        let costs = state.costs(self.now);
        let jobs = || state.jobs.values();
        let running = jobs().filter(|job| job_status(job) == JobStatus::Running);
        let ready = jobs().filter(|job| job.paused_at.is_none()).map(Job::supply);
        let hosts = || state.hosts.values();
        Figures {
            started_at: self.clock.started_at(),
            position: state.position,
            jobs: jobs().map(job_status).collect(),
            trials: jobs().flat_map(|job| &job.trials).map(trial_status).collect(),
            hosts: hosts().map(|host| self.host_status(host)).collect(),
            without_work: hosts().filter_map(|host| self.no_work_reason(host)).collect(),
            slots: self.slot_figures(),
            leases: self.lease_counts(),
            speculative_leases: to_u64(
                state.leases.values().filter(|lease| lease.speculative_for.is_some()).count(),
            ),
            ready_units: to_u64(ready.sum()),
            assimilation: self.assimilations(),
            blobs: to_u64(state.blobs.count()),
            lost_blobs: to_u64(state.blobs.all_lost().count()),
            spent: costs.total().paid,
            running_jobs: running
                .take(MAX_JOB_FIGURES)
                .map(|job| job_figures(job, &costs))
                .collect(),
            totals: self.totals.clone(),
            plans: self.planner.counts(),
        }
    }

    fn host_status(&self, host: &Host) -> HostStatus {
        match self.host_state(host) {
            HostState::Live => HostStatus::Live,
            HostState::Away => HostStatus::Away,
            HostState::Resting { .. } => HostStatus::Cooldown,
            HostState::Revoked => HostStatus::Revoked,
        }
    }

    /// Why a host gets nothing, where it would ask for work.
    fn no_work_reason(&self, host: &Host) -> Option<NoWorkReason> {
        match self.host_state(host) {
            HostState::Away | HostState::Revoked => None,
            HostState::Resting { .. } => {
                let releases = self.hosts.releases(host.id).map_or(0, |history| history.count);
                Some(match releases >= FREE_RELEASES {
                    true => NoWorkReason::Releases,
                    false => NoWorkReason::Failures,
                })
            }
            HostState::Live => {
                if self.hosts.session(host.id).is_some_and(|session| session.disk_is_low) {
                    return Some(NoWorkReason::DiskIsLow);
                }
                Some(match self.idle_reason(host)? {
                    IdleReason::AloneInClass => NoWorkReason::AloneInClass,
                    IdleReason::TooLittleDisk => NoWorkReason::TooLittleDisk,
                    IdleReason::NoEngine { .. } => NoWorkReason::NoEngine,
                })
            }
        }
    }

    fn slot_figures(&self) -> SlotFigures {
        let mut running: BTreeMap<HostId, u64> = BTreeMap::new();
        for lease in self.state.leases.values() {
            if self.leases.deadline(lease.id).is_some_and(|deadline| deadline.is_running()) {
                *running.entry(lease.host).or_default() += 1;
            }
        }
        let mut figures = SlotFigures::default();
        for (id, session) in self.hosts.sessions() {
            let known = self.state.hosts.get(&id);
            if known.is_none_or(|host| host.revoked) || !self.eligible.is_live(id) {
                continue;
            }
            let slots = u64::from(session.slots);
            let busy = running.get(&id).copied().unwrap_or(0).min(slots);
            figures.busy += busy;
            figures.idle += slots - busy;
            for device in session.devices.values().filter(|device| device.count > 0) {
                let flops = self.training_flops(id, device).saturating_mul(device.count.into());
                figures.flops = figures.flops.saturating_add(flops);
            }
        }
        figures
    }

    fn lease_counts(&self) -> Counts<(UnitKind, LeaseStage)> {
        let live = self.state.leases.values();
        let live = live.map(|lease| (UnitKind::of(&lease.unit), self.lease_stage(lease.id)));
        let provisional =
            self.leases.provisional().all().filter_map(|(_, provisional)| provisional);
        let provisional = provisional.map(|provisional| {
            let Lease { unit, .. } = &provisional.lease;
            (UnitKind::of(unit), LeaseStage::Provisional)
        });
        live.chain(provisional).collect()
    }

    fn lease_stage(&self, lease: LeaseId) -> LeaseStage {
        match self.leases.deadline(lease) {
            Some(deadline) if deadline.is_finished() => LeaseStage::Uploading,
            Some(deadline) if deadline.started => LeaseStage::Running,
            _ => LeaseStage::Waiting,
        }
    }
}

fn job_status(job: &Job) -> JobStatus {
    match job.end {
        None if job.paused_at.is_some() => JobStatus::Paused,
        None => JobStatus::Running,
        Some((JobEnd::Finished, _)) => JobStatus::Finished,
        Some((JobEnd::Failed, _)) => JobStatus::Failed,
        Some((JobEnd::Cancelled, _)) => JobStatus::Cancelled,
    }
}

fn trial_status(trial: &Trial) -> TrialStatus {
    match &trial.end {
        None if trial.is_held() => TrialStatus::Held,
        None => TrialStatus::Running,
        Some(TrialEnd::Finished) => TrialStatus::Finished,
        Some(TrialEnd::Failed(_)) => TrialStatus::Failed,
        Some(TrialEnd::Cancelled) => TrialStatus::Cancelled,
    }
}

fn job_figures(job: &Job, costs: &Costs) -> JobFigures {
    let progress = Progress::of(job);
    JobFigures {
        job: job.id,
        leases: job.counters.leases_live,
        hops: progress.hops,
        expected_hops: progress.expected_hops,
        budget: job.spec.placement.budget,
        spent: costs.of_job(job.id).paid,
    }
}
