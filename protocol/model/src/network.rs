//! An architecture's layers over given data, with their parameters and costs.

use crate::error::ModelError;
use sojourn_protocol::spec::Architecture;

/// The most parameters that a model may have.
pub const MAX_PARAMETERS: u64 = 1 << 31;
/// The most layers that a job file may ask for.
const MAX_LAYERS: usize = 1000;
/// Sides of a convolution's kernel.
const KERNEL: u64 = 3;

/// The layers of one architecture over rows of one shape, in order of computation.
///
/// After every layer but the last comes a ReLU, and after that the pooling that the layer asks for.
/// The first [`LayerKind::Linear`] takes its input flattened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    layers: Vec<Layer>,
}

/// One layer with parameters: `layers.{index}.weight` and `layers.{index}.bias`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer {
    /// What it computes.
    pub kind: LayerKind,
    /// Inputs of each output: features, or input channels.
    pub inputs: u64,
    /// Outputs: units, or output channels.
    pub outputs: u64,
}

/// What a layer computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerKind {
    /// `y = x W^T + b`, weight `[outputs, inputs]`.
    Linear,
    /// 3x3 convolution, padding 1, stride 1, weight `[outputs, inputs, 3, 3]`.
    Convolution {
        /// Rows of its input and, before pooling, of its output.
        height: u64,
        /// Columns of its input and, before pooling, of its output.
        width: u64,
        /// What follows the ReLU.
        pooling: Pooling,
    },
}

/// What follows a convolution's ReLU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// Nothing: a side is already 1.
    None,
    /// 2x2 maximum, stride 2, odd last rows and columns dropped.
    Max,
}

/// A trained tensor of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, as PyTorch would give it.
    pub name: String,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Inputs that flow into one output of its layer; bounds the initial values.
    pub fan_in: u64,
}

impl Network {
    /// The network of `architecture` for rows of `shape` and this many outputs.
    ///
    /// # Errors
    /// What [`validate`] refuses.
    pub fn of(
        architecture: &Architecture,
        shape: &[u32],
        outputs: u32,
    ) -> Result<Self, ModelError> {
        if shape.is_empty() || shape.contains(&0) {
            return Err(ModelError::EmptyRow(shape.to_vec()));
        }
        if outputs == 0 {
            return Err(ModelError::NoOutputs);
        }
        let layers = match architecture {
            Architecture::Mlp { hidden } => mlp(hidden, shape, outputs)?,
            Architecture::Cnn { channels } => cnn(channels, shape, outputs)?,
        };
        let network = Self { layers };
        let too_large = ModelError::TooLarge { limit: MAX_PARAMETERS };
        match network.checked_parameter_count() {
            Some(count) if count <= MAX_PARAMETERS => Ok(network),
            _ => Err(too_large),
        }
    }

    /// Its layers in order of computation.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Its parameters in order of computation, each layer's weight before its bias.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter> + '_ {
        self.layers.iter().enumerate().flat_map(|(index, layer)| {
            let weight = Parameter {
                name: format!("layers.{index}.weight"),
                shape: layer.weight_shape(),
                fan_in: layer.fan_in(),
            };
            let bias = Parameter {
                name: format!("layers.{index}.bias"),
                shape: vec![layer.outputs],
                fan_in: layer.fan_in(),
            };
            [weight, bias]
        })
    }

    /// Numbers in all its parameters.
    #[must_use]
    pub fn parameter_count(&self) -> u64 {
        self.checked_parameter_count().unwrap_or(u64::MAX)
    }

    /// Floating-point operations of one row's forward pass: two for each multiply-add of a layer's
    /// weights; what else there is (biases, ReLU, pooling) is below a few per cent.
    #[must_use]
    pub fn flops_per_row(&self) -> u64 {
        self.layers.iter().fold(0, |total, layer| total.saturating_add(layer.flops()))
    }

    fn checked_parameter_count(&self) -> Option<u64> {
        self.layers.iter().try_fold(0u64, |total, layer| {
            let weights = layer.fan_in().checked_mul(layer.outputs)?;
            total.checked_add(weights)?.checked_add(layer.outputs)
        })
    }
}

impl Layer {
    fn linear(inputs: u64, outputs: u64) -> Self {
        Self { kind: LayerKind::Linear, inputs, outputs }
    }

