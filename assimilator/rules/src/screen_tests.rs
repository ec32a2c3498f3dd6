//! Every refusal of `screen`, by what a host could do wrong.

use super::*;
use proptest::prelude::*;
use sojourn_codec::{Tensor, encode};
use sojourn_model::initial_checkpoint;
use sojourn_protocol::{
    ids::{Epoch, JobId, ShardId, TrialId, Version},
    manifest::{Scaling, Shard, Targets},
    position::Position,
    report::Sums,
    spec::{Architecture, Loss, Mlp, Optimizer, OptimizerName, TrainingConfig, TrialConfig},
    unit::{Base, NextHop, TrialContext},
};

fn hop() -> Hop {
    let optimizer = Optimizer { momentum: 0.9, ..Optimizer::new(OptimizerName::Sgd, 0.1) };
    let training = TrainingConfig::new(2, 4, Loss::CrossEntropy, optimizer);
    let context = TrialContext {
        config: TrialConfig { model: Architecture::mlp([3]), training },
        columns: Vec::new(),
        shape: vec![2],
        outputs: 2,
        scaling: Scaling::None,
        targets: Targets::Plain,
        total_steps: 12,
        pinned_threads: None,
    };
    let blob = BlobRef { sha256: Digest::of(b"shard"), bytes: 5 };
    Hop {
        job: JobId(1),
        trial: TrialId(4),
        base: Base::Checkpoint { version: Version(2), blob },
        start: Position { epoch: Epoch(1), shard: ShardId(0), batch: 0, step: 6 },
        shard: Shard { blob, rows: 10 },
        seed: 99,
        context: context.into(),
        then: Vec::new(),
        until: None,
    }
}

fn layout() -> CheckpointLayout {
    CheckpointLayout::of(&hop().context).unwrap()
}

fn lineage() -> Lineage {
    Lineage { hop_seed: 99, trial: TrialId(4), position: hop().position_at(3) }
}

fn upload(lineage: Lineage) -> Vec<u8> {
    initial_checkpoint(&hop().context, 1, lineage).unwrap()
}

fn tensors() -> Vec<Tensor> {
    let file = upload(lineage());
    let own = |view: TensorView<'_>| Tensor {
        data: view.data.to_vec(),
        dtype: view.dtype,
        shape: view.shape,
        name: view.name,
    };
    decode(&file).unwrap().into_iter().map(own).collect()
}

fn report(upload: &[u8]) -> Trained {
    Trained {
        base: Version(2),
        checkpoint: BlobRef { sha256: Digest::of(upload), bytes: upload.len() as u64 },
        end: hop().position_at(3),
        sums: Sums::default(),
        train_micros: 1,
    }
}

fn screen<'a>(
    layout: &CheckpointLayout,
    hop: &Hop,
    trained: &Trained,
    upload: &'a [u8],
) -> Result<Checked<'a>, Refusal> {
    super::screen(layout, hop, trained, Digest::of(upload), upload)
}

fn refusal(upload: &[u8]) -> Refusal {
    screen(&layout(), &hop(), &report(upload), upload).unwrap_err()
}

#[test]
fn a_good_checkpoint_passes() {
    let file = upload(lineage());
    let checked = screen(&layout(), &hop(), &report(&file), &file).unwrap();
    assert_eq!(checked.lineage, lineage());
    assert_eq!(checked.checkpoint.sha256, Digest::of(&file));
    assert_eq!(checked.tensors.len(), layout().tensors().len());
}

#[test]
fn a_partial_checkpoint_passes_where_report_and_bytes_agree() {
    let end = hop().position_at(2);
    let file = upload(Lineage { position: end, ..lineage() });
    let trained = Trained { end, ..report(&file) };
    assert!(screen(&layout(), &hop(), &trained, &file).is_ok());
}

