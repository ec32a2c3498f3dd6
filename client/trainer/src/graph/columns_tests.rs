//! Graphs over columns by name, against the losses and sums of PyTorch (python/tests/make_fixtures.py), and shards that
//! aren't what the trial's columns say.

use super::tests::{architecture, evaluate, initial};
use crate::{
    error::TrainError,
    fixture::{World, context},
};
use serde_json::Value;
use sojourn_codec::{Tensor as Stored, decode, encode};
use sojourn_protocol::{
    column::Column,
    manifest::Shard,
    spec::{Loss, Optimizer, OptimizerName, TrainingConfig},
    unit::{Base, Hop, TrialContext},
};
use std::{collections::BTreeMap, fs, path::Path};

/// The fixtures, with the rows that a trial sees in a stored one.
const FIXTURES: [(&str, f64); 3] =
    [("columns_captioner", 1.0), ("columns_lm", 1.0), ("columns_lm_halves", 2.0)];

struct Fixture {
    graph: Vec<u8>,
    shard: Vec<u8>,
    json: Value,
}

impl Fixture {
    fn read(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graphs/columns");
        let read = |end: &str| fs::read(folder.join(format!("{name}{end}"))).unwrap();
        let json = serde_json::from_slice(&read(".json")).unwrap();
        Self { graph: read(".safetensors"), shard: read(".rows.safetensors"), json }
    }

    /// The columns as a manifest has them; the request of the exporter has them as a batch does.
    fn columns(&self) -> Vec<Column> {
        let described = self.json["columns"].as_object().unwrap();
        let lengths: Vec<&Value> =
            described.values().filter_map(|column| column.get("length")).collect();
        let columns =
            described.iter().filter(|(name, _)| !lengths.contains(&&Value::from(name.as_str())));
        columns
            .map(|(name, column)| {
                let shape: Vec<u32> = serde_json::from_value(column["shape"].clone()).unwrap();
                let is_sequence = column.get("length").is_some();
                Column {
                    name: name.clone(),
                    dtype: serde_json::from_value(column["dtype"].clone()).unwrap(),
                    longest: is_sequence.then(|| shape[0]),
                    shape: if is_sequence { shape[1..].to_vec() } else { shape },
                    values: None,
                    classes: Vec::new(),
                    windows: column.get("window").is_some(),
                }
            })
            .collect()
    }

    fn number(&self, pointer: &str) -> u64 {
        self.json.pointer(pointer).and_then(Value::as_u64).unwrap()
    }

    fn hop(&self, world: &mut World) -> Hop {
        let mut context = context(architecture(world, &self.graph, 1));
        let rate = |name: &str| self.json["optimizer"][name].as_f64().unwrap();
        let optimizer = Optimizer {
            weight_decay: rate("weight_decay"),
            ..Optimizer::new(OptimizerName::Adamw, rate("lr"))
        };
        let batch_size = u32::try_from(self.number("/batch_size")).unwrap();
        context.config.training = TrainingConfig::new(1, batch_size, Loss::Own, optimizer);
        context.shape = Vec::new();
        context.columns = self.columns();
        context.outputs = 1;
        let rows = u32::try_from(self.number("/rows/count")).unwrap();
        world.shard = Shard { blob: world.put(&self.shard), rows };
        let base = Base::Initial { seed: self.number("/weights_seed") };
        Hop { base, seed: self.number("/hop_seed"), ..world.hop(context) }
    }
}

fn close(actual: f64, expected: f64) -> bool {
    (actual - expected).abs() <= 1e-5 * expected.abs()
}

