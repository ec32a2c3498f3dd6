//! Architectures as plain data; their tensors and costs are in `sojourn-model`.
//!
//! Fields that were added later are left out of JSON where they have their defaults. So a job that doesn't use them is
//! the same job, byte for byte, as before.

use super::{
    dimension::{Value, is_default},
    graph::{ExportedGraph, Graph},
    ratio::Ratio,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One concrete architecture.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "arch", rename_all = "snake_case")]
pub enum Architecture {
    /// See [`Mlp`].
    Mlp(Mlp),
    /// See [`Cnn`].
    Cnn(Cnn),
    /// See [`Resnet`].
    Resnet(Resnet),
    /// See [`Graph`].
    Graph(Graph),
}

/// Fully connected layers with ReLU between them, over the flattened row.
///
/// Per entry of `hidden`: linear, batch norm where asked for, ReLU, dropout; then the output layer.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Mlp {
    /// Units of each hidden layer; empty for a linear model.
    pub hidden: Vec<u32>,
    /// Batch norm before every ReLU; the layers before it then have no bias.
    #[serde(default, skip_serializing_if = "is_default")]
    pub batch_norm: bool,
    /// Share of values that are 0 in training after every hidden layer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dropout: Ratio,
}

/// Convolutions in the manner of VGG (Simonyan and Zisserman, 2015), over rows of shape
/// `[channels, height, width]`.
///
/// Per entry of `channels`: 3x3 convolution (padding 1), batch norm where asked for, ReLU; after every
/// `pool_every`-th of them 2x2 pooling with stride 2, where both sides are still at least 2, and then
/// dropout. Then, flattened, the layers of an [`Mlp`] with `hidden`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Cnn {
    /// Channels of each convolution, at least one.
    pub channels: Vec<u32>,
    /// How each 2x2 square is pooled.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pool: Pool,
    /// Convolutions from one pooling to the next, at least 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub pool_every: u32,
    /// Units of each fully connected layer before the last.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hidden: Vec<u32>,
    /// Batch norm before every ReLU; the layers before it then have no bias.
    #[serde(default, skip_serializing_if = "is_default")]
    pub batch_norm: bool,
    /// Share of values that are 0 in training after every `pool_every`-th convolution (and its
    /// pooling) and after every hidden layer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dropout: Ratio,
}

/// A pre-activation residual network with bottlenecks ("ResNet v2": He et al., "Identity Mappings in
/// Deep Residual Networks", 2016), for images of any size, as the Keras documentation's CIFAR-10
/// example `resnet_v2` builds it, with batch norm and ReLU also before the first block.
///
/// A 3x3 convolution to `width` channels, batch norm, ReLU; three stages of n blocks, depth = 9n + 2;
/// batch norm, ReLU, the mean over all places, the output layer. A block is three times batch norm,
/// ReLU, convolution (1x1, 3x3, 1x1), added to its input; stages put out 4, 8 and 16 times `width`
/// channels, and their inner convolutions have `width`, 4 and 8 times `width`. The first block of a stage
/// adds a 1x1 convolution of its input instead; in the second and third stage it halves both sides
/// (rounded up). All convolutions have a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Resnet {
    /// 9n + 2 for an n of at least 1.
    pub depth: u32,
    /// Channels of the first convolution; [`Resnet::WIDTH`] where a job file says nothing.
    pub width: u32,
}

impl Resnet {
    /// The width of the published networks.
    pub const WIDTH: u32 = 16;

    /// Blocks in each stage; `None` where the depth isn't 9n + 2.
    #[must_use]
    pub fn blocks(&self) -> Option<u32> {
        let layers = self.depth.checked_sub(2)?;
        (layers > 0 && layers.is_multiple_of(9)).then_some(layers / 9)
    }
}

/// How each 2x2 square is pooled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pool {
    /// The largest value; an odd last row or column is dropped.
    #[default]
    Max,
    /// The mean; an odd last row or column is dropped.
    Average,
    /// There is no pooling.
    None,
}

impl Value for Pool {
    fn from_number(_: f64) -> Option<Self> {
        None
    }
}

impl Architecture {
    /// The window of its rows, where text is cut into windows.
    #[must_use]
    pub fn window(&self) -> Option<u32> {
        match self {
            Architecture::Graph(graph) => graph.window(),
            Architecture::Mlp(_) | Architecture::Cnn(_) | Architecture::Resnet(_) => None,
        }
    }

    /// Is it more than a linear model?
    pub(super) fn has_hidden_layers(&self) -> bool {
        match self {
            Architecture::Mlp(mlp) => !mlp.hidden.is_empty(),
            Architecture::Cnn(_) | Architecture::Resnet(_) | Architecture::Graph(_) => true,
        }
    }

    /// An [`Mlp`] with nothing but hidden layers.
    #[must_use]
    pub fn mlp(hidden: impl Into<Vec<u32>>) -> Self {
        Architecture::Mlp(Mlp { hidden: hidden.into(), ..Mlp::default() })
    }

    /// A [`Cnn`] with nothing but convolutions and 2x2 max pooling after each.
    #[must_use]
    pub fn cnn(channels: impl Into<Vec<u32>>) -> Self {
        Architecture::Cnn(Cnn::new(channels))
    }

    /// The exported graph of a user's model.
    #[must_use]
    pub const fn exported(&self) -> Option<&ExportedGraph> {
        match self {
            Architecture::Graph(graph) => graph.exported.as_ref(),
            Architecture::Mlp(_) | Architecture::Cnn(_) | Architecture::Resnet(_) => None,
        }
    }

    /// The same, where that is enough of it: a graph is known by its file.
    #[must_use]
    pub fn name_only(&self) -> Self {
        match self {
            Architecture::Graph(graph) => {
                let exported = graph.exported.as_ref().map(ExportedGraph::name_only);
                let (entry, values) = (String::new(), BTreeMap::new());
                Architecture::Graph(Graph { entry, values, exported })
            }
            Architecture::Mlp(_) | Architecture::Cnn(_) | Architecture::Resnet(_) => self.clone(),
        }
    }

    /// The word that a job file uses for it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Architecture::Mlp(_) => "mlp",
            Architecture::Cnn(_) => "cnn",
            Architecture::Resnet(_) => "resnet",
            Architecture::Graph(_) => "graph",
        }
    }
}

impl Cnn {
    /// Convolutions with 2x2 max pooling after each.
    #[must_use]
    pub fn new(channels: impl Into<Vec<u32>>) -> Self {
        Self {
            channels: channels.into(),
            pool: Pool::Max,
            pool_every: 1,
            hidden: Vec::new(),
            batch_norm: false,
            dropout: Ratio(0.0),
        }
    }
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_one(number: &u32) -> bool {
    *number == 1
}
