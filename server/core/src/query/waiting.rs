//! Why jobs and trials don't go on, where they don't.

use super::{Views, progress::Progress};
use crate::leases::FREE_RELEASES;
use sojourn_protocol::{
    ids::HostId,
    manifest::DataSplit,
    money::MicroUsd,
    reason::{CooldownCause, WaitReason},
    spec::SearchMethod,
};
use sojourn_scheduling::{
    hosts::{HeldBack, workload_of},
    schedule::Verifiers,
};
use sojourn_state::{ExtraEvaluation, Host, Job, PendingVerification, Trial};
use std::collections::BTreeSet;

/// Millionths of a dollar in a cent.
const CENT: u64 = 10_000;

impl Views<'_> {
    /// Why nothing of a job goes on; `None` where something does.
    pub(crate) fn job_waits(&self, job: &Job) -> Option<WaitReason> {
        if !job.is_running() {
            return None;
        }
        if job.paused_at.is_some() {
            return Some(WaitReason::Paused { leases_live: job.counters.leases_live });
        }
        if let Some(until) = job.time_up_at().filter(|_| job.grace.is_some()) {
            let left = until - self.now;
            return Some(match job.used_up {
                Some((budget, _)) => WaitReason::UsedUp { budget, left },
                None => WaitReason::TimeUp(left),
            });
        }
        let testing = job.search_ended().then(|| {
            let mut extras = job.extras.iter();
            let waits = extras.find_map(|extra| self.requested_evaluation_waits(job, extra));
            waits.unwrap_or(WaitReason::Testing)
        });
        // Trials that the search holds back say nothing of the others.
        let mut others = job.trials.iter().filter(|trial| !trial.is_held());
        self.data_waits(job).or_else(|| {
            if job.counters.leases_live > 0 {
                return testing;
            }
            self.hosts_wait()
                .map(|reason| self.money_or(job, reason))
                .or(testing)
                .or_else(|| others.find_map(|trial| self.trial_waits(job, trial)))
                .or_else(|| self.budget_waits(job))
        })
    }

    /// Only bought machines are in contact, and the job's budget doesn't pay for another unit there.
    fn budget_waits(&self, job: &Job) -> Option<WaitReason> {
        let budget = job.spec.placement.budget?;
        self.planner.budgets().left(job.id)?;
        let mut hosts = self.eligible.live_hosts(None);
        let is_bought = |host| self.state.machine_of(host).is_some();
        hosts.all(is_bought).then(|| WaitReason::Budget { budget, hops: Progress::of(job).hops() })
    }

    /// Where no host is there, and machines have been bought for a job with a budget: how much of that is left.
    fn money_or(&self, job: &Job, reason: WaitReason) -> WaitReason {
        let left = self.planner.budgets().left(job.id);
        let known = job.spec.placement.budget.zip(left);
        let Some((budget, left)) = known.filter(|_| reason == WaitReason::NoHosts) else {
            return reason;
        };
        let hops = Progress::of(job).hops();
        // Less than a cent buys nothing.
        match left.cents() {
            0 => WaitReason::Budget { budget, hops },
            cents => WaitReason::NoPaidHosts { left: MicroUsd(cents * CENT), budget, hops },
        }
    }

    /// Why nothing of a job can be done: its data is lost.
    pub(crate) fn data_waits(&self, job: &Job) -> Option<WaitReason> {
        self.state.lost_data(job).map(WaitReason::LostBlob)
    }

    /// Why no host takes work, if none does.
    pub(crate) fn hosts_wait(&self) -> Option<WaitReason> {
        if self.storage.is_low() {
            return Some(WaitReason::Storage(*self.storage));
        }
        let mut cooldowns = self.hosts.cooldowns();
        if let Some((host, _)) = cooldowns.find(|(_, until)| *until > self.now) {
            let host = self.state.hosts.get(&host)?;
            let cause = match self.hosts.releases(host.id) {
                Some(history) if history.count >= FREE_RELEASES => {
                    CooldownCause::Releases(history.last_reason.clone())
                }
                _ => CooldownCause::Failures(host.last_error.clone()),
            };
            return Some(WaitReason::Cooldown { host: host.id, name: host.name.clone(), cause });
        }
        let sessions = self.hosts.sessions();
        let mut live = sessions
            .filter(|(host, session)| self.eligible.is_live(*host) && !session.has_stopped())
            .peekable();
        if live.peek().is_none() {
            return Some(WaitReason::NoHosts);
        }
        let is_admitted = |host: &HostId| self.state.hosts.get(host).is_some_and(Host::is_admitted);
        let mut live = live.filter(|(host, _)| is_admitted(host));
        let Some((_, first)) = live.next() else { return Some(WaitReason::BlockedHosts) };
        let all_full = first.disk_is_low && live.all(|(_, session)| session.disk_is_low);
        all_full.then_some(WaitReason::FullHosts)
    }

    /// Why an open evaluation outside the search isn't done, where that is known.
    pub(crate) fn requested_evaluation_waits(
        &self,
        job: &Job,
        extra: &ExtraEvaluation,
    ) -> Option<WaitReason> {
        match &extra.verification {
            Some(of) => self.verifier_waits(job, of),
            None => {
                let lends = |host| {
                    self.eligible.lends_disk_for(job, extra.name.split, extra.checkpoint, host)
                };
                let trial = job.trial(extra.name.trial);
                trial
                    .and_then(|trial| self.eligible.unsupported(trial, None))
                    .or_else(|| self.is_lent_by_nobody(lends).then_some(WaitReason::NoDisk))
            }
        }
    }

    /// Why a result that is verified waits, where no host could be asked.
    fn verifier_waits(&self, job: &Job, of: &PendingVerification) -> Option<WaitReason> {
        (!Verifiers::of(&self.eligible).has_next_verifier(of)).then(|| match of.is_unanimous() {
            false => WaitReason::NoVerifier,
            true if job.spec.placement.verifies_strangers() => WaitReason::Strangers,
            true => WaitReason::Unconfirmed,
        })
    }

    /// Why a trial without a numeric class doesn't begin: only strangers' hosts are in contact whose work nobody could confirm.
    fn strangers_wait(&self, job: &Job, trial: &Trial) -> Option<WaitReason> {
        let mut hosts = self.eligible.live_hosts(None).peekable();
        hosts.peek()?;
        (!hosts.any(|host| self.eligible.may_begin_on(job, trial, host)))
            .then_some(WaitReason::Strangers)
    }

    /// Why no evaluation of a trial is done: nobody in contact is of a numeric class in which its results could be confirmed.
    fn evaluation_waits(&self, job: &Job, trial: &Trial) -> Option<WaitReason> {
        let class = trial.class?;
        let mut hosts = self.eligible.live_hosts(None).peekable();
        let reason = match job.verified_quorum() {
            Some(_) => WaitReason::NoClass(class),
            None => hosts.peek().map(|_| WaitReason::Strangers)?,
        };
        (!hosts.any(|host| self.eligible.has_device_in(job, host, Some(class)))).then_some(reason)
    }

    /// Why a trial's next hop isn't trained, where the job fixes its replicas: none of the hosts that keep a next shard could.
    fn keepers_wait(&self, job: &Job, trial: &Trial) -> Option<WaitReason> {
        let replicas = self.data.replicas(job.id)?;
        let class = self.state.required_class(job, trial);
        let in_class: BTreeSet<HostId> = self.eligible.live_hosts(class).collect();
        let mut keepers = BTreeSet::new();
        for shard in trial.open_chain().next_shards() {
            for host in replicas.all(shard).filter(|host| in_class.contains(host)) {
                let could = !self.hosts.is_cooling_down(host, self.now)
                    && self.state.admits_host(job, host)
                    && self.eligible.could_train_shard(job, trial, shard, host);
                if could {
                    return None;
                }
                keepers.insert(host);
            }
        }
        let shard = trial.open_chain().next_shards().next()?;
        let hosts: Vec<HostId> = keepers.into_iter().collect();
        (!hosts.is_empty()).then_some(WaitReason::NoKeeper { shard, hosts })
    }

    /// Are hosts in contact, and does none of them lend the disk?
    fn is_lent_by_nobody(&self, lends: impl Fn(HostId) -> bool) -> bool {
        let mut hosts = self.eligible.live_hosts(None).peekable();
        hosts.peek().is_some() && !hosts.any(lends)
    }

    /// Is there something of a trial to do, and no host in contact that lends the disk for it?
    fn has_no_disk(&self, job: &Job, trial: &Trial) -> bool {
        let for_hops = |host| self.eligible.lends_disk_for_hops(job, trial, host);
        let evaluation = trial.open_evaluations().next();
        (trial.is_runnable() && self.is_lent_by_nobody(for_hops))
            || evaluation.is_some_and(|(_, evaluation)| {
                let checkpoint = evaluation.checkpoint;
                self.is_lent_by_nobody(|host| {
                    self.eligible.lends_disk_for(job, DataSplit::Valid, checkpoint, host)
                })
            })
    }

    /// Why nothing of a trial goes on, where that is known.
    pub(crate) fn trial_waits(&self, job: &Job, trial: &Trial) -> Option<WaitReason> {
        if trial.is_running() && job.paused_at.is_some() {
            return Some(WaitReason::JobPaused);
        }
        if trial.is_running()
            && let Some(lost) = self.state.blobs.first_lost(trial.blobs().map(|blob| blob.sha256))
        {
            return Some(WaitReason::LostCheckpoint(lost));
        }
        let waits = trial.incomplete_verifications();
        let waits = waits.filter_map(|of| self.verifier_waits(job, of));
        if let Some(reason) = waits.min_by_key(|reason| *reason != WaitReason::NoVerifier) {
            return Some(reason);
        }
        if trial.is_held() {
            return Some(match trial.chain.epochs() {
                0 => WaitReason::NotBegun,
                _ if matches!(job.spec.search.method, SearchMethod::Pbt(_)) => {
                    WaitReason::Generation
                }
                _ if matches!(job.spec.search.method, SearchMethod::Epochs { .. }) => {
                    WaitReason::Program
                }
                _ => WaitReason::Search,
            });
        }
        if !trial.is_runnable() && trial.open_evaluations().next().is_none() {
            return None;
        }
        if self.storage.is_low() {
            return Some(WaitReason::Storage(*self.storage));
        }
        let strikes = self.hosts.strikes();
        if strikes.limits(job.id)
            && let Some(held) = strikes.held_back(&workload_of(job.id, trial), self.now)
        {
            let HeldBack { hosts, until, error } = held;
            return Some(WaitReason::HeldBack { hosts, left: until - self.now, error });
        }
        let class = self.state.required_class(job, trial).filter(|_| trial.is_runnable());
        if let Some(reason) = self.eligible.unsupported(trial, class) {
            return Some(reason);
        }
        if self.eligible.fits_nowhere(job, trial) {
            return Some(WaitReason::NoMemory);
        }
        if self.has_no_disk(job, trial) {
            return Some(WaitReason::NoDisk);
        }
        if let Some(shard) =
            self.eligible.unplaced_shard(job, trial).filter(|_| trial.is_runnable())
        {
            return Some(WaitReason::NoReplicaSpace(shard));
        }
        if let Some(reason) = self.keepers_wait(job, trial).filter(|_| trial.is_runnable()) {
            return Some(reason);
        }
        let Some(class) = class else {
            let waits = || self.eligible.unproved(job).or_else(|| self.strangers_wait(job, trial));
            return if trial.is_runnable() { waits() } else { self.evaluation_waits(job, trial) };
        };
        let empty = self.eligible.live_hosts(Some(class)).next().is_none();
        empty.then_some(WaitReason::NoClass(class))
    }
}
