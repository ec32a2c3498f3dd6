//! A unit in a slot: how long it takes, how it ends, and what is said of it.

use super::{
    job::job_index,
    lognormal::lognormal,
    plan::Plan,
    quantity::{float, whole},
    scenario::HostGroup,
};
use crate::chaos::training::sums;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::LeaseId,
    metrics::{ByClass, ClassDetail, Confusion},
    position::Position,
    quantity::{SaturatingFrom as _, to_usize},
    report::{Evaluated, Failure, FailureKind, Outcome, Report, Sums, Trained},
    seeds,
    unit::{Evaluation, Hop, Lease, Unit},
};

/// How much longer a unit takes in the numeric class of its lease than in the fastest one of its host. A unit that pins
/// nothing is as fast as in that.
fn slowdown(lease: &Lease, group: &HostGroup) -> f64 {
    if lease.unit.context().pinned_threads.is_none() {
        return 1.0;
    }
    let named = lease.instructions.as_ref().and_then(|name| group.classes.get(name));
    group.fastest_class() / named.copied().unwrap_or(1.0)
}

/// How a unit is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnitFate {
    Done,
    /// The trainer fails.
    Fails,
    /// The host reports what can't be.
    Lies,
}

/// The training, or evaluating, of one unit.
#[derive(Debug)]
pub(crate) struct Training {
    pub(crate) fate: UnitFate,
    /// Microseconds of work, to its end.
    micros: u64,
    /// Batches of it, where it can be stopped after each.
    batches: u32,
    /// Batches after which it ends.
    until: u32,
    /// Microseconds of work after which its host is taken away.
    preempted: Option<u64>,
    /// Whether the host is silent until the lease has run out.
    late: bool,
}

impl Training {
    /// On a host of this kind that has started so many times: what it is given again may end otherwise.
    pub(crate) fn new(lease: &Lease, kind: usize, boot: u32, plan: &Plan) -> Self {
        let job = job_index(lease);
        let trial = to_usize(lease.unit.trial().0);
        let config = &lease.unit.context().config;
        let flops = plan.jobs.get(job).map_or(0.0, |job| job.flops_of(trial, config));
        let (rows, batches, ratio) = match &lease.unit {
            Unit::Train(hop) => {
                let batches = hop.to_train();
                (rows(hop, batches), batches, 1.0)
            }
            // Forward alone.
            Unit::Evaluate(_) => (plan.jobs.get(job).map_or(0, |job| job.valid_rows), 1, 1.0 / 3.0),
        };
        let group = plan.kinds.get(kind).and_then(|kind| plan.groups.get(kind.group));
        let chance = |what: &str| seeds::stream(what, &[plan.seed, lease.id.0]);
        let mut micros = plan.micros(kind, job, trial, flops * ratio * float(rows));
        micros *= group.map_or(1.0, |group| slowdown(lease, group));
        if let Some(group) = group.filter(|group| group.noise > 0.0) {
            micros *= lognormal(&mut chance("sim-noise"), group.noise);
        }
        let happens =
            |what: &str, ratio: f64| ratio > 0.0 && seeds::unit_f64(&mut chance(what)) < ratio;
        let micros = whole(micros).unwrap_or(u64::MAX / 4);
        let preempted = group.and_then(|group| group.preempted).and_then(|preempted| {
            let mut chance =
                seeds::stream("sim-preempted", &[plan.seed, lease.id.0, u64::from(boot)]);
            let happens = seeds::unit_f64(&mut chance) < preempted.ratio;
            happens.then(|| whole(float(micros) * seeds::unit_f64(&mut chance)).unwrap_or(micros))
        });
        let late = group.is_some_and(|group| happens("sim-late", group.late));
        let fate = match group {
            Some(group) if happens("sim-fails", group.failures) => UnitFate::Fails,
            Some(group) if happens("sim-lies", group.lies) => UnitFate::Lies,
            _ => UnitFate::Done,
        };
        Self { fate, micros, batches, until: batches, preempted, late }
    }

    /// Microseconds after its start at which its host is taken away, if it is.
    pub(crate) const fn preempted_after(&self) -> Option<u64> {
        self.preempted
    }

    /// Is its host silent until the lease has run out?
    pub(crate) const fn is_late(&self) -> bool {
        self.late
    }

    /// Microseconds of work after which so many batches are done.
    pub(crate) fn at(&self, batches: u32) -> u64 {
        if batches >= self.batches {
            return self.micros;
        }
        let ratio = f64::from(batches) / f64::from(self.batches);
        whole(float(self.micros) * ratio).unwrap_or(self.micros)
    }

    /// Batches done after so many microseconds of work, and batches in all.
    pub(crate) fn progress(&self, passed: u64) -> (u32, u32) {
        let ratio = float(passed) / float(self.micros.max(1));
        let done = whole(libm::floor(ratio * f64::from(self.batches))).unwrap_or(0);
        (u32::saturating_from(done).min(self.batches), self.batches)
    }

