//! Graphs that PyTorch exported, against the losses and sums that it computed itself (python/tests/make_fixtures.py).

use super::tests::{architecture, evaluate_over, initial};
use crate::fixture::{World, context};
use serde_json::Value;
use sojourn_codec::{Tensor as Stored, encode};
use sojourn_model::CheckpointLayout;
use sojourn_protocol::{
    digest::Digest,
    manifest::Shard,
    seeds,
    spec::{Loss, Optimizer, OptimizerName, TrainingConfig},
    unit::{Base, Hop},
};
use std::{fs, path::Path};

/// An exported model's graph in `tests/graphs`, and the numbers that PyTorch made of it over made-up rows.
struct Fixture {
    name: String,
    file: Vec<u8>,
    json: Value,
}

fn fixtures() -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graphs");
    let mut fixtures = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let json = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let file = fs::read(path.with_extension("safetensors")).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            fixtures.push(Fixture { name, file, json });
        }
    }
    fixtures.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(fixtures.len() >= 10, "{} fixtures", fixtures.len());
    fixtures
}

impl Fixture {
    fn number(&self, pointer: &str) -> Option<u64> {
        self.json.pointer(pointer).and_then(Value::as_u64)
    }

    /// The hop over all rows, which come in the order of PyTorch's batches.
    fn hop(&self, world: &mut World) -> Hop {
        let columns = sojourn_graph::Graph::read(&self.file).unwrap().columns;
        let column = |name| columns.iter().find(|column| column.name == name);
        let shape = &column("x").unwrap().shape;
        let by_class = column("y").is_none_or(|y| y.dtype == sojourn_model::Dtype::I64);
        let optimizer = Optimizer {
            weight_decay: self.json["optimizer"]["weight_decay"].as_f64().unwrap(),
            ..Optimizer::new(OptimizerName::Adamw, self.json["optimizer"]["lr"].as_f64().unwrap())
        };
        let loss = if by_class { Loss::CrossEntropy } else { Loss::Mse };
        let batch_size = u32::try_from(self.number("/batch_size").unwrap()).unwrap();
        let model = architecture(world, &self.file, 1);
        let mut context = context(model);
        context.config.training = TrainingConfig::new(1, batch_size, loss, optimizer);
        context.shape = shape.iter().map(|side| u32::try_from(*side).unwrap()).collect();
        context.outputs =
            if by_class { u32::try_from(self.number("/classes").unwrap()).unwrap() } else { 1 };
        let seed = self.number("/hop_seed").unwrap();
        let features = shape.iter().product();
        let rows = u32::try_from(self.number("/rows/count").unwrap()).unwrap();
        world.shard = self.shard(world, features, &seeds::row_order(seed, rows), by_class);
        let base = Base::Initial { seed: self.number("/weights_seed").unwrap() };
        Hop { base, seed, ..world.hop(context) }
    }

    /// The rows in the order of PyTorch's evaluation, in which chance meets them.
    fn in_order(&self, world: &mut World, hop: &Hop) -> Shard {
        let features = hop.context.shape.iter().map(|side| u64::from(*side)).product();
        let by_class = hop.context.config.training.loss == Loss::CrossEntropy;
        self.shard(world, features, &(0..hop.shard.rows).collect::<Vec<_>>(), by_class)
    }

