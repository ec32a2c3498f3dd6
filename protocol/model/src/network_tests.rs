//! Tensors and costs as by hand, refusals, and no overflow.

use super::*;
use crate::{Start, layer::LayerKind, validate};
use proptest::prelude::*;
use sojourn_protocol::spec::{
    Augment, Cnn, Loss, Mlp, Optimizer, OptimizerName, Pool, Ratio, Resnet, TrainingConfig,
    TrialConfig,
};

fn mlp_of(hidden: &[u32]) -> Architecture {
    Architecture::mlp(hidden)
}

fn cnn_of(channels: &[u32]) -> Architecture {
    Architecture::cnn(channels)
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
    let sides: Vec<_> = network
        .layers()
        .filter_map(|layer| match layer.kind {
            LayerKind::Convolution { height, width, .. } => Some((height, width)),
            _ => None,
        })
        .collect();
    assert_eq!(sides, [(3, 8), (1, 4), (1, 4)]);
    assert_eq!(network.steps().iter().filter(|step| **step == Step::MaxPool).count(), 1);
    assert_eq!(network.layers().last().unwrap().inputs, 2 * 4);
}

/// The words of a network's steps.
fn words(network: &Network) -> String {
    let words = network.steps().iter().map(|step| match step {
        Step::Image { .. } => "image".into(),
        Step::Layer(Layer { kind: LayerKind::Linear, outputs, .. }) => format!("linear{outputs}"),
        Step::Layer(Layer { kind: LayerKind::BatchNorm { .. }, .. }) => "norm".into(),
        Step::Layer(Layer {
            kind: LayerKind::Convolution { kernel, stride, .. }, outputs, ..
        }) => {
            format!("conv{kernel}/{stride}-{outputs}")
        }
        Step::Relu => "relu".into(),
        Step::MaxPool => "max".into(),
        Step::AveragePool => "average".into(),
        Step::Dropout(ratio) => format!("dropout{}", ratio.0),
        Step::Flatten => "flatten".into(),
        Step::MeanOfPlaces => "mean".into(),
        Step::Fork => "fork".into(),
        Step::Join { projection: None } => "join".into(),
        Step::Join { projection: Some(layer) } => format!("project{}", layer.outputs),
    });
    words.collect::<Vec<String>>().join(" ")
}

#[test]
fn options_put_their_steps_where_they_belong() {
    let mlp = Mlp { hidden: vec![8], batch_norm: true, dropout: Ratio(0.5) };
    let network = Network::of(&Architecture::Mlp(mlp), &[6], 2).unwrap();
    assert_eq!(words(&network), "linear8 norm relu dropout0.5 linear2");
    assert_eq!(network.trainable_count(), 6 * 8 + 2 * 8 + 8 * 2 + 2);
    assert_eq!(network.parameter_count(), network.trainable_count() + 2 * 8);
    let names: Vec<String> = network.parameters().map(|p| p.name).collect();
    let expected = ["0.weight", "1.weight", "1.bias", "2.weight", "2.bias"];
    assert_eq!(names, expected.map(|name| format!("layers.{name}")));
    let buffers: Vec<(String, Start)> = network.buffers().map(|p| (p.name, p.start)).collect();
    let [mean, var] = ["layers.1.running_mean", "layers.1.running_var"].map(String::from);
    assert_eq!(buffers, [(mean, Start::Zeros), (var, Start::Ones)]);

    let vgg = Cnn {
        pool: Pool::Average,
        pool_every: 2,
        hidden: vec![16],
        dropout: Ratio(0.25),
        ..Cnn::new([4, 4, 8])
    };
    let network = Network::of(&Architecture::Cnn(vgg), &[1, 8, 8], 3).unwrap();
    assert_eq!(
        words(&network),
        "image conv3/1-4 relu conv3/1-4 relu average dropout0.25 conv3/1-8 relu \
         flatten linear16 relu dropout0.25 linear3"
    );
    assert_eq!(network.layers().nth(3).unwrap().inputs, 8 * 4 * 4);
    let flat = Cnn { pool: Pool::None, batch_norm: true, ..Cnn::new([4]) };
    let network = Network::of(&Architecture::Cnn(flat), &[1, 8, 8], 3).unwrap();
    assert_eq!(words(&network), "image conv3/1-4 norm relu flatten linear3");
    assert_eq!(network.layers().last().unwrap().inputs, 4 * 64);
}

fn resnet_of(depth: u32, width: u32) -> Architecture {
    Architecture::Resnet(Resnet { depth, width })
}

/// The network of the VC-ASGD paper: 552 layers as Keras counts.
#[test]
fn the_residual_network_of_depth_164_has_the_published_counts() {
    let network = Network::of(&resnet_of(164, Resnet::WIDTH), &[3, 32, 32], 10).unwrap();
    assert_eq!(network.parameter_count(), 4_972_746);
    assert_eq!(network.trainable_count(), 4_941_578);
}

#[test]
fn a_residual_network_is_built_as_published() {
    let network = Network::of(&resnet_of(20, 4), &[1, 8, 8], 10).unwrap();
    let block = |stride: u64, inner: u64, outputs: u64, join: &str| {
        format!(
            "fork norm relu conv1/{stride}-{inner} norm relu conv3/1-{inner} \
             norm relu conv1/1-{outputs} {join}"
        )
    };
    let stage = |stride, inner, outputs| {
        let first = block(stride, inner, outputs, &format!("project{outputs}"));
        format!("{first} {}", block(1, inner, outputs, "join"))
    };
    let stages = [stage(1, 4, 16), stage(2, 16, 32), stage(2, 32, 64)].join(" ");
    let expected = format!("image conv3/1-4 norm relu {stages} norm relu mean linear10");
    assert_eq!(words(&network), expected);
    let sides: Vec<u64> = network
        .layers()
        .filter_map(|layer| match layer.kind {
            LayerKind::Convolution { kernel: 3, height, .. } => Some(height),
            _ => None,
        })
        .collect();
    assert_eq!(sides, [8, 8, 8, 4, 4, 2, 2]);
}

