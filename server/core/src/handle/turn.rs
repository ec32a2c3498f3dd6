//! Whose turn it is: jobs of higher priority first, those of one priority in fair shares of slot time.

use crate::{
    core::Core,
    shares::Shares,
    state::{Job, Lease},
};
use sojourn_protocol::ids::{HostId, JobId};

impl Core {
    /// Jobs that may have units, in the order in which the next slot is offered to them.
    pub(crate) fn by_turn(&self) -> Vec<&Job> {
        let open = self.state.jobs.values().filter(|job| job.is_open() || job.has_open_extras());
        let mut jobs: Vec<&Job> = open.collect();
        jobs.sort_by_key(|job| {
            let priority = job.spec.placement.priority;
            let tag = self.soft.shares.get(&priority).map_or(0, |shares| shares.tag(job.id));
            (std::cmp::Reverse(priority), tag, job.id)
        });
        jobs
    }

    /// May one more unit of the job go to that host?
    pub(crate) fn may_employ(&self, job: &Job, host: HostId) -> bool {
        let Some(most) = job.spec.placement.max_hosts else { return true };
        job.hosts.contains_key(&host) || u32::try_from(job.hosts.len()).is_ok_and(|has| has < most)
    }

    /// Slot time of jobs of the same priority as this one.
    pub(crate) fn shares_of(&mut self, job: JobId) -> &mut Shares {
        let priority = self.priority(job);
        self.soft.shares.entry(priority).or_default()
    }

    /// Slot time as it counts for a job: half for one that has twice the share of others.
    pub(crate) fn weighed(&self, job: JobId, micros: u64) -> u64 {
        let share = self.state.jobs.get(&job).map_or(1, |job| job.spec.placement.share);
        micros / u64::from(share.max(1))
    }

    /// A lease ends without anything that could be used: its slot can't have been at it for longer than it was
    /// held, nor is what was lost the job's doing.
    pub(crate) fn settle_held(&mut self, lease: &Lease) {
        let job = lease.unit.job();
        let held = (self.now - lease.granted_at).0.saturating_mul(1000);
        let held = self.weighed(job, held);
        let shares = self.shares_of(job);
        let counted = shares.counted(lease.id);
        shares.settle(job, lease.id, held.min(counted));
    }

    /// Jobs whose turn was before that of the job that gets the slot could not use it.
    pub(crate) fn pass_over_before(&mut self, chosen: JobId) {
        let priority = self.priority(chosen);
        let shares = self.soft.shares.entry(priority).or_default();
        let tag = shares.tag(chosen);
        for job in self.state.jobs.values() {
            let open = job.is_open() || job.has_open_extras();
            if open && job.spec.placement.priority == priority && shares.tag(job.id) < tag {
                shares.pass_over(job.id, tag, job.supply() > 0);
            }
        }
    }

    fn priority(&self, job: JobId) -> i32 {
        self.state.jobs.get(&job).map_or(0, |job| job.spec.placement.priority)
    }
}
