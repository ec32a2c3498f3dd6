//! Worlds in which strangers lie, at default settings.

use super::{
    liar::Liar,
    scenario::{Faults, Scenario, data, spec},
};
use crate::Corruption;
use sojourn_protocol::{
    seeds,
    spec::{JobSpec, OrderChoice, PlacementSpec},
    time::Millis,
};

/// Trials of a world with strangers.
const TRIALS: u32 = 6;
/// Epochs of each of them.
const EPOCHS: u32 = 4;
/// Shards of its data.
const SHARDS: u32 = 4;

impl Scenario {
    /// A world at default settings with the operator's hosts, strangers' hosts, and one kind of liar among these. Everybody's trainers
    /// do what they are told.
    #[must_use]
    pub fn with_liar(seed: u64, liar: Liar) -> Self {
        let scenario = Self::of_seed(seed);
        let faults = Faults { fail: 0, lie: 0, server: 2, ..scenario.faults };
        let placement = PlacementSpec::new(OrderChoice::Hop, true, 1);
        let spec = JobSpec { placement, ..spec(seed, TRIALS, EPOCHS, SHARDS) };
        let mut chance = seeds::stream("scenario-strangers", &[seed]);
        let rows: Vec<u32> = (0..SHARDS).map(|_| 8 + seeds::below(&mut chance, 40)).collect();
        let classes = liar.classes();
        let lie = Corruption::Noise;
        Self {
            hosts: 2 * classes,
            classes,
            liars: 0,
            lie,
            faults,
            lease_term: Millis::from_secs(20),
            line: None,
            data: data(&mut chance, &rows, 1),
            spec,
            curious: 0,
            liar: Some(liar),
            extends: false,
            ..scenario
        }
    }
}