#[test]
fn graphs_over_columns_train_as_in_pytorch_and_cut_to_the_same_bytes() {
    for (name, windows) in FIXTURES {
        let fixture = Fixture::read(name);
        let mut world = World::new();
        let hop = fixture.hop(&mut world);
        let batches = hop.batches();
        let (_, bytes) = world.train(&hop, batches).unwrap();
        let (mut rest, mut losses, mut last) = (hop.clone(), Vec::new(), Vec::new());
        for batch in 1..=batches {
            let (part, checkpoint) = world.train(&rest, batch).unwrap();
            losses.push(part.sums.mean_loss());
            rest = world.rest(&hop, &part, &checkpoint);
            last = checkpoint;
        }
        assert!(last == bytes, "{name}: cut before each batch");
        let expected = fixture.json["losses"].as_array().unwrap();
        assert_eq!(losses.len(), expected.len(), "{name}");
        for (loss, expected) in losses.iter().zip(expected) {
            assert!(close(*loss, expected[0].as_f64().unwrap()), "{name}: {loss}, not {expected}");
        }
        for (when, checkpoint) in [("before", initial(&hop, &fixture.graph)), ("after", bytes)] {
            let blob = world.put(&checkpoint);
            let sums = evaluate(&world, &hop.context, blob);
            assert_eq!(sums.rows, u64::from(world.shard.rows), "stored rows are counted");
            let all: BTreeMap<String, f64> =
                serde_json::from_value(fixture.json[format!("sums_{when}")].clone()).unwrap();
            for (sum, expected) in all {
                let actual = if sum == "loss" { sums.loss } else { sums.named[&sum] };
                assert!(close(actual, expected / windows), "{name} {when} {sum}: {actual}");
            }
        }
    }
}

/// Why a hop over another shard, or by another context, is refused.
fn refused(fixture: &Fixture, shard: &[Stored], change: impl Fn(&mut TrialContext)) -> String {
    let mut world = World::new();
    let mut hop = fixture.hop(&mut world);
    let mut context = TrialContext::clone(&hop.context);
    change(&mut context);
    hop.context = context.into();
    hop.shard.blob = world.put(&encode(shard).unwrap());
    match world.train(&hop, 1) {
        Err(error @ TrainError::Unit(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn shards_and_columns_that_do_not_fit_are_refused_in_words() {
    let fixture = Fixture::read("columns_captioner");
    let tensors = || -> Vec<Stored> {
        let views = decode(&fixture.shard).unwrap();
        let own = views.iter().map(|view| Stored {
            name: view.name.clone(),
            dtype: view.dtype,
            shape: view.shape.clone(),
            data: view.data.to_vec(),
        });
        own.collect()
    };
    let with = |name: &str, change: &dyn Fn(&mut Stored)| {
        let mut all = tensors();
        change(all.iter_mut().find(|tensor| tensor.name == name).unwrap());
        refused(&fixture, &all, |_| ())
    };
    let ends = |numbers: [i64; 2]| {
        move |tensor: &mut Stored| {
            for (place, number) in tensor.data.chunks_exact_mut(8).zip(numbers) {
                place.copy_from_slice(&number.to_le_bytes());
            }
        }
    };
    let outside = "a row of the shard's `caption` ends before it begins, or is too long";
    for wrong in [[-1, 2], [3, 2], [7, 8], [i64::MAX, i64::MIN]] {
        assert_eq!(with("caption.ends", &ends(wrong)), outside, "{wrong:?}");
    }
    let text = with("caption", &|caption| {
        caption.shape[0] += 1;
        caption.data.extend([0; 8]);
    });
    assert_eq!(text, "the rows of the shard's `caption` aren't all that it holds");
    let text = with("image", &|image| image.name = "picture".into());
    assert_eq!(text, "the shard has no `image`");
    let text = with("label", &|label| {
        label.shape[0] -= 1;
        label.data.truncate(label.data.len() - 8);
    });
    assert_eq!(text, "the shard has other rows of `label`");
    let mut all = tensors();
    all.push(Stored::f32("z", [1], &[0.0]));
    assert_eq!(refused(&fixture, &all, |_| ()), "the shard has `z`, which is no column");

    let by = |change: &dyn Fn(&mut TrialContext)| refused(&fixture, &tensors(), change);
    let text = by(&|context| context.config.training.loss = Loss::CrossEntropy);
    assert_eq!(text, "columns by name go with a loss of the model's own");
    let text = by(&|context| context.columns[0].longest = Some(7));
    assert!(text.contains("that of the data is I64 with rows of shape [7]"), "{text}");
    let mut all = tensors();
    all.retain(|tensor| tensor.name != "image");
    let text = refused(&fixture, &all, |context| {
        context.columns.retain(|column| column.name != "image");
    });
    assert!(text.contains("the data has no such column; it has caption"), "{text}");
}

#[test]
fn a_window_that_does_not_divide_the_stored_one_is_refused() {
    let fixture = Fixture::read("columns_lm_halves");
    let tokens = Stored::u8("tokens", [59, 18], &[0; 59 * 18]);
    let text = refused(&fixture, &[tokens], |context| {
        context.columns[0].shape = vec![18];
    });
    assert!(text.contains("windows of 8 can't be cut of windows of 17"), "{text}");
}
