//! The steps of each architecture.

use crate::{
    error::ModelError,
    layer::{Layer, LayerKind},
    step::{MAX_PARAMETERS, Step},
};
use sojourn_protocol::spec::{Architecture, Cnn, Mlp, Pool, Ratio, Resnet};

/// The most layers that one key of a job file may ask for.
const MAX_LAYERS: usize = 1000;
/// The deepest residual network: that of He et al., 2016.
const MAX_DEPTH: u32 = 1001;
/// Stages of a residual network.
const STAGES: u64 = 3;

/// The steps of `architecture` over rows of `shape`, to this many outputs.
pub(crate) fn steps(
    architecture: &Architecture,
    shape: &[u32],
    outputs: u32,
) -> Result<Vec<Step>, ModelError> {
    match architecture {
        Architecture::Mlp(mlp) => {
            let features = shape
                .iter()
                .try_fold(1u64, |total, side| total.checked_mul(u64::from(*side)))
                .ok_or(ModelError::TooLarge { limit: MAX_PARAMETERS })?;
            let mut builder = Builder { steps: Vec::new(), flow: Flow::Flat(features) };
            builder.perceptron(mlp, outputs)?;
            Ok(builder.steps)
        }
        Architecture::Cnn(cnn) => {
            let mut builder = Builder::image(architecture.name(), shape)?;
            builder.cnn(cnn, outputs)?;
            Ok(builder.steps)
        }
        Architecture::Resnet(resnet) => {
            let mut builder = Builder::image(architecture.name(), shape)?;
            builder.resnet(*resnet, outputs)?;
            Ok(builder.steps)
        }
        Architecture::Graph(graph) => Err(ModelError::NotBuiltIn(graph.entry.clone())),
    }
}

/// The steps so far, and what comes out of them.
struct Builder {
    steps: Vec<Step>,
    flow: Flow,
}

/// A row between two steps.
#[derive(Clone, Copy)]
enum Flow {
    /// So many numbers.
    Flat(u64),
    Image(Image),
}

#[derive(Clone, Copy)]
struct Image {
    channels: u64,
    height: u64,
    width: u64,
}

impl Flow {
    const fn channels(self) -> u64 {
        match self {
            Flow::Flat(features) => features,
            Flow::Image(image) => image.channels,
        }
    }

    const fn places(self) -> u64 {
        match self {
            Flow::Flat(_) => 1,
            Flow::Image(image) => image.height.saturating_mul(image.width),
        }
    }
}

impl Builder {
    fn image(arch: &'static str, shape: &[u32]) -> Result<Self, ModelError> {
        let &[channels, height, width] = shape else {
            return Err(ModelError::NotAnImage { what: arch, shape: shape.to_vec() });
        };
        let (channels, height, width) = (channels.into(), height.into(), width.into());
        let steps = vec![Step::Image { channels, height, width }];
        Ok(Self { steps, flow: Flow::Image(Image { channels, height, width }) })
    }

    fn perceptron(&mut self, mlp: &Mlp, outputs: u32) -> Result<(), ModelError> {
        check_sizes("hidden", &mlp.hidden)?;
        for units in &mlp.hidden {
            self.linear(u64::from(*units), !mlp.batch_norm);
            self.activate(mlp.batch_norm);
            self.dropout(mlp.dropout);
        }
        self.linear(u64::from(outputs), true);
        Ok(())
    }

    fn cnn(&mut self, cnn: &Cnn, outputs: u32) -> Result<(), ModelError> {
        let Cnn { channels, pool, pool_every, hidden, batch_norm, dropout } = cnn;
        check_sizes("channels", channels)?;
        if channels.is_empty() {
            return Err(ModelError::NoChannels);
        }
        if *pool_every == 0 {
            return Err(ModelError::EmptyLayer { key: "pool_every" });
        }
        for (number, channels) in (1u32..).zip(channels) {
            self.convolution(3, 1, u64::from(*channels), !batch_norm);
            self.activate(*batch_norm);
            if number.is_multiple_of(*pool_every) {
                self.pool(*pool);
                self.dropout(*dropout);
            }
        }
        self.flow = Flow::Flat(self.flow.channels().saturating_mul(self.flow.places()));
        self.steps.push(Step::Flatten);
        let mlp = Mlp { hidden: hidden.clone(), batch_norm: *batch_norm, dropout: *dropout };
        self.perceptron(&mlp, outputs)
    }

