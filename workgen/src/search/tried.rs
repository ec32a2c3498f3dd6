//! The combinations that a search has tried, by what is computed of them.

use super::Trial;
use sojourn_protocol::{
    digest::Digest,
    spec::{Architecture, Pool, Ratio, TrialConfig},
};
use std::collections::BTreeSet;

/// Combinations that were tried, whatever their seeds.
#[derive(Debug, Clone, Default)]
pub struct Tried {
    keys: BTreeSet<Digest>,
}

impl Tried {
    /// Combinations of these model tables and configurations.
    pub fn of<'a>(trials: impl IntoIterator<Item = (u32, &'a TrialConfig)>) -> Self {
        Self { keys: trials.into_iter().map(|(model, config)| key(model, config)).collect() }
    }

    /// Was the combination tried?
    #[must_use]
    pub fn has(&self, model: u32, config: &TrialConfig) -> bool {
        !self.keys.is_empty() && self.keys.contains(&key(model, config))
    }

    /// A combination is tried.
    pub fn add(&mut self, trial: &Trial) {
        self.insert(Self::key_of(trial));
    }

    /// The key of a combination: the same for two that are trained alike.
    pub(super) fn key_of(trial: &Trial) -> Digest {
        key(trial.model, &trial.config)
    }

    /// Was the combination of this key tried?
    pub(super) fn has_key(&self, key: &Digest) -> bool {
        self.keys.contains(key)
    }

    /// The combination of this key is tried; `false` where it was before.
    pub(super) fn insert(&mut self, key: Digest) -> bool {
        self.keys.insert(key)
    }

    /// Others were tried as well.
    pub(super) fn join(&mut self, others: &Self) {
        self.keys.extend(&others.keys);
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.keys.len()
    }
}

/// The digest that two combinations share if they are trained alike.
fn key(model: u32, config: &TrialConfig) -> Digest {
    let mut config = config.clone();
    // A trial may have been extended.
    config.training.epochs = 0;
    match &mut config.model {
        Architecture::Cnn(cnn) if cnn.pool == Pool::None && cnn.dropout == Ratio::default() => {
            cnn.pool_every = 1;
        }
        // The model follows from its code and its values.
        Architecture::Graph(graph) => graph.exported = None,
        Architecture::Mlp(_) | Architecture::Cnn(_) | Architecture::Resnet(_) => {}
    }
    Digest::of(serde_json::json!([model, config]).to_string().as_bytes())
}
