//! `[[model]]` tables: architectures whose dimensions are still open.

use super::{
    architecture::{Architecture, Cnn, Mlp, Pool, Resnet},
    combination_rule::Usage,
    dimension::{Chooser, Dimension, is_default},
    graph::{ExportedGraph, Graph, InitialWeights, Setting},
    ratio::Ratio,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One `[[model]]` table: an architecture with its own dimensions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "arch", rename_all = "snake_case")]
pub enum ModelSpace {
    /// See [`Mlp`].
    Mlp(MlpSpace),
    /// See [`Cnn`].
    Cnn(CnnSpace),
    /// See [`Resnet`].
    Resnet(ResnetSpace),
    /// See [`Graph`].
    Graph(GraphSpace),
}

/// [`Mlp`] with open dimensions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "see the fields of `Mlp`")]
pub struct MlpSpace {
    pub hidden: Dimension<Vec<u32>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub batch_norm: Dimension<bool>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub dropout: Dimension<Ratio>,
}

/// [`Cnn`] with open dimensions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "see the fields of `Cnn`")]
pub struct CnnSpace {
    pub channels: Dimension<Vec<u32>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub pool: Dimension<Pool>,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub pool_every: Dimension<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub hidden: Dimension<Vec<u32>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub batch_norm: Dimension<bool>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub dropout: Dimension<Ratio>,
}

/// [`Resnet`] with open dimensions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "see the fields of `Resnet`")]
pub struct ResnetSpace {
    pub depth: Dimension<u32>,
    pub width: Dimension<u32>,
}

/// A user's own model with open dimensions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct GraphSpace {
    /// Where its code is, for people: `model.py:Cnn`.
    pub entry: String,
    /// The model's own keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Dimension<Setting>>,
    /// How its tensors begin; of exported graphs their files say it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub initial: InitialWeights,
    /// The exported graph of each combination of values that a trial has, in the order of the values; none before `submit`
    /// has made them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exported: Vec<Graph>,
}

impl GraphSpace {
    /// The model under the values that `chooser` takes, exported where that has been done.
    fn close(&self, name: impl Fn(&str) -> String, chooser: &mut dyn Chooser) -> Option<Graph> {
        let chosen = self
            .values
            .iter()
            .map(|(key, dimension)| Some((key.clone(), dimension.close(&name(key), chooser)?)));
        let values: BTreeMap<String, Setting> = chosen.collect::<Option<_>>()?;
        let found = self.exported.binary_search_by(|graph| graph.values.cmp(&values));
        let found = found.ok().and_then(|index| self.exported.get(index));
        let exported = found.and_then(|graph| graph.exported.clone());
        Some(Graph { entry: self.entry.clone(), values, exported })
    }
}

impl From<Architecture> for ModelSpace {
    /// The space of this architecture alone.
    fn from(architecture: Architecture) -> Self {
        match architecture {
            Architecture::Mlp(Mlp { hidden, batch_norm, dropout }) => ModelSpace::Mlp(MlpSpace {
                hidden: hidden.into(),
                batch_norm: batch_norm.into(),
                dropout: dropout.into(),
            }),
            Architecture::Cnn(Cnn { channels, pool, pool_every, hidden, batch_norm, dropout }) => {
                ModelSpace::Cnn(CnnSpace {
                    channels: channels.into(),
                    pool: pool.into(),
                    pool_every: pool_every.into(),
                    hidden: hidden.into(),
                    batch_norm: batch_norm.into(),
                    dropout: dropout.into(),
                })
            }
            Architecture::Resnet(Resnet { depth, width }) => {
                ModelSpace::Resnet(ResnetSpace { depth: depth.into(), width: width.into() })
            }
            Architecture::Graph(graph) => {
                let values = graph.values.iter();
                let values = values.map(|(key, value)| (key.clone(), value.clone().into()));
                ModelSpace::Graph(GraphSpace {
                    entry: graph.entry.clone(),
                    values: values.collect(),
                    initial: InitialWeights::default(),
                    exported: vec![graph],
                })
            }
        }
    }
}

impl ModelSpace {
    /// An [`Mlp`] with nothing but hidden layers.
    #[must_use]
    pub fn mlp(hidden: impl Into<Dimension<Vec<u32>>>) -> Self {
        ModelSpace::Mlp(MlpSpace { hidden: hidden.into(), ..MlpSpace::default() })
    }

    /// A [`Cnn`] with nothing but convolutions and 2x2 max pooling after each.
    #[must_use]
    pub fn cnn(channels: impl Into<Dimension<Vec<u32>>>) -> Self {
        ModelSpace::Cnn(CnnSpace {
            channels: channels.into(),
            pool: Dimension::default(),
            pool_every: one(),
            hidden: Dimension::default(),
            batch_norm: Dimension::default(),
            dropout: Dimension::default(),
        })
    }