    fn resnet(&mut self, resnet: Resnet, outputs: u32) -> Result<(), ModelError> {
        let Some(blocks) = resnet.blocks().filter(|_| resnet.depth <= MAX_DEPTH) else {
            return Err(ModelError::Depth { depth: resnet.depth, limit: MAX_DEPTH });
        };
        check_sizes("width", &[resnet.width])?;
        let width = u64::from(resnet.width);
        self.convolution(3, 1, width, true);
        self.activate(true);
        for stage in 0..STAGES {
            let outputs = width.saturating_mul(4 << stage);
            let inner = if stage == 0 { width } else { outputs / 2 };
            for block in 0..blocks {
                let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                self.block(inner, outputs, stride, block == 0);
            }
        }
        self.activate(true);
        self.steps.push(Step::MeanOfPlaces);
        self.flow = Flow::Flat(self.flow.channels());
        self.linear(u64::from(outputs), true);
        Ok(())
    }

    /// Batch norm, ReLU and convolution three times, added to the input or to its projection.
    fn block(&mut self, inner: u64, outputs: u64, stride: u64, project: bool) {
        let input = self.flow;
        self.steps.push(Step::Fork);
        for (kernel, stride, channels) in [(1, stride, inner), (3, 1, inner), (1, 1, outputs)] {
            self.activate(true);
            self.convolution(kernel, stride, channels, true);
        }
        let projection = project.then(|| convolution(input, 1, stride, outputs, true));
        self.steps.push(Step::Join { projection });
    }

    fn linear(&mut self, outputs: u64, bias: bool) {
        let layer = Layer::linear(self.flow.channels(), outputs, bias);
        self.steps.push(Step::Layer(layer));
        self.flow = Flow::Flat(outputs);
    }

    fn convolution(&mut self, kernel: u64, stride: u64, channels: u64, bias: bool) {
        let layer = convolution(self.flow, kernel, stride, channels, bias);
        self.steps.push(Step::Layer(layer));
        if let Flow::Image(Image { height, width, .. }) = self.flow {
            let (height, width) = (height.div_ceil(stride), width.div_ceil(stride));
            self.flow = Flow::Image(Image { channels, height, width });
        }
    }

    fn activate(&mut self, batch_norm: bool) {
        if batch_norm {
            let layer = Layer::batch_norm(self.flow.channels(), self.flow.places());
            self.steps.push(Step::Layer(layer));
        }
        self.steps.push(Step::Relu);
    }

    /// Halves both sides, where both can be.
    fn pool(&mut self, pool: Pool) {
        let Flow::Image(image) = self.flow else { return };
        if image.height < 2 || image.width < 2 {
            return;
        }
        self.steps.push(match pool {
            Pool::Max => Step::MaxPool,
            Pool::Average => Step::AveragePool,
            Pool::None => return,
        });
        let (height, width) = (image.height / 2, image.width / 2);
        self.flow = Flow::Image(Image { height, width, ..image });
    }

    fn dropout(&mut self, ratio: Ratio) {
        if !ratio.is_zero() {
            self.steps.push(Step::Dropout(ratio));
        }
    }
}

const fn convolution(input: Flow, kernel: u64, stride: u64, outputs: u64, bias: bool) -> Layer {
    let (height, width) = match input {
        Flow::Flat(_) => (1, 1),
        Flow::Image(image) => (image.height, image.width),
    };
    let kind = LayerKind::Convolution { kernel, stride, height, width };
    Layer { kind, inputs: input.channels(), outputs, bias }
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
