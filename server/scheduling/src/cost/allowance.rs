//! How much of everything a lease may take: bounds that hold whatever its host reports.

use super::view::Cost;
use sojourn_protocol::{manifest::DataSplit, time::Millis, unit::shard_index};
use sojourn_state::{Job, Lease, UnitKey};

/// Bytes per millisecond of a link, at least: 10 kB/s.
const MIN_LINK_SPEED: u64 = 10;
/// How often what was measured of others is looked at: twice in the time that hosts have for a start.
const REVIEWS: u64 = 2;

/// The batches and bytes of a lease's unit, and the time that it may take in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// For its blobs, before it begins.
    pub fetching: Millis,
    /// In its slot.
    pub training: Millis,
    /// For the upload of its result.
    pub delivery: Millis,
    /// The least time that it can take in its slot; 0 where that isn't known.
    pub least: Millis,
    /// The unit's batches.
    pub batches: u32,
    /// Bytes of the blobs that it needs.
    pub bytes: u64,
    /// Bytes of its result.
    pub upload: u64,
    /// Between two looks at what was measured of others.
    review: Millis,
}

impl Allowance {
    /// All of it.
    pub fn whole(&self) -> Millis {
        let before = self.fetching.0.saturating_add(self.training.0);
        Millis(before.saturating_add(self.delivery.0))
    }

    /// See the field.
    pub const fn review(&self) -> Millis {
        self.review
    }
}

/// Rows, batches and bytes of a unit.
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    rows: u64,
    batches: u32,
    bytes: u64,
}

impl Extent {
    fn add(&mut self, rows: u64, batches: u32, bytes: u64) {
        self.rows = self.rows.saturating_add(rows);
        self.batches = self.batches.saturating_add(batches);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

impl Cost<'_> {
    /// The allowance of a lease: by its unit, and by what was measured of other hosts.
    pub fn allowance(&self, lease: &Lease) -> Allowance {
        let (job, trial) = (lease.unit.job(), lease.unit.trial());
        let Some(known) = self.state.jobs.get(&job) else { return Allowance::default() };
        let Extent { rows, batches, bytes } = extent(known, lease);
        let upload = self.state.upload_bytes(lease).unwrap_or(0);
        let nanos = self.estimates.plausible_nanos(self.device_of(lease), (job, trial));
        let (longest, least) = nanos.unwrap_or((u64::MAX, 0));
        let times = |nanos: u64| Millis(nanos.saturating_mul(rows) / 1_000_000);
        let slower = self.slowdown(known, lease);
        let longest = longest.saturating_mul(slower);
        let grace = self.config.start_grace.0;
        let moved = |bytes: u64| Millis(grace.saturating_add(bytes / MIN_LINK_SPEED));
        Allowance {
            fetching: moved(bytes),
            training: times(longest).max(Millis(grace)),
            delivery: moved(upload),
            least: times(least),
            batches,
            bytes,
            upload,
            review: Millis((grace / REVIEWS).max(1)),
        }
    }
}

impl Cost<'_> {
    /// How many times longer a lease's unit may take for its CPU share of the host, where the job has a policy for that.
    fn slowdown(&self, job: &Job, lease: &Lease) -> u64 {
        let slots = self.hosts.device(lease.host, &lease.device).map_or(1, |of| of.count);
        let slower = job.spec.placement.cpu_shares.longest_slowdown(slots);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at least 1, and bounded by the policy's parameters"
        )]
        let slower = slower.ceil() as u64;
        slower
    }
}

fn extent(job: &Job, lease: &Lease) -> Extent {
    let mut extent = Extent::default();
    let Some(trial) = job.trial(lease.unit.trial()) else { return extent };
    let minibatches = trial.context.config.training.minibatches();
    extent.bytes = trial.checkpoint_bytes;
    let split = match lease.unit {
        UnitKey::Train { shard, from, .. } => {
            let last = lease.visits().last();
            for visited in lease.visits() {
                let Some(of) = job.data.train.get(shard_index(visited)) else { continue };
                let until = lease.until.filter(|_| Some(visited) == last);
                let whole = minibatches.of_hop(of.rows);
                let end = until.map_or(whole, |until| until.min(whole));
                let begun = if visited == shard { from } else { 0 };
                let rows = |batch| minibatches.rows_before(of.rows, batch);
                let trained = rows(end).saturating_sub(rows(begun));
                extent.add(trained, end.saturating_sub(begun), of.blob.bytes);
            }
            return extent;
        }
        UnitKey::Evaluate { .. } => DataSplit::Valid,
        UnitKey::Extra { name, .. } => name.split,
    };
    for shard in job.evaluated_shards(trial, split).iter() {
        extent.add(shard.rows.into(), minibatches.of_pass(shard.rows), shard.blob.bytes);
    }
    extent
}