    /// Made-up rows, as `sojourn.rows` of the Python package makes them. The first lies at the first place of `order`.
    fn shard(&self, world: &mut World, features: u64, order: &[u32], by_class: bool) -> Shard {
        use rand_core::Rng as _;
        let rows = u32::try_from(self.number("/rows/count").unwrap()).unwrap();
        let mut rng = seeds::stream("made-up-rows", &[self.number("/rows/seed").unwrap()]);
        let tokens = self.number("/rows/tokens_from").zip(self.number("/rows/vocabulary"));
        let unit = |word: u32| {
            #[expect(clippy::cast_possible_truncation, reason = "24 bits fit")]
            let number = (f64::from(word >> 8) / 16_777_216.0) as f32;
            number
        };
        let mut row = |_| {
            let of = |at: u64| match (tokens, rng.next_u32()) {
                (Some((from, vocabulary)), word) if at >= from => {
                    f32::from(u16::try_from(u64::from(word) % vocabulary).unwrap())
                }
                (_, word) => unit(word),
            };
            (0..features).map(of).collect::<Vec<f32>>()
        };
        let x: Vec<Vec<f32>> = (0..rows).map(&mut row).collect();
        let y: Vec<u32> = (0..rows).map(|_| rng.next_u32()).collect();
        let mut places = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(place, row)| places[*place as usize] = row);
        let x: Vec<f32> = places.iter().flat_map(|row: &usize| x[*row].clone()).collect();
        let classes = self.number("/classes").unwrap_or(1);
        let y = match by_class {
            true => {
                let y = places.iter().map(|row| (u64::from(y[*row]) % classes).cast_signed());
                Stored::i64("y", [u64::from(rows)], &y.collect::<Vec<_>>())
            }
            false => {
                let y = places.iter().map(|row| unit(y[*row]));
                Stored::f32("y", [u64::from(rows)], &y.collect::<Vec<_>>())
            }
        };
        let x = Stored::f32("x", [u64::from(rows), features], &x);
        Shard { blob: world.put(&encode(&[x, y]).unwrap()), rows }
    }

    /// The loss of each batch; of several stages together.
    fn losses(&self) -> Vec<f64> {
        let of_stages = |stages: &Value| {
            stages.as_array().unwrap().iter().map(|loss| loss.as_f64().unwrap()).sum()
        };
        self.json["losses"].as_array().unwrap().iter().map(of_stages).collect()
    }
}

/// In which of the batches losses are compared. After a few steps of this model, whose batch norms see one place of eight
/// rows, a difference in the last bit of an update is one in the first digit.
const CHAOTIC: (&str, usize) = ("resnet50", 3);

fn close(actual: f64, expected: f64, by: f64) -> bool {
    (actual - expected).abs() <= by * expected.abs()
}

#[test]
fn exported_models_train_as_in_pytorch_and_cut_to_the_same_bytes() {
    let mut arrays = 0;
    for fixture in fixtures() {
        let name = &fixture.name;
        let mut world = World::new();
        let hop = fixture.hop(&mut world);
        let batches = hop.batches();
        let (whole, bytes) = world.train(&hop, batches).unwrap();
        let layout = CheckpointLayout::of(&hop.context).unwrap();
        sojourn_rules::screen(&layout, &hop, &whole, Digest::of(&bytes), &bytes).unwrap();
        let (mut rest, mut losses, mut last) = (hop.clone(), Vec::new(), Vec::new());
        for batch in 1..=batches {
            let (part, checkpoint) = world.train(&rest, batch).unwrap();
            losses.push(part.sums.mean_loss());
            rest = world.rest(&hop, &part, &checkpoint);
            last = checkpoint;
        }
        assert!(last == bytes, "{name}: cut before each batch");

        // PyTorch's AdamW rounds its update elsewhere; the first loss comes before any.
        let expected = fixture.losses();
        assert_eq!(losses.len(), expected.len(), "{name}");
        let compared = if name == CHAOTIC.0 { CHAOTIC.1 } else { losses.len() };
        for (at, (loss, expected)) in losses.iter().zip(&expected).take(compared).enumerate() {
            let by = if at == 0 { 1e-6 } else { 1e-4 };
            assert!(close(*loss, *expected, by), "{name}, batch {at}: {loss}, not {expected}");
        }
        world.shard = fixture.in_order(&mut world, &hop);
        for (when, checkpoint) in [("before", initial(&hop, &fixture.file)), ("after", bytes)] {
            let blob = world.put(&checkpoint);
            let evaluated = evaluate_over(&world, &hop.context, blob, vec![world.shard]).unwrap();
            let sums = &evaluated.shards[0];
            let expected = &fixture.json[format!("sums_{when}")];
            assert_eq!(sums.rows, u64::from(world.shard.rows));
            if when == "before" || name != CHAOTIC.0 {
                let expected = expected["loss"].as_f64().unwrap();
                assert!(close(sums.loss, expected, 1e-4), "{name} {when}: {sums:?}");
            }
            if when == "before" {
                let correct = sums.named.get("accuracy").copied();
                assert_eq!(correct, expected["accuracy"].as_f64(), "{name}");
                for (sum, array) in &evaluated.arrays {
                    let lines = expected[sum].as_array().unwrap().iter();
                    let lines = lines.flat_map(|line| line.as_array().unwrap());
                    let expected: Vec<f64> = lines.map(|number| number.as_f64().unwrap()).collect();
                    assert_eq!(array.numbers, expected, "{name}: {sum}");
                    arrays += 1;
                }
            }
        }
    }
    assert_eq!(arrays, 2, "a matrix and a histogram");
}
