//! How long units take: measured per host and architecture, guessed from FLOPs before that.
//!
//! All in whole nanoseconds per row, so that what they decide is the same on any machine.

use crate::state::Trial;
use sojourn_protocol::{
    ids::HostId,
    spec::{Architecture, Precision},
    time::Millis,
};
use std::collections::{BTreeMap, BTreeSet};

/// Forward and backward together cost about three forward passes.
const PASSES: u64 = 3;
/// Operations per second of a host that has said nothing.
const UNKNOWN_FLOPS: u64 = 1_000_000_000;

/// What was measured so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Estimates {
    by_host: BTreeMap<(HostId, Kind), u64>,
    by_kind: BTreeMap<Kind, u64>,
}

/// What units have in common that take the same time per row.
type Kind = (Architecture, u32, Precision);

fn kind(trial: &Trial) -> Kind {
    let config = &trial.context.config;
    (config.model.clone(), config.training.batch_size, config.training.precision)
}

impl Estimates {
    /// Takes a measurement: a hop of `rows` took `micros` of training.
    pub(crate) fn measured(&mut self, host: HostId, trial: &Trial, rows: u64, micros: u64) {
        let Some(per_row) = micros.saturating_mul(1000).checked_div(rows) else { return };
        let kind = kind(trial);
        smooth(self.by_host.entry((host, kind.clone())).or_insert(per_row), per_row);
        smooth(self.by_kind.entry(kind).or_insert(per_row), per_row);
    }

    /// Forgets what was measured on hosts; what is known of architectures stays.
    pub(crate) fn forget(&mut self, hosts: &BTreeSet<HostId>) {
        self.by_host.retain(|(host, _), _| !hosts.contains(host));
    }

    /// How long `host` will train `rows` of the trial.
    #[must_use]
    pub(crate) fn training(&self, host: HostId, flops: f64, trial: &Trial, rows: u64) -> Millis {
        let kind = kind(trial);
        let of_kind = self.by_kind.get(&kind).copied();
        let measured = self.by_host.get(&(host, kind)).copied().or(of_kind);
        let per_row = measured.unwrap_or_else(|| guess(trial, flops));
        Millis(per_row.saturating_mul(rows) / 1_000_000)
    }

    /// Microseconds that the trial has left, on a middling host.
    #[must_use]
    pub(crate) fn remaining_micros(&self, trial: &Trial) -> u64 {
        let measured = self.by_kind.get(&kind(trial)).copied();
        let per_row = measured.unwrap_or_else(|| guess(trial, 0.0));
        let batch = u64::from(trial.context.config.training.batch_size);
        trial.chain.left().saturating_mul(batch).saturating_mul(per_row) / 1000
    }
}

fn guess(trial: &Trial, flops: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a sane range"
    )]
    let flops =
        if flops.is_finite() && flops >= 1e6 { flops.min(1e18) as u64 } else { UNKNOWN_FLOPS };
    let work = trial.flops_per_row.saturating_mul(PASSES);
    work.saturating_mul(1_000_000_000).checked_div(flops).unwrap_or(work).max(1)
}

/// Moves a quarter of the way.
fn smooth(old: &mut u64, new: u64) {
    *old = old.saturating_mul(3).saturating_add(new) / 4;
}
