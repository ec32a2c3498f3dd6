//! A scenario with one seed: every host its kind, every trial its cost, every length of time a number.

use super::{
    arrival::{Stays, Traced},
    bound::Bound,
    job::{SimJob, count},
    quantity::Span,
    scenario::{HostGroup, Preempted},
};
use sojourn_core::CoreConfig;
use sojourn_protocol::{ids::JobId, inventory::Device, time::Millis};
use sojourn_workgen::PolicyName;

/// Everything that a run needs to know beforehand.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) groups: Vec<HostGroup>,
    pub(crate) traced: Vec<Vec<Traced>>,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) hosts: Vec<Place>,
    /// In the order in which they are submitted.
    pub(crate) jobs: Vec<SimJob>,
    pub(crate) begun: u64,
    pub(crate) assimilation: u64,
    pub(crate) assimilators: u32,
    /// Hosts ask all together, once nobody has anything left to do.
    pub(crate) rounds: bool,
    pub(crate) milp_limit: Span,
    pub(crate) most_hops: Option<u32>,
    pub(crate) most_copied: Option<u32>,
    pub(crate) lease_term: u64,
    pub(crate) heartbeat: u64,
    pub(crate) longest_wait: u64,
    pub(crate) horizon: u64,
    pub(crate) bound: Bound,
    /// Remarks for people on what is hardly meant.
    pub(crate) remarks: Vec<String>,
}

/// Hosts of one group with the same processor.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    pub(crate) group: usize,
    pub(crate) name: String,
    /// Operations a second of one slot, in training, in the fastest of its numeric classes.
    pub(crate) flops: f64,
    /// The same in its common class.
    pub(crate) common_flops: f64,
    /// Factors on that, by job and cost.
    pub(crate) factors: Vec<Vec<f64>>,
    /// The device of which these hosts tell the server.
    pub(crate) device: Device,
}

/// One host's place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) kind: usize,
    /// In its group.
    pub(crate) number: u32,
}

impl Plan {
    /// Do the hops of the core's job really train?
    pub(crate) fn is_trained(&self, job: JobId) -> bool {
        self.job(job).is_some_and(|job| job.is_trained)
    }

    /// The core's job: it counts them from 1, in the order in which they were submitted.
    pub(crate) fn job(&self, job: JobId) -> Option<&SimJob> {
        self.jobs.get(usize::try_from(job.0.checked_sub(1)?).ok()?)
    }

    /// The core's settings under a policy.
    pub(crate) fn config(&self, policy: PolicyName) -> CoreConfig {
        let millis = |micros: u64| Millis(micros.div_ceil(1000));
        let never = Millis(u64::MAX / 4);
        let defaults = CoreConfig::with_lease_term(millis(self.lease_term));
        let term = defaults.assimilation_term;
        CoreConfig {
            // Assimilators don't die here.
            assimilation_term: Millis(term.0.saturating_add(millis(self.assimilation).0)),
            heartbeat_every: millis(self.heartbeat),
            longest_wait: millis(self.longest_wait),
            // Deleting old checkpoints has no influence on who trains what.
            condemn_after: never,
            most_hops: self.most_hops.or(defaults.most_hops),
            most_copied: self.most_copied.unwrap_or(defaults.most_copied),
            policy,
            ..defaults
        }
    }

    pub(crate) fn slots(&self, host: Place) -> u32 {
        let kind = self.kinds.get(host.kind);
        kind.and_then(|kind| self.groups.get(kind.group)).map_or(0, HostGroup::places)
    }

    /// How hosts of this kind are taken away while units run.
    pub(crate) fn preempted(&self, kind: usize) -> Option<Preempted> {
        self.groups.get(self.kinds.get(kind)?.group)?.preempted
    }

    /// A kind of host, for people: by its group's name, where that has one.
    pub(crate) fn named(&self, kind: &Kind) -> String {
        let group = self.groups.get(kind.group);
        match group.map_or("", |group| group.name.as_str()) {
            "" => kind.name.clone(),
            name if self.kinds.iter().filter(|other| other.group == kind.group).count() > 1 => {
                format!("{name}, {}", kind.name)
            }
            name => name.to_owned(),
        }
    }

    /// Operations a second of a slot of this kind at a trial of a job.
    pub(crate) fn speed(&self, kind: usize, job: usize, trial: usize) -> f64 {
        let Some(kind) = self.kinds.get(kind) else { return 1.0 };
        let cost = self.jobs.get(job).and_then(|job| job.trials.get(trial));
        let factor = cost.and_then(|cost| kind.factors.get(job)?.get(*cost));
        kind.flops * factor.copied().unwrap_or(1.0)
    }

    /// Microseconds for so many operations there.
    pub(crate) fn micros(&self, kind: usize, job: usize, trial: usize, flops: f64) -> f64 {
        flops / self.speed(kind, job, trial) * 1e6
    }

    /// When a host is there.
    pub(crate) fn stays(&self, host: usize) -> Option<Stays> {
        let place = self.hosts.get(host)?;
        let group = self.kinds.get(place.kind)?.group;
        let seed = [self.seed, count(group), place.number.into()];
        let traced = self.traced.get(group)?;
        Some(Stays::new(self.groups.get(group)?, traced, place.number, seed, self.begun))
    }
}