    fn fan_in(&self) -> u64 {
        match self.kind {
            LayerKind::Linear => self.inputs,
            LayerKind::Convolution { .. } => self.inputs.saturating_mul(KERNEL * KERNEL),
        }
    }

    fn weight_shape(&self) -> Vec<u64> {
        match self.kind {
            LayerKind::Linear => vec![self.outputs, self.inputs],
            LayerKind::Convolution { .. } => vec![self.outputs, self.inputs, KERNEL, KERNEL],
        }
    }

    fn flops(&self) -> u64 {
        let places = match self.kind {
            LayerKind::Linear => 1,
            LayerKind::Convolution { height, width, .. } => height.saturating_mul(width),
        };
        self.fan_in().saturating_mul(self.outputs).saturating_mul(places).saturating_mul(2)
    }
}

/// Can this architecture be built for rows of `shape` and this many outputs?
///
/// # Errors
/// Empty rows or layers, `cnn` over anything but `[channels, height, width]`, more than
/// [`MAX_PARAMETERS`].
pub fn validate(
    architecture: &Architecture,
    shape: &[u32],
    outputs: u32,
) -> Result<(), ModelError> {
    Network::of(architecture, shape, outputs).map(|_| ())
}

/// Floating-point operations of one row's forward pass; training takes about three times as many.
///
/// # Errors
/// What [`validate`] refuses.
pub fn flops_per_row(
    architecture: &Architecture,
    shape: &[u32],
    outputs: u32,
) -> Result<u64, ModelError> {
    Ok(Network::of(architecture, shape, outputs)?.flops_per_row())
}

fn check_sizes(key: &'static str, sizes: &[u32]) -> Result<(), ModelError> {
    if sizes.len() > MAX_LAYERS {
        return Err(ModelError::TooManyLayers { key, layers: sizes.len(), limit: MAX_LAYERS });
    }
    if sizes.contains(&0) {
        return Err(ModelError::EmptyLayer { key });
    }
    Ok(())
}

fn mlp(hidden: &[u32], shape: &[u32], outputs: u32) -> Result<Vec<Layer>, ModelError> {
    check_sizes("hidden", hidden)?;
    let mut inputs = product(shape)?;
    let sizes = hidden.iter().chain([&outputs]);
    Ok(sizes
        .map(|size| {
            let layer = Layer::linear(inputs, u64::from(*size));
            inputs = layer.outputs;
            layer
        })
        .collect())
}

fn cnn(channels: &[u32], shape: &[u32], outputs: u32) -> Result<Vec<Layer>, ModelError> {
    check_sizes("channels", channels)?;
    let &[depth, height, width] = shape else {
        return Err(ModelError::NotAnImage(shape.to_vec()));
    };
    if channels.is_empty() {
        return Err(ModelError::NoChannels);
    }
    let (mut inputs, mut height, mut width) =
        (u64::from(depth), u64::from(height), u64::from(width));
    let mut layers = Vec::with_capacity(channels.len() + 1);
    for size in channels {
        let pooling = if height >= 2 && width >= 2 { Pooling::Max } else { Pooling::None };
        let outputs = u64::from(*size);
        let kind = LayerKind::Convolution { height, width, pooling };
        layers.push(Layer { kind, inputs, outputs });
        inputs = outputs;
        if pooling == Pooling::Max {
            (height, width) = (height / 2, width / 2);
        }
    }
    let too_large = ModelError::TooLarge { limit: MAX_PARAMETERS };
    let flat = inputs.checked_mul(height * width).ok_or(too_large)?;
    layers.push(Layer::linear(flat, u64::from(outputs)));
    Ok(layers)
}

