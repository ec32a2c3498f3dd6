//! Engines: the programs that train units on a device, and the models that they train.

use serde::{Deserialize, Serialize};

/// Models that every trainer trained before engines had names: what a device trains that names no engine.
pub const MODELS_OF_BEFORE: [&str; 3] = ["mlp", "cnn", "resnet"];

/// A program that trains units.
///
/// ```
/// use sojourn_protocol::engine::Engine;
///
/// let models = vec!["mlp".to_owned()];
/// let engine = Engine { name: "numpy".into(), framework: "numpy 2.3.1".into(), models };
/// assert!(engine.trains("mlp") && !engine.trains("cnn"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// The engine's name, such as `sojourn-trainer` or `numpy`.
    pub name: String,
    /// The framework that it computes with, and its version: `libtorch 2.11.0`.
    pub framework: String,
    /// The models that it trains, by the word that a job file has for them (`arch`).
    pub models: Vec<String>,
}

impl Engine {
    /// Does it train that model?
    #[must_use]
    pub fn trains(&self, model: &str) -> bool {
        self.models.iter().any(|known| known == model)
    }
}