#[test]
fn of_several_hops_in_a_row_the_one_that_it_ended_in_counts() {
    let blob = BlobRef { sha256: Digest::of(b"other"), bytes: 5 };
    let shard = Shard { blob, rows: 5 };
    let leg = |n, seed| NextHop { shard_id: ShardId(n), shard, seed };
    let hop = Hop { then: vec![leg(4, 100), leg(2, 101)], ..hop() };
    let seed_of = |shard| match shard {
        0 => 99,
        4 => 100,
        _ => 101,
    };
    let screened = |hop_seed, position, end| {
        let file = upload(Lineage { hop_seed, position, ..lineage() });
        let trained = Trained { end, ..report(&file) };
        screen(&layout(), &hop, &trained, &file).map(|checked| checked.lineage.position)
    };
    let at = |shard, batch, step| Position { shard: ShardId(shard), batch, step, ..hop.start };
    // Batches of 4: 3 and twice 2, from step 6 on.
    for end in [at(0, 1, 7), at(0, 3, 9), at(4, 1, 10), at(4, 2, 11), at(2, 1, 12), at(2, 2, 13)] {
        assert_eq!(screened(seed_of(end.shard.0), end, end), Ok(end));
    }
    for end in [at(4, 1, 12), at(4, 3, 12), at(2, 2, 11), at(4, 0, 9)] {
        let error = screened(seed_of(end.shard.0), end, end).unwrap_err();
        assert!(matches!(error, Refusal::Position { .. }), "{error}");
    }
    let error = screened(100, at(2, 1, 12), at(2, 1, 12)).unwrap_err();
    assert!(matches!(error, Refusal::Hop { .. }), "another hop's seed: {error}");
    let error = screened(99, at(0, 3, 9), at(4, 2, 11)).unwrap_err();
    assert!(matches!(error, Refusal::Hop { .. }), "not what was reported: {error}");
}

#[test]
fn a_wrong_base_is_refused() {
    let file = upload(lineage());
    let trained = Trained { base: Version(1), ..report(&file) };
    let error = screen(&layout(), &hop(), &trained, &file).unwrap_err();
    assert_eq!(error.to_string(), "trained from version 1, the unit's base is version 2");
}

#[test]
fn other_bytes_than_reported_are_refused() {
    let file = upload(lineage());
    let trained = report(&file);
    let short = &file[..file.len() - 1];
    let error = screen(&layout(), &hop(), &trained, short).unwrap_err();
    assert!(matches!(error, Refusal::Size { .. }));
    let mut altered = file.clone();
    *altered.last_mut().unwrap() ^= 1;
    let error = screen(&layout(), &hop(), &trained, &altered).unwrap_err();
    assert!(matches!(error, Refusal::Digest { .. }));
}

#[test]
fn what_is_no_safetensors_is_refused() {
    let error = refusal(b"\x89PNG and so on, which is no checkpoint");
    assert!(error.to_string().contains("not a safetensors file"), "{error}");
}

#[test]
fn other_tensors_are_refused() {
    let mut missing = tensors();
    missing.retain(|tensor| tensor.name != "layers.1.bias");
    let error = refusal(&encode(&missing).unwrap());
    assert_eq!(error, Refusal::MissingTensor("layers.1.bias".into()));

    for extra in ["a", "layers.0.extra", "z"] {
        let mut more = tensors();
        more.push(Tensor::f32(extra, [1u64], &[0.0]));
        let error = refusal(&encode(&more).unwrap());
        assert_eq!(error, Refusal::UnknownTensor(extra.into()));
    }

    let mut reshaped = tensors();
    reshaped.iter_mut().find(|t| t.name == "layers.0.weight").unwrap().shape = vec![2, 3];
    let error = refusal(&encode(&reshaped).unwrap());
    assert_eq!(error.to_string(), "tensor `layers.0.weight` has the shape [2, 3], expected [3, 2]");

    let mut retyped = tensors();
    let tensor = retyped.iter_mut().find(|t| t.name == "layers.1.bias").unwrap();
    *tensor = Tensor::i64("layers.1.bias", [2u64], &[0, 0]);
    let error = refusal(&encode(&retyped).unwrap());
    assert_eq!(error.to_string(), "tensor `layers.1.bias` holds I64, expected F32");

    assert_eq!(refusal(&encode(&[]).unwrap()), Refusal::MissingTensor("layers.0.bias".into()));
}

