//! Plausible results of units.

use sojourn_protocol::{
    digest::{BlobRef, Digest},
    report::{Evaluated, Outcome, Sums, Trained},
    unit::{Lease, Unit},
};

/// A plausible outcome of a lease's unit, with the checkpoint that was uploaded. `loss` is that of each row.
pub(crate) fn of(lease: &Lease, loss: f64) -> (Outcome, Option<BlobRef>) {
    let sums = |rows: u64| {
        let all = loss * f64::from(u32::try_from(rows).unwrap());
        Sums { rows, loss: all, correct: Some(1), ..Sums::default() }
    };
    match &lease.unit {
        Unit::Train(hop) => {
            let sha256 = Digest::of(&lease.id.0.to_le_bytes());
            let checkpoint = BlobRef { sha256, bytes: lease.upload_bytes };
            let end = hop.position_after(hop.to_train());
            let rows = hop.rows_to(end).unwrap();
            let trained = Trained {
                base: hop.base.version(),
                checkpoint,
                end,
                sums: sums(rows),
                train_micros: 1_000_000,
            };
            (Outcome::Trained(trained), Some(checkpoint))
        }
        Unit::Evaluate(evaluation) => {
            let evaluated = Evaluated {
                version: evaluation.version,
                shards: evaluation.shards.iter().map(|shard| sums(shard.rows.into())).collect(),
                by_class: None,
                arrays: [].into(),
                train_micros: 1000,
            };
            (Outcome::Evaluated(evaluated), None)
        }
    }
}
