//! The steps of a forward pass against plain operations, and what differs between training and not.

use super::*;
use crate::fixture::{TORCH_RNG, World, context};
use sojourn_codec::decode;
use sojourn_model::{Lineage, initial_checkpoint};
use sojourn_protocol::spec::{Architecture, Cnn, Mlp, Pool, Ratio, Resnet};

use tch::{Device, Kind};

/// A model with its initial weights, and rows of shape `[1, 4, 4]` for it.
fn model(architecture: Architecture, rows: i64) -> (Model, Tensor) {
    model_over(architecture, 1, rows)
}

/// The same over so many channels.
fn model_over(architecture: Architecture, channels: u32, rows: i64) -> (Model, Tensor) {
    let mut context = context(architecture);
    context.shape = vec![channels, 4, 4];
    let checkpoint = initial_checkpoint(&context, 3, Lineage::initial(3)).unwrap();
    let model = Model::load(&context, &checkpoint, None, Device::Cpu).unwrap();
    let features = i64::from(channels) * 16;
    let x = Tensor::arange(rows * features, (Kind::Float, Device::Cpu)).view([rows, features]);
    (model, (x * 0.7).sin())
}

fn normed(hidden: u32) -> Architecture {
    Architecture::Mlp(Mlp { hidden: vec![hidden], batch_norm: true, dropout: Ratio(0.0) })
}

fn close(a: &Tensor, b: &Tensor) {
    assert_eq!(a.size(), b.size());
    let distance = (a - b).abs().max().double_value(&[]);
    assert!(distance < 1e-5, "{distance} away");
}

#[test]
fn batch_norm_goes_by_the_batch_and_moves_its_statistics_by_a_tenth() {
    let (model, x) = model(normed(5), 9);
    let [w0, gamma, beta, w1, b1] = &model.leaves[..] else { panic!("five parameters") };
    let inner = x.matmul(&w0.tr());
    let mean = inner.mean_dim(0, false, None);
    let squares = (&inner - &mean).square();
    let biased = squares.mean_dim(0, false, None);
    let scaled = (&inner - &mean) / (&biased + 1e-5).sqrt() * gamma + beta;
    let expected = scaled.relu().matmul(&w1.tr()) + b1;

    close(&forward(&model, &x, Mode::Train).unwrap(), &expected);
    let [running_mean, running_var] = model.buffers() else { panic!("two buffers") };
    close(running_mean, &(mean * 0.1));
    // PyTorch keeps the unbiased variance.
    close(running_var, &(squares.sum_dim_intlist(0, false, None) / 8.0 * 0.1 + 0.9));

    let scaled = (&inner - running_mean) / (running_var + 1e-5).sqrt() * gamma + beta;
    let expected = scaled.relu().matmul(&w1.tr()) + b1;
    let before = running_mean.copy();
    close(&forward(&model, &x, Mode::Evaluate).unwrap(), &expected);
    assert_eq!(*running_mean, before, "evaluation moved the statistics");
    // A row's output doesn't depend on the rows beside it.
    let alone = forward(&model, &x.narrow(0, 4, 1), Mode::Evaluate).unwrap();
    close(&alone, &expected.narrow(0, 4, 1));
}

#[test]
fn one_value_of_a_channel_goes_by_the_running_statistics() {
    let (model, x) = model(normed(5), 1);
    let trained = forward(&model, &x, Mode::Train).unwrap();
    close(&trained, &forward(&model, &x, Mode::Evaluate).unwrap());
    assert_eq!(model.buffers()[0].abs().max().double_value(&[]), 0.0);

    // 61 rows in batches of 60: the last batch has one.
    let world = World::new();
    let mut context = context(normed(5));
    context.config.training.batch_size = 60;
    let hop = world.hop(context);
    assert_eq!(hop.batches(), 2);
    let (trained, bytes) = world.train(&hop, 2).unwrap();
    assert_eq!(trained.sums.rows, 61);
    let tensors = decode(&bytes).unwrap();
    let name = "layers.1.running_var";
    let var = tensors.iter().find(|tensor| tensor.name == name).unwrap();
    assert!(var.f32s().unwrap().all(|value| value > 0.0 && value != 1.0), "moved by the first");
}

