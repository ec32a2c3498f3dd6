//! The hyper-parameters of a trial by name, those that the search doesn't vary included.
//!
//! Names are those of the job file: `training.optimizer.lr`, `model.hidden`. Trials of different `[[model]]` tables share
//! the columns of keys with the same name.

use serde::Serialize;
use serde_json::Value;
use sojourn_protocol::spec::{
    Architecture, Cnn, Graph, Mlp, Optimizer, Resnet, TrainingConfig, TrialConfig,
};
use std::collections::BTreeMap;

/// Values by name.
pub(in super::super) type HyperParameters = BTreeMap<String, Value>;

/// The hyper-parameters of a configuration. A key that is switched off, such as `clip_norm`, is left out.
pub(in super::super) fn hyper_parameters(config: &TrialConfig) -> HyperParameters {
    let mut all = HyperParameters::new();
    let TrialConfig { model, training } = config;
    put_model(&mut all, model);
    put_training(&mut all, training);
    all
}

fn put_model(all: &mut HyperParameters, model: &Architecture) {
    match model {
        Architecture::Mlp(Mlp { hidden, batch_norm, dropout }) => {
            put(all, "model.hidden", hidden);
            put(all, "model.batch_norm", batch_norm);
            put(all, "model.dropout", dropout);
        }
        Architecture::Cnn(cnn) => {
            let Cnn { channels, pool, pool_every, hidden, batch_norm, dropout } = cnn;
            put(all, "model.channels", channels);
            put(all, "model.pool", pool);
            put(all, "model.pool_every", pool_every);
            put(all, "model.hidden", hidden);
            put(all, "model.batch_norm", batch_norm);
            put(all, "model.dropout", dropout);
        }
        Architecture::Resnet(Resnet { depth, width }) => {
            put(all, "model.depth", depth);
            put(all, "model.width", width);
        }
        // What was exported of it follows from its values.
        Architecture::Graph(Graph { entry, values, exported: _ }) => {
            put(all, "model.entry", entry);
            for (key, value) in values {
                put(all, &format!("model.{key}"), value);
            }
        }
    }
}

fn put_training(all: &mut HyperParameters, training: &TrainingConfig) {
    let TrainingConfig {
        // The trial's own, which the search may have changed.
        epochs: _,
        local_epochs,
        batch_size,
        loss,
        optimizer,
        schedule,
        clip_norm,
        augment,
        precision,
        sampling,
        label_smoothing,
    } = training;
    put(all, "training.local_epochs", local_epochs);
    put(all, "training.batch_size", batch_size);
    put(all, "training.loss", loss);
    let Optimizer { name, lr, momentum, beta1, beta2, eps, weight_decay, decay } = optimizer;
    put(all, "training.optimizer.name", name);
    put(all, "training.optimizer.lr", lr);
    put(all, "training.optimizer.momentum", momentum);
    put(all, "training.optimizer.beta1", beta1);
    put(all, "training.optimizer.beta2", beta2);
    put(all, "training.optimizer.eps", eps);
    put(all, "training.optimizer.weight_decay", weight_decay);
    put(all, "training.optimizer.decay", decay);
    put(all, "training.schedule.name", &schedule.name);
    put(all, "training.schedule.warmup", &schedule.warmup);
    put(all, "training.schedule.every", &schedule.every);
    put(all, "training.schedule.gamma", &schedule.gamma);
    put(all, "training.schedule.floor", &schedule.floor);
    put(all, "training.clip_norm", clip_norm);
    let augment = augment.unwrap_or_default();
    put(all, "training.augment.crop", &augment.crop);
    put(all, "training.augment.flip", &augment.flip);
    put(all, "training.precision", precision);
    put(all, "training.sampling", sampling);
    put(all, "training.label_smoothing", label_smoothing);
}

/// Numbers, words and lists of them can always be written.
fn put(all: &mut HyperParameters, name: &str, value: &impl Serialize) {
    let value = serde_json::to_value(value).unwrap_or_default();
    if !value.is_null() {
        all.insert(name.to_owned(), value);
    }
}
