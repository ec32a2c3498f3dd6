//! One layer: its tensors and what it costs.

use sojourn_protocol::{dtype::Dtype, spec::Start};

/// A layer with tensors of its own: `layers.{index}.weight` and so on, as PyTorch would name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer {
    /// The layer's function.
    pub kind: LayerKind,
    /// Inputs of each output: features, or input channels.
    pub inputs: u64,
    /// Outputs: units, or output channels.
    pub outputs: u64,
    /// Is a number of its own added to each output?
    pub bias: bool,
}

/// The function of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerKind {
    /// `y = x W^T + b`, weight `[outputs, inputs]`.
    Linear,
    /// Square convolution, zero padding of `(kernel - 1) / 2`, weight
    /// `[outputs, inputs, kernel, kernel]`.
    Convolution {
        /// Rows, and columns, of its kernel: odd.
        kernel: u64,
        /// Places of the input from one place of the output to the next.
        stride: u64,
        /// Rows of its input.
        height: u64,
        /// Columns of its input.
        width: u64,
    },
    /// `y = (x - mean) / sqrt(var + eps) weight + bias` per channel (Ioffe and Szegedy, 2015).
    BatchNorm {
        /// Places of each channel: 1 for a flat row.
        places: u64,
    },
}

/// A tensor of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The tensor's name, as PyTorch would give it.
    pub name: String,
    /// The type of its elements; single precision where it is trained.
    pub dtype: Dtype,
    /// The tensor's shape.
    pub shape: Vec<u64>,
    /// The tensor's values before training.
    pub start: Start,
}

impl Layer {
    pub(crate) const fn linear(inputs: u64, outputs: u64, bias: bool) -> Self {
        Self { kind: LayerKind::Linear, inputs, outputs, bias }
    }

    pub(crate) const fn batch_norm(channels: u64, places: u64) -> Self {
        let kind = LayerKind::BatchNorm { places };
        Self { kind, inputs: channels, outputs: channels, bias: true }
    }

    /// The trained tensors: the weight and, where there is one, the bias after it.
    pub(crate) fn parameters(&self, index: usize) -> impl Iterator<Item = Parameter> + use<> {
        let (shape, weight, bias) = match self.kind {
            LayerKind::Linear => (vec![self.outputs, self.inputs], self.uniform(), self.uniform()),
            LayerKind::Convolution { kernel, .. } => {
                (vec![self.outputs, self.inputs, kernel, kernel], self.uniform(), self.uniform())
            }
            LayerKind::BatchNorm { .. } => (vec![self.outputs], Start::Ones, Start::Zeros),
        };
        let weight = Parameter {
            name: format!("layers.{index}.weight"),
            dtype: Dtype::F32,
            shape,
            start: weight,
        };
        let bias = self.bias.then(|| Parameter {
            name: format!("layers.{index}.bias"),
            dtype: Dtype::F32,
            shape: vec![self.outputs],
            start: bias,
        });
        std::iter::once(weight).chain(bias)
    }

    /// The buffers, which are updated in training and used by evaluation, but not trained: batch norm's running mean and
    /// variance.
    pub(crate) fn buffers(&self, index: usize) -> impl Iterator<Item = Parameter> + use<> {
        let buffer = |name: &str, start| Parameter {
            name: format!("layers.{index}.{name}"),
            dtype: Dtype::F32,
            shape: vec![self.outputs],
            start,
        };
        let running = matches!(self.kind, LayerKind::BatchNorm { .. })
            .then(|| [buffer("running_mean", Start::Zeros), buffer("running_var", Start::Ones)]);
        running.into_iter().flatten()
    }

    /// Numbers in its parameters; `None` where they can't be counted.
    pub(crate) fn parameter_count(&self) -> Option<u64> {
        let weights = self.fan_in().checked_mul(self.outputs)?;
        weights.checked_add(if self.bias { self.outputs } else { 0 })
    }

    /// Numbers in its buffers.
    pub(crate) const fn buffer_count(&self) -> u64 {
        match self.kind {
            LayerKind::BatchNorm { .. } => self.outputs.saturating_mul(2),
            LayerKind::Linear | LayerKind::Convolution { .. } => 0,
        }
    }

    /// Two operations for each multiply-add of a row.
    pub(crate) fn flops(&self) -> u64 {
        let outputs = self.outputs.saturating_mul(self.output_places());
        self.fan_in().saturating_mul(outputs).saturating_mul(2)
    }

    /// Numbers of a row's input or output, whichever has more.
    pub(crate) fn widest(&self) -> u64 {
        let inputs = match self.kind {
            LayerKind::Convolution { height, width, .. } => {
                self.inputs.saturating_mul(height.saturating_mul(width))
            }
            LayerKind::Linear | LayerKind::BatchNorm { .. } => self.inputs,
        };
        inputs.max(self.outputs.saturating_mul(self.output_places()))
    }

    fn uniform(&self) -> Start {
        Start::FanIn(self.fan_in())
    }

    const fn fan_in(&self) -> u64 {
        match self.kind {
            LayerKind::Linear => self.inputs,
            LayerKind::Convolution { kernel, .. } => self.inputs.saturating_mul(kernel * kernel),
            LayerKind::BatchNorm { .. } => 1,
        }
    }

    const fn output_places(&self) -> u64 {
        match self.kind {
            LayerKind::Linear => 1,
            LayerKind::Convolution { stride, height, width, .. } => {
                height.div_ceil(stride).saturating_mul(width.div_ceil(stride))
            }
            LayerKind::BatchNorm { places } => places,
        }
    }
}
