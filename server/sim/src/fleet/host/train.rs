//! Real training of a unit that has ended in virtual time, or the loss of a surrogate.

use super::HostContext;
use crate::{
    Corruption,
    fleet::{
        fate::{Training, evaluated},
        job::job_index,
    },
};
use sojourn_protocol::{
    report::Outcome,
    unit::{Lease, Unit},
};

impl HostContext<'_> {
    /// The outcome that a unit which has ended really gives, or the lie that is told instead; `None` where its job isn't really
    /// trained and no surrogate knows the outcome.
    pub(crate) fn train(
        &mut self,
        lease: &Lease,
        training: &Training,
        lie: Option<Corruption>,
    ) -> Option<Outcome> {
        let job = self.plan.jobs.get(job_index(lease)).filter(|_| !training.fails())?;
        if let (Some(surrogate), Unit::Evaluate(of)) = (&job.surrogate, &lease.unit) {
            let epochs = of.epoch.0.saturating_add(1);
            let loss = surrogate.loss(&of.context.config, epochs, self.plan.seed, of.trial);
            return match loss {
                Ok(loss) => Some(Outcome::Evaluated(evaluated(of, Some(loss)))),
                Err(error) => {
                    *self.broken = Some(error);
                    None
                }
            };
        }
        let trains = self.trains.as_mut().filter(|_| job.is_trained)?;
        let (unit, until) = cut(&lease.unit, training.until());
        let outcome = trains.run(&unit, until).and_then(|outcome| match (lie, &outcome) {
            (Some(lie), Outcome::Trained(_)) => {
                self.tally.lies(lease.id);
                trains.lie(lie, &unit, outcome)
            }
            _ => Ok(outcome),
        });
        match outcome {
            Ok(outcome) => Some(outcome),
            Err(error) => {
                *self.broken = Some(error);
                None
            }
        }
    }
}

/// A unit as far as it came: shards that it didn't begin are no part of it.
fn cut(unit: &Unit, batches: u32) -> (Unit, Option<u32>) {
    let Unit::Train(hop) = unit else { return (unit.clone(), None) };
    let end = hop.position_after(batches);
    let reached = hop.segments().position(|stretch| stretch.position_at(end.batch) == Some(end));
    let mut hop = hop.clone();
    hop.then.truncate(reached.unwrap_or(usize::MAX));
    (Unit::Train(hop), Some(end.batch))
}
