//! Steps of a forward pass.

use crate::layer::Layer;
use sojourn_protocol::spec::Ratio;

/// The most parameters that a model may have.
pub const MAX_PARAMETERS: u64 = 1 << 31;

/// One step of the forward pass over a batch: flat, `[rows, features]`, or of images,
/// `[rows, channels, height, width]`. The first step gets the rows flat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Takes flat rows as images.
    Image {
        /// Of a row.
        channels: u64,
        /// Of a row.
        height: u64,
        /// Of a row.
        width: u64,
    },
    /// A layer with tensors of its own.
    Layer(Layer),
    /// `max(x, 0)`.
    Relu,
    /// The largest value of each 2x2 square, stride 2, odd last rows and columns dropped.
    MaxPool,
    /// The mean of each 2x2 square, stride 2, odd last rows and columns dropped.
    AveragePool,
    /// In training each value is 0 with this probability and otherwise divided by what it lacks to 1.
    Dropout(Ratio),
    /// Takes images as flat rows: channel by channel, row by row.
    Flatten,
    /// The mean of each channel: images to flat rows.
    MeanOfPlaces,
    /// Keeps its input for the next [`Step::Join`].
    Fork,
    /// Adds what was kept.
    Join {
        /// The layer that what was kept goes through before.
        projection: Option<Layer>,
    },
}

impl Step {
    /// The step's layer, where it has one.
    #[must_use]
    pub const fn layer(&self) -> Option<&Layer> {
        match self {
            Step::Layer(layer) => Some(layer),
            Step::Join { projection } => projection.as_ref(),
            _ => None,
        }
    }
}