    /// Ends the unit after the batch that it is at. Gives the microseconds until then, if that is earlier.
    pub(crate) fn stop(&mut self, passed: u64) -> Option<u64> {
        let (done, _) = self.progress(passed);
        if done + 1 >= self.until {
            return None;
        }
        self.until = done + 1;
        Some(self.at(self.until).saturating_sub(passed))
    }

    /// Ends the unit after so many batches; false where it ends by then already.
    pub(crate) fn stop_at(&mut self, batches: u32) -> bool {
        let earlier = batches < self.until;
        self.until = self.until.min(batches);
        earlier
    }

    pub(crate) const fn is_stopped(&self) -> bool {
        self.until < self.batches
    }

    /// Batches after which it ends.
    pub(crate) const fn until(&self) -> u32 {
        self.until
    }

    /// Will its trainer fail?
    pub(crate) fn fails(&self) -> bool {
        self.fate == UnitFate::Fails
    }

    /// The report of a unit that took so long, and the checkpoint that comes with it. `real`: what was really
    /// trained. `is_verified`: other hosts are to come to the same.
    pub(crate) fn report(
        &self,
        lease: &Lease,
        took: u64,
        real: Option<Outcome>,
        is_verified: bool,
    ) -> (Report, Option<BlobRef>) {
        let mut outcome = real.unwrap_or_else(|| self.made_up(lease, is_verified));
        let lies = self.fate == UnitFate::Lies;
        let blob = match &mut outcome {
            Outcome::Failed(_) => None,
            Outcome::Trained(trained) => {
                trained.train_micros = took;
                trained.sums.rows += u64::from(lies);
                Some(trained.checkpoint)
            }
            Outcome::Evaluated(evaluated) => {
                evaluated.train_micros = took;
                if lies {
                    evaluated.shards.clear();
                }
                None
            }
        };
        (Report { lease: lease.id, outcome }, blob)
    }

    fn made_up(&self, lease: &Lease, is_verified: bool) -> Outcome {
        match &lease.unit {
            _ if self.fails() => {
                let message = "the simulated trainer has failed".to_owned();
                Outcome::Failed(Failure { kind: FailureKind::Trainer, message })
            }
            Unit::Train(hop) => {
                let end = hop.position_after(self.until);
                let sha256 = if is_verified { made_of(hop, end) } else { made_by(lease.id) };
                let checkpoint = BlobRef { sha256, bytes: lease.upload_bytes };
                // Labels are classes, or one number.
                let correct = (hop.context.outputs > 1).then_some(0);
                let rows = rows(hop, self.until);
                let sums = Sums { rows, loss: 1.0, correct, ..Sums::default() };
                let base = hop.base.version();
                Outcome::Trained(Trained { base, checkpoint, end, sums, train_micros: 0 })
            }
            Unit::Evaluate(evaluation) => Outcome::Evaluated(evaluated(evaluation, None)),
        }
    }
}

/// The digest of what a lease's unit makes.
fn made_by(lease: LeaseId) -> Digest {
    Digest::of(&lease.0.to_le_bytes())
}

/// The digest of what a hop makes up to a position, whoever trains it.
fn made_of(hop: &Hop, end: Position) -> Digest {
    let Hop { job, trial, base, seed, .. } = hop;
    Digest::of(format!("{job} {trial} {base:?} {seed} {end:?}").as_bytes())
}

/// Rows of a unit's first batches, one after the other over all its shards.
fn rows(hop: &Hop, batches: u32) -> u64 {
    hop.rows_to(hop.position_after(batches)).unwrap_or(0)
}

/// Made-up metrics of an evaluation, with this mean loss where one is known.
pub(crate) fn evaluated(evaluation: &Evaluation, loss: Option<f64>) -> Evaluated {
    let classes = evaluation.context.outputs > 1;
    let of = |rows: u32| {
        let mut sums = sums(&evaluation.checkpoint.sha256, rows);
        sums.loss = loss.map_or(sums.loss, |loss| loss * f64::from(rows));
        let correct = sums.correct.filter(|_| classes);
        let top_k = evaluation.counting.top_k.and(correct);
        Sums { correct, top_k, ..sums }
    };
    let shards = evaluation.shards.iter().map(|shard| of(shard.rows)).collect();
    let version = evaluation.version;
    let arrays = [].into();
    let mut evaluated = Evaluated { version, shards, by_class: None, arrays, train_micros: 0 };
    let sums = evaluated.sums();
    let correct = sums.correct.unwrap_or(0);
    let outputs = to_usize(evaluation.context.outputs);
    let mut matrix = vec![vec![0; outputs]; outputs];
    if let Some([right, wrong, ..]) = matrix.first_mut().map(Vec::as_mut_slice) {
        (*right, *wrong) = (correct, sums.rows - correct);
    }
    let matrix = Confusion(matrix);
    evaluated.by_class = match evaluation.counting.by_class {
        ClassDetail::Nothing => None,
        ClassDetail::Totals => Some(ByClass::Totals(matrix.totals())),
        ClassDetail::Confusion => Some(ByClass::Confusion(matrix)),
    };
    evaluated
}