fn product(shape: &[u32]) -> Result<u64, ModelError> {
    shape
        .iter()
        .try_fold(1u64, |total, side| total.checked_mul(u64::from(*side)))
        .ok_or(ModelError::TooLarge { limit: MAX_PARAMETERS })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mlp_of(hidden: &[u32]) -> Architecture {
        Architecture::Mlp { hidden: hidden.to_vec() }
    }

    fn cnn_of(channels: &[u32]) -> Architecture {
        Architecture::Cnn { channels: channels.to_vec() }
    }

    #[test]
    fn an_mlp_counts_as_by_hand() {
        let network = Network::of(&mlp_of(&[128, 64]), &[1, 8, 8], 10).unwrap();
        assert_eq!(network.parameter_count(), 64 * 128 + 128 + 128 * 64 + 64 + 64 * 10 + 10);
        assert_eq!(network.flops_per_row(), 2 * (64 * 128 + 128 * 64 + 64 * 10));
        let names: Vec<String> = network.parameters().map(|p| p.name).collect();
        assert_eq!(names[..3], ["layers.0.weight", "layers.0.bias", "layers.1.weight"]);
        let linear = Network::of(&mlp_of(&[]), &[3], 1).unwrap();
        assert_eq!(linear.parameter_count(), 4);
    }

    #[test]
    fn a_cnn_counts_as_by_hand() {
        let network = Network::of(&cnn_of(&[16, 32]), &[1, 8, 8], 10).unwrap();
        let count = 16 * 9 + 16 + 32 * 16 * 9 + 32 + 32 * 2 * 2 * 10 + 10;
        assert_eq!(network.parameter_count(), count);
        let flops = 2 * (16 * 9 * 64 + 32 * 16 * 9 * 16 + 128 * 10);
        assert_eq!(network.flops_per_row(), flops);
        assert_eq!(network.parameters().nth(2).unwrap().shape, [32, 16, 3, 3]);
    }

    #[test]
    fn pooling_stops_where_a_side_is_one() {
        let network = Network::of(&cnn_of(&[2, 2, 2]), &[1, 3, 8], 2).unwrap();
        let pools: Vec<_> = network
            .layers()
            .iter()
            .filter_map(|layer| match layer.kind {
                LayerKind::Convolution { height, width, pooling } => Some((height, width, pooling)),
                LayerKind::Linear => None,
            })
            .collect();
        assert_eq!(pools, [(3, 8, Pooling::Max), (1, 4, Pooling::None), (1, 4, Pooling::None)]);
        assert_eq!(network.layers().last().unwrap().inputs, 2 * 4);
    }

    #[test]
    fn what_cannot_be_built_is_refused_with_the_reason() {
        let refusal = |a: &Architecture, shape: &[u32], outputs| {
            validate(a, shape, outputs).unwrap_err().to_string()
        };
        assert_eq!(
            refusal(&cnn_of(&[4]), &[64], 2),
            "`cnn` needs rows of shape [channels, height, width], these are [64]"
        );
        assert_eq!(
            refusal(&cnn_of(&[]), &[1, 8, 8], 2),
            "`cnn` needs at least one entry in `channels`"
        );
        assert_eq!(refusal(&mlp_of(&[4, 0]), &[8], 2), "`hidden` has a layer of size 0");
        assert_eq!(refusal(&mlp_of(&[4]), &[8, 0], 2), "a row of shape [8, 0] has no values");
        assert_eq!(refusal(&mlp_of(&[4]), &[], 2), "a row of shape [] has no values");
        assert_eq!(refusal(&mlp_of(&[4]), &[8], 0), "a model needs at least one output");
        assert!(refusal(&mlp_of(&[1; 2000]), &[8], 2).contains("2000 layers"));
        assert!(refusal(&mlp_of(&[u32::MAX]), &[u32::MAX, u32::MAX], 2).contains("more than"));
        assert!(refusal(&mlp_of(&[1 << 16, 1 << 16]), &[8], 2).contains("more than"));
    }

    proptest! {
        #[test]
        fn counts_are_those_of_the_parameters(
            sizes in prop::collection::vec(1u32..40, 1..5),
            shape in prop::collection::vec(1u32..12, 3),
            outputs in 1u32..12,
        ) {
            for architecture in [mlp_of(&sizes), cnn_of(&sizes)] {
                let network = Network::of(&architecture, &shape, outputs).unwrap();
                let sum: u64 = network.parameters().map(|p| p.shape.iter().product::<u64>()).sum();
                prop_assert_eq!(sum, network.parameter_count());
            }
        }

        #[test]
        fn any_sizes_are_answered_without_overflow(
            sizes in prop::collection::vec(any::<u32>(), 0..5),
            shape in prop::collection::vec(any::<u32>(), 0..5),
            outputs in any::<u32>(),
        ) {
            let _ = validate(&mlp_of(&sizes), &shape, outputs);
            let _ = validate(&cnn_of(&sizes), &shape, outputs);
        }
    }
}