#[test]
fn a_non_finite_value_is_refused_wherever_it_is() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for name in ["layers.0.weight", "optimizer.momentum_buffer.layers.1.bias"] {
            let mut broken = tensors();
            let tensor = broken.iter_mut().find(|t| t.name == name).unwrap();
            tensor.data[4..8].copy_from_slice(&bad.to_le_bytes());
            let error = refusal(&encode(&broken).unwrap());
            assert!(
                matches!(&error, Refusal::NonFinite { tensor, index: 1, .. } if tensor == name),
                "{error}"
            );
        }
    }
}

#[test]
fn another_lineage_is_refused() {
    let good = lineage();
    let position = good.position;
    let other = |lineage| refusal(&upload(lineage));
    let error = other(Lineage { trial: TrialId(5), ..good });
    assert_eq!(error, Refusal::Trial { expected: TrialId(4), actual: TrialId(5) });
    let error = other(Lineage { hop_seed: 98, ..good });
    assert!(matches!(error, Refusal::Hop { .. }));
    for moved in
        [Position { epoch: Epoch(0), ..position }, Position { shard: ShardId(1), ..position }]
    {
        let error = other(Lineage { position: moved, ..good });
        assert!(matches!(error, Refusal::Hop { .. }), "{error}");
    }
    for moved in [
        Position { batch: 0, ..position },
        Position { batch: 4, ..position },
        Position { step: 8, ..position },
        hop().position_at(2), // right for the unit, but not what was reported
    ] {
        let error = other(Lineage { position: moved, ..good });
        assert!(matches!(error, Refusal::Position { .. }), "{error}");
    }
    let mut garbled = tensors();
    let tensor = garbled.iter_mut().find(|t| t.name == LINEAGE).unwrap();
    *tensor = Tensor::i64(LINEAGE, [6u64], &[99, -4, 1, 0, 3, 9]);
    assert!(matches!(refusal(&encode(&garbled).unwrap()), Refusal::Lineage(_)));
}

proptest! {
    #[test]
    fn one_changed_byte_is_found(at in any::<prop::sample::Index>(), flip in 1u8..) {
        let file = upload(lineage());
        let mut altered = file.clone();
        let at = at.index(file.len());
        altered[at] ^= flip;
        prop_assert!(screen(&layout(), &hop(), &report(&file), &altered).is_err());
    }

    #[test]
    fn random_uploads_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(screen(&layout(), &hop(), &report(&bytes), &bytes).is_err());
    }
}

/// A network with batch norm under Adam, with one number of a tensor replaced.
fn with_number(tensor: &str, value: f32) -> Result<(), Refusal> {
    let mut context = TrialContext::clone(&hop().context);
    let mlp = Mlp { hidden: vec![3], batch_norm: true, ..Mlp::default() };
    context.config.model = Architecture::Mlp(mlp);
    context.config.training.optimizer = Optimizer::new(OptimizerName::Adam, 0.1);
    let layout = CheckpointLayout::of(&context).unwrap();
    let mut file = initial_checkpoint(&context, 1, lineage()).unwrap();
    let at = usize::try_from(layout.range(tensor).unwrap().start).unwrap() + 4;
    file[at..at + 4].copy_from_slice(&value.to_le_bytes());
    check_values(&layout, &decode(&file).unwrap())
}

#[test]
fn a_negative_mean_of_squares_is_refused() {
    for name in ["optimizer.exp_avg_sq.layers.0.weight", "layers.1.running_var"] {
        let error = with_number(name, -1e-9).unwrap_err();
        assert!(matches!(&error, Refusal::Negative { tensor, index: 1, .. } if tensor == name));
        assert_eq!(with_number(name, 1.0), Ok(()));
    }
    for name in ["optimizer.exp_avg.layers.0.weight", "layers.1.running_mean"] {
        assert_eq!(with_number(name, -1.0), Ok(()));
    }
}