#[test]
fn a_residual_network_costs_what_its_convolutions_do() {
    // Depth 11, width 1, over 2x2 images: one block a stage.
    let network = Network::of(&resnet_of(11, 1), &[1, 2, 2], 2).unwrap();
    let stem = 4 * (9 + 1); // at 4 places: 3x3, norm
    let first = 4 * (1 + 1 + 1 + 9 + 1 + 4 + 4); // norm, 1, norm, 3x3, norm, 4, projection
    // At 4 places: norm of 4 channels. At 1 place: 4 to 4, norm, 3x3, norm, 4 to 8, projection.
    let second = 4 * 4 + (16 + 4 + 16 * 9 + 4 + 32 + 32);
    let third = 8 + (64 + 8 + 64 * 9 + 8 + 128 + 128);
    let end = 16 + 16 * 2;
    assert_eq!(network.flops_per_row(), 2 * (stem + first + second + third + end));
    assert_eq!(network.widest(), 16);
}

#[test]
fn a_residual_network_takes_images_of_any_size() {
    for (height, width) in [(1, 1), (1, 5), (7, 3), (28, 28), (33, 31)] {
        for channels in [1, 3] {
            Network::of(&resnet_of(11, 2), &[channels, height, width], 4).unwrap();
        }
    }
}

#[test]
fn invalid_networks_are_refused_with_the_reason() {
    let refusal = |a: &Architecture, shape: &[u32], outputs| {
        Network::of(a, shape, outputs).unwrap_err().to_string()
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
    assert_eq!(
        refusal(&resnet_of(20, 4), &[64], 2),
        "`resnet` needs rows of shape [channels, height, width], these are [64]"
    );
    for depth in [0, 2, 3, 21, 1010] {
        assert_eq!(
            refusal(&resnet_of(depth, 4), &[1, 8, 8], 2),
            format!("`depth` is {depth}, which isn't 9n + 2 (11, 20, 29 and so on, up to 1001)")
        );
    }
    assert_eq!(refusal(&resnet_of(11, 0), &[1, 8, 8], 2), "`width` has a layer of size 0");
    let never = Architecture::Cnn(Cnn { pool_every: 0, ..Cnn::new([4]) });
    assert_eq!(refusal(&never, &[1, 8, 8], 2), "`pool_every` has a layer of size 0");
    assert!(refusal(&mlp_of(&[1; 2000]), &[8], 2).contains("2000 layers"));
    assert!(refusal(&mlp_of(&[u32::MAX]), &[u32::MAX, u32::MAX], 2).contains("more than"));
    assert!(refusal(&mlp_of(&[1 << 16, 1 << 16]), &[8], 2).contains("more than"));
}

#[test]
fn augmentation_takes_images_that_are_wide_enough() {
    let optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
    let plain = TrainingConfig::new(1, 8, Loss::CrossEntropy, optimizer);
    let told = |crop, shape: &[u32]| {
        let augment = Some(Augment { crop, flip: true });
        let training = TrainingConfig { augment, ..plain };
        let config = TrialConfig { model: mlp_of(&[4]), training };
        validate(&config, shape, 2).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(told(4, &[3, 4, 9]), Ok(()));
    let narrow = "`crop` is 5, more than the images' shorter side, 4";
    assert_eq!(told(5, &[3, 4, 9]), Err(narrow.into()));
    let flat = "`augment` needs rows of shape [channels, height, width], these are [108]";
    assert_eq!(told(1, &[108]), Err(flat.into()));
}

proptest! {
    #[test]
    fn counts_are_those_of_the_parameters(
        sizes in prop::collection::vec(1u32..40, 1..5),
        shape in prop::collection::vec(1u32..12, 3),
        outputs in 1u32..12,
    ) {
        let normed = Cnn { hidden: sizes.clone(), batch_norm: true, ..Cnn::new(sizes.clone()) };
        let resnet = resnet_of(11, sizes[0]);
        for architecture in
            [mlp_of(&sizes), cnn_of(&sizes), Architecture::Cnn(normed), resnet]
        {
            let network = Network::of(&architecture, &shape, outputs).unwrap();
            let numbers = |p: Parameter| p.shape.iter().product::<u64>();
            let trained: u64 = network.parameters().map(numbers).sum();
            prop_assert_eq!(trained, network.trainable_count());
            let all: u64 = trained + network.buffers().map(numbers).sum::<u64>();
            prop_assert_eq!(all, network.parameter_count());
        }
    }

    #[test]
    fn any_sizes_are_answered_without_overflow(
        sizes in prop::collection::vec(any::<u32>(), 0..5),
        shape in prop::collection::vec(any::<u32>(), 0..5),
        outputs in any::<u32>(),
    ) {
        let _ = Network::of(&mlp_of(&sizes), &shape, outputs);
        let _ = Network::of(&cnn_of(&sizes), &shape, outputs);
        let first = sizes.first().copied().unwrap_or(11);
        let _ = Network::of(&resnet_of(first, first), &shape, outputs);
        let _ = Network::of(&resnet_of(11, first), &shape, outputs);
    }
}
