//! What hosts keep in their caches: shards to fetch before they are needed, and blobs that nobody will need.

use crate::{core::Core, state::Job};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::HostId,
    time::Millis,
};
use std::{cmp::Reverse, collections::BTreeSet};

/// Shards that a host fetches ahead at a time.
const AHEAD: usize = 2;
/// The data of a job that has ended stays in caches for so long: it may be extended, or evaluated.
const KEEP: Millis = Millis::from_secs(24 * 3600);

impl Core {
    /// Shards for a host that had nothing to do for as long as it waited: those that most trials have yet to
    /// visit. None while it has some to fetch.
    pub(crate) fn fetch_ahead(&mut self, host: HostId) -> Vec<BlobRef> {
        let Some(contact) = self.soft.contacts.get(&host) else { return Vec::new() };
        let due = self.soft.ahead.entry(host).or_default();
        due.retain(|blob| !contact.cached.contains(blob));
        if !due.is_empty() || self.soft.resting.contains_key(&host) {
            return Vec::new();
        }
        let jobs = self.state.jobs.values().filter(|job| job.is_running() && job.is_open());
        let mut shards = Vec::new();
        for job in jobs.filter(|job| self.could_train(job, host)) {
            let with_load = job.data.train.iter().map(|shard| shard.blob).zip(&job.load);
            let housed = self.has_homes(job).then(|| self.to_house(job, host));
            let missing = with_load.filter(|(blob, load)| {
                let own = housed.as_ref().is_none_or(|housed| housed.contains(blob));
                let blob = &blob.sha256;
                own && **load > 0
                    && !contact.cached.contains(blob)
                    && !self.state.blobs.is_lost(blob)
            });
            shards.extend(missing);
        }
        // Of equally wanted ones, each host begins with another.
        let turn = usize::try_from(host.0).unwrap_or(0).checked_rem(shards.len()).unwrap_or(0);
        shards.rotate_left(turn);
        shards.sort_by_key(|(_, load)| Reverse(**load));
        let ahead: Vec<BlobRef> = shards.iter().take(AHEAD).map(|(blob, _)| *blob).collect();
        self.soft.ahead.insert(host, ahead.iter().map(|blob| blob.sha256).collect());
        ahead
    }

    /// Was the host told to fetch that blob?
    pub(crate) fn may_fetch_ahead(&self, host: HostId, blob: Digest) -> bool {
        self.soft.ahead.get(&host).is_some_and(|ahead| ahead.contains(&blob))
    }

    /// Has the host a device whose arithmetic some trial of the job may use?
    fn could_train(&self, job: &Job, host: HostId) -> bool {
        let Some(contact) = self.soft.contacts.get(&host) else { return false };
        let mut trials = job.trials.iter().filter(|trial| trial.is_running());
        trials.any(|trial| {
            let kept = self.kept_class(job, trial);
            contact.devices().any(|device| kept.is_none_or(|kept| kept == device.numeric_class))
        })
    }

    /// Finds what hosts cache of jobs that ended long ago, or that are none of ours.
    pub(crate) fn find_useless_blobs(&mut self) {
        let lives = |job: &&Job| {
            let ended = job.end.map(|(_, at)| at);
            ended.is_none_or(|at| at + KEEP > self.now) || job.has_open_extras()
        };
        let jobs = self.state.jobs.values().filter(lives);
        let data = jobs.clone().flat_map(Job::blobs).map(|blob| blob.sha256);
        let checkpoints = jobs.flat_map(|job| &job.trials).flat_map(|trial| trial.blobs());
        let useful: BTreeSet<Digest> = data.chain(checkpoints).collect();
        for (host, contact) in &self.soft.contacts {
            let useless: Vec<Digest> = contact.cached.difference(&useful).copied().collect();
            if !useless.is_empty() {
                self.soft.evict.insert(*host, useless);
                self.soft.notify.insert(*host);
            }
        }
        for ahead in self.soft.ahead.values_mut() {
            ahead.retain(|blob| useful.contains(blob));
        }
    }
}