    /// The exported graphs of a user's own model.
    pub fn exported(&self) -> impl Iterator<Item = &ExportedGraph> {
        let graphs = match self {
            ModelSpace::Graph(space) => space.exported.as_slice(),
            ModelSpace::Mlp(_) | ModelSpace::Cnn(_) | ModelSpace::Resnet(_) => &[],
        };
        graphs.iter().filter_map(|graph| graph.exported.as_ref())
    }

    /// Is it the same space, whether or not its graphs are exported?
    #[must_use]
    pub fn is_of(&self, other: &Self) -> bool {
        match (self, other) {
            (ModelSpace::Graph(space), ModelSpace::Graph(other)) => {
                (&space.entry, &space.values) == (&other.entry, &other.values)
            }
            _ => self == other,
        }
    }

    /// The concrete architecture that `chooser` takes; dimension names start with `prefix`.
    pub fn close(&self, prefix: &str, chooser: &mut dyn Chooser) -> Option<Architecture> {
        let name = |key: &str| format!("{prefix}.{key}");
        Some(match self {
            ModelSpace::Mlp(space) => {
                let hidden = space.hidden.close(&name("hidden"), chooser)?;
                let (decider, none) = (name("hidden"), Mlp::default());
                let (decider, is_used) = (decider.as_str(), !hidden.is_empty());
                let batch_norm = Usage { decider, is_used, unused: none.batch_norm };
                let dropout = Usage { decider, is_used, unused: none.dropout };
                Architecture::Mlp(Mlp {
                    hidden,
                    batch_norm: space.batch_norm.close_used(
                        &name("batch_norm"),
                        chooser,
                        batch_norm,
                    )?,
                    dropout: space.dropout.close_used(&name("dropout"), chooser, dropout)?,
                })
            }
            ModelSpace::Cnn(space) => Architecture::Cnn(Cnn {
                channels: space.channels.close(&name("channels"), chooser)?,
                pool: space.pool.close(&name("pool"), chooser)?,
                pool_every: space.pool_every.close(&name("pool_every"), chooser)?,
                hidden: space.hidden.close(&name("hidden"), chooser)?,
                batch_norm: space.batch_norm.close(&name("batch_norm"), chooser)?,
                dropout: space.dropout.close(&name("dropout"), chooser)?,
            }),
            ModelSpace::Resnet(space) => Architecture::Resnet(Resnet {
                depth: space.depth.close(&name("depth"), chooser)?,
                width: space.width.close(&name("width"), chooser)?,
            }),
            ModelSpace::Graph(space) => Architecture::Graph(space.close(name, chooser)?),
        })
    }
}

const fn one() -> Dimension<u32> {
    Dimension::Fixed(1)
}

fn is_one(dimension: &Dimension<u32>) -> bool {
    *dimension == one()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job's key is a digest of its JSON: what was stored before an option was there must stay.
    #[test]
    fn what_is_left_at_its_default_is_not_written() {
        for (model, json) in [
            (Architecture::mlp([64, 32]), r#"{"arch":"mlp","hidden":[64,32]}"#),
            (Architecture::cnn([8]), r#"{"arch":"cnn","channels":[8]}"#),
        ] {
            assert_eq!(serde_json::to_string(&model).unwrap(), json);
            assert_eq!(serde_json::from_str::<Architecture>(json).unwrap(), model);
        }
        for (space, json) in [
            (ModelSpace::mlp(vec![64]), r#"{"arch":"mlp","hidden":{"fixed":[64]}}"#),
            (
                ModelSpace::cnn(Dimension::Choice(vec![vec![8], vec![]])),
                r#"{"arch":"cnn","channels":{"choice":[[8],[]]}}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&space).unwrap(), json);
            assert_eq!(serde_json::from_str::<ModelSpace>(json).unwrap(), space);
        }
    }

    #[test]
    fn every_option_survives_the_wire_and_unknown_ones_are_refused() {
        let cnn = Cnn {
            pool: Pool::None,
            pool_every: 2,
            hidden: vec![16],
            batch_norm: true,
            dropout: Ratio(0.5),
            ..Cnn::new([8])
        };
        let json = serde_json::to_string(&Architecture::Cnn(cnn.clone())).unwrap();
        assert_eq!(serde_json::from_str::<Architecture>(&json).unwrap(), Architecture::Cnn(cnn));
        let resnet = Architecture::Resnet(Resnet { depth: 20, width: 16 });
        assert_eq!(
            serde_json::to_string(&resnet).unwrap(),
            r#"{"arch":"resnet","depth":20,"width":16}"#
        );
        for unknown in [
            r#"{"arch":"mlp","hidden":[8],"pool":"max"}"#,
            r#"{"arch":"cnn","channels":[8],"depth":20}"#,
            r#"{"arch":"resnet","depth":20}"#,
            r#"{"arch":"vit"}"#,
        ] {
            assert!(serde_json::from_str::<Architecture>(unknown).is_err(), "{unknown}");
        }
    }
}