#[test]
fn dropout_drops_its_ratio_in_training_alone() {
    let mlp = Mlp { hidden: vec![20_000], batch_norm: false, dropout: Ratio(0.25) };
    let (model, x) = model(Architecture::Mlp(mlp), 1);
    let [w0, b0, w1, b1] = &model.leaves[..] else { panic!("four parameters") };
    let _ = w1.detach().fill_(0.0).narrow(0, 0, 1).fill_(1.0);
    let _ = b0.detach().fill_(1000.0);
    let inner = (x.matmul(&w0.tr()) + b0).relu();
    let sum = inner.sum(Kind::Double).double_value(&[]);
    let first = |mode| {
        let outputs = forward(&model, &x, mode).unwrap() - b1;
        outputs.double_value(&[0, 0])
    };
    assert!((first(Mode::Evaluate) / sum - 1.0).abs() < 1e-5);
    let _alone = TORCH_RNG.lock();
    tch::manual_seed(4);
    let dropped = first(Mode::Train) / sum;
    // What is left counts 4/3, so the mean stays; one deviation of it is 0.0041.
    assert!((dropped - 1.0).abs() < 0.02 && (dropped - 1.0).abs() > 1e-6, "{dropped}");
    tch::manual_seed(4);
    assert!((first(Mode::Train) / sum - dropped).abs() < 1e-12, "the seed says all");
    tch::manual_seed(5);
    assert!((first(Mode::Train) / sum - dropped).abs() > 1e-9);
}

/// The values that a convolution that passes its input on, and the pooling after it, make of 0 to 15.
fn pooled(pool: Pool) -> Vec<f64> {
    let (model, _) = model(Architecture::Cnn(Cnn { pool, ..Cnn::new([1]) }), 1);
    let [kernel, bias, weight, last] = &model.leaves[..] else { panic!("four parameters") };
    let _ = kernel.detach().fill_(0.0).view([9]).narrow(0, 4, 1).fill_(1.0);
    let _ = bias.detach().fill_(0.0);
    let _ = last.detach().fill_(0.0);
    let x = Tensor::arange(16, (Kind::Float, Device::Cpu)).view([1, 16]);
    let value = |at| {
        let _ = weight.detach().fill_(0.0).narrow(1, at, 1).fill_(1.0);
        forward(&model, &x, Mode::Evaluate).unwrap().double_value(&[0, 0])
    };
    (0..weight.size()[1]).map(value).collect()
}

#[test]
fn pooling_takes_the_largest_or_the_mean_or_all() {
    assert_eq!(pooled(Pool::Max), [5.0, 7.0, 13.0, 15.0]);
    assert_eq!(pooled(Pool::Average), [2.5, 4.5, 10.5, 12.5]);
    assert_eq!(pooled(Pool::None), (0..16).map(f64::from).collect::<Vec<_>>());
}

/// The published network, written out by its own names and from its description alone.
#[test]
fn a_resnet_computes_what_was_published() {
    for channels in [1, 3] {
        compare_with_the_published(channels);
    }
}

fn compare_with_the_published(channels: u32) {
    let resnet = Architecture::Resnet(Resnet { depth: 20, width: 3 });
    let (model, x) = model_over(resnet, channels, 6);
    let mut leaves = model.leaves.iter();
    let mut next = || leaves.next().unwrap();
    let norm_relu = |x: &Tensor, gamma: &Tensor, beta: &Tensor| {
        let dims = [0i64, 2, 3].as_slice();
        let mean = x.mean_dim(dims, true, None);
        let var = (x - &mean).square().mean_dim(dims, true, None);
        let scaled = (x - mean) / (var + 1e-5).sqrt();
        (scaled * gamma.view([1, -1, 1, 1]) + beta.view([1, -1, 1, 1])).relu()
    };
    let conv = |x: &Tensor, weight: &Tensor, bias: &Tensor, stride: i64| {
        let padding = weight.size()[2] / 2;
        x.conv2d(weight, Some(bias), [stride; 2], [padding; 2], [1, 1], 1)
    };
    let mut flow = conv(&x.view([6, i64::from(channels), 4, 4]), next(), next(), 1);
    flow = norm_relu(&flow, next(), next());
    for stage in 0..3 {
        for block in 0..2 {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let mut y = flow.shallow_clone();
            for stride in [stride, 1, 1] {
                y = norm_relu(&y, next(), next());
                y = conv(&y, next(), next(), stride);
            }
            if block == 0 {
                flow = conv(&flow, next(), next(), stride);
            }
            flow += y;
        }
    }
    flow = norm_relu(&flow, next(), next()).mean_dim([2i64, 3].as_slice(), false, None);
    let expected = flow.matmul(&next().tr()) + next();
    assert!(leaves.next().is_none());
    close(&forward(&model, &x, Mode::Train).unwrap(), &expected);
}

#[test]
fn pooling_without_a_gradient_gives_the_same_bytes() {
    for (channels, height, width) in [(1, 8, 8), (3, 5, 7), (16, 8, 8), (32, 2, 3)] {
        let count = 4 * channels * height * width;
        let images = (Tensor::arange(count, (Kind::Float, Device::Cpu)) * 0.7).sin();
        let images = images.view([4, channels, height, width]);
        let (one, other) = (max_pool(&images).unwrap(), gathered_max_pool(&images).unwrap());
        assert_eq!(one, other, "{channels} x {height} x {width}");
        assert!(other.is_contiguous());
    }
}
