//! Assimilation: assimilators take results one at a time, and what each makes is offered to the core.
//!
//! The core hands out one result of a trial at a time, for each is made into the version after the one before: more
//! assimilators than trials have nothing to do.

use super::{NOBODY, PROGRESS_EVERY, Run};
use crate::fleet::{
    job::SimJob,
    quantity::float,
    queue::{Assimilated, Event},
    training::{Merged, Point},
};
use sojourn_core::{Answer, AssimilationUnit, Command, Fault, MergeOffer, Offered};
use sojourn_protocol::{
    digest::BlobRef,
    manifest::DataSplit,
    report::Outcome,
    unit::{Evaluation, Merge, Unit},
};
use std::sync::Arc;

impl Run<'_> {
    /// Gives each assimilator that has nothing to do a result, as long as there are any.
    pub(super) fn assimilate(&mut self) -> Result<(), String> {
        self.woken = false;
        while self.idle > 0 {
            self.apply(Command::TakeAssimilation { to: NOBODY, losses: true })?;
            let Some(Ok(Answer::Assimilation(Some(unit)))) = self.answer.take() else {
                return Ok(());
            };
            let merged = match (self.screen(&unit)?, &unit.merge) {
                (Some(reason), _) => Some(Merged::Refused(reason)),
                (None, Some(merge)) => Some(self.merge(&unit, merge)?),
                (None, None) => None,
            };
            if self.plan.assimilation == 0 {
                self.offer(&unit, merged)?;
            } else {
                self.idle -= 1;
                let at = self.now + self.plan.assimilation;
                self.queue.add(at, Event::Assimilated(Box::new(Assimilated { unit, merged })));
            }
        }
        Ok(())
    }

    /// An assimilator is done with a result, and looks for the next.
    pub(super) fn assimilated(&mut self, result: Assimilated) -> Result<(), String> {
        self.idle += 1;
        self.offer(&result.unit, result.merged)?;
        self.assimilate()
    }

    fn offer(&mut self, unit: &AssimilationUnit, merged: Option<Merged>) -> Result<(), String> {
        let (to, lease, version) = (NOBODY, unit.lease, unit.version);
        let (checkpoint, merged) = match merged {
            None => (unit.trained.checkpoint, None),
            Some(Merged::Made { checkpoint, state }) => {
                let offer = |merge: &Merge| MergeOffer {
                    state,
                    flush: merge.flush,
                    in_flight: merge.in_flight,
                };
                (checkpoint, unit.merge.as_ref().map(offer))
            }
            Some(Merged::Refused(reason)) => {
                let fault = Fault::Host;
                return self.apply(Command::OfferRejected { to, lease, reason, fault });
            }
        };
        self.apply(Command::OfferAssimilated { to, lease, version, checkpoint, merged })?;
        if let Some(Ok(Answer::Offered(Offered::Taken))) = self.answer.take() {
            self.tell();
            self.measure(unit, checkpoint)?;
        }
        Ok(())
    }

    /// Looks at a version beside the fleet, where its job asks for that.
    fn measure(&mut self, of: &AssimilationUnit, checkpoint: BlobRef) -> Result<(), String> {
        let (hop, version) = (&of.hop, of.version);
        let (Some(trains), Some(job)) = (&mut self.trains, self.plan.job(hop.job)) else {
            return Ok(());
        };
        if !job.curve.is_some_and(|every| version.0.is_multiple_of(every)) {
            return Ok(());
        }
        let mut metric = |split: DataSplit| {
            let evaluation = Unit::Evaluate(Evaluation {
                job: hop.job,
                trial: hop.trial,
                epoch: hop.start.epoch,
                version,
                checkpoint,
                shards: job.data.split(split).to_vec(),
                split,
                counting: job.spec.search.counting(&job.data.labels),
                context: Arc::clone(&hop.context),
            });
            Ok::<_, String>(match trains.run(&evaluation, None)? {
                Outcome::Evaluated(evaluated) => Some(evaluated.value(&job.spec.search)),
                _ => None,
            })
        };
        let Some(value) = metric(DataSplit::Valid)? else { return Ok(()) };
        let test = match job.data.test.is_empty() {
            true => None,
            false => metric(DataSplit::Test)?,
        };
        let at = float(self.now - self.first_at.min(self.now)) / 1e6;
        let (job, trial, results) = (hop.job, hop.trial, version.0);
        self.curve.push(Point { at, job, trial, results, value, test });
        Ok(())
    }

    /// Why a result is refused, where what was really trained is looked at.
    fn screen(&mut self, unit: &AssimilationUnit) -> Result<Option<String>, String> {
        match &mut self.trains {
            Some(trains) if self.plan.is_trained(unit.hop.job) => trains.screen(unit),
            _ => Ok(None),
        }
    }

    fn merge(&mut self, unit: &AssimilationUnit, merge: &Merge) -> Result<Merged, String> {
        match &mut self.trains {
            Some(trains) if self.plan.is_trained(unit.hop.job) => trains.merge(unit, merge),
            _ => Ok(Merged::made_up(unit)),
        }
    }

    fn tell(&mut self) {
        let hops: u64 = self.plan.jobs.iter().map(SimJob::hops).sum();
        if self.tally.assimilated == hops.div_ceil(2) {
            self.watch.halfway(self.core.state());
        }
        if self.tally.assimilated.is_multiple_of(PROGRESS_EVERY) {
            self.watch.progress(self.tally.assimilated, hops);
        }
    }
}
