//! Several hops in one unit: the bytes of each alone, wherever they are cut.

use crate::{
    data::Shards,
    error::TrainError,
    fixture::{TORCH_RNG, World, context, contexts, mlp},
    listener::Listener,
    unit,
};
use sojourn_codec::{Tensor, encode};
use sojourn_protocol::{
    digest::Digest,
    ids::{ShardId, Version},
    manifest::Shard,
    position::Position,
    report::{Sums, Trained},
    spec::Precision,
    time::Millis,
    trainer::{RunUnit, TrainerLine, TrainerUpdate},
    unit::{Base, Hop, NextHop, ShardSegment, TrialContext, Unit},
};
use std::{
    collections::BTreeMap,
    fs,
    ops::ControlFlow,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

/// A hop over three shards, the first from its third batch on, by a trial of everything that hops carry.
fn several(world: &mut World, context: TrialContext) -> Hop {
    let mut leg = |n: u32, rows: u32| {
        let numbers = (0..rows * 16).map(|at| f32::from(u8::try_from(at % (7 + n)).unwrap()));
        let x: Vec<f32> = numbers.collect();
        let y: Vec<i64> = (0..rows).map(|row| i64::from(row % 3)).collect();
        let rows_long = u64::from(rows);
        let x = Tensor::f32("x", [rows_long, 16], &x);
        let file = encode(&[x, Tensor::i64("y", [rows_long], &y)]).unwrap();
        let shard = Shard { blob: world.put(&file), rows };
        NextHop { shard_id: ShardId(n), shard, seed: u64::from(100 + n) }
    };
    let then = vec![leg(4, 21), leg(1, 5)];
    let whole = world.hop(context);
    let (part, bytes) = world.train(&whole, 2).unwrap();
    Hop { then, ..world.rest(&whole, &part, &bytes) }
}

/// The same hops one after the other: what each reports, and the last one's bytes.
fn each_alone(world: &mut World, hop: &Hop) -> (Vec<Trained>, Vec<u8>) {
    let (mut reports, mut last) = (Vec::new(), Vec::new());
    let mut base = hop.base;
    for ShardSegment { start, shard, seed, .. } in hop.segments() {
        let alone = Hop { base, start, shard, seed, then: Vec::new(), ..hop.clone() };
        let (trained, bytes) = world.train(&alone, alone.batches()).unwrap();
        let version = Version(base.version().0 + 1);
        base = Base::Checkpoint { version, blob: world.put(&bytes) };
        (reports, last) = ([reports, vec![trained]].concat(), bytes);
    }
    (reports, last)
}

#[test]
fn several_hops_in_a_row_end_in_the_same_bytes_as_each_alone() {
    for context in contexts() {
        let mut world = World::new();
        let hop = several(&mut world, context);
        let (alone, bytes) = each_alone(&mut world, &hop);
        let (trained, again) = world.train(&hop, last_batch(&hop)).unwrap();
        assert_eq!(again, bytes);
        let last = alone.last().unwrap();
        assert_eq!((trained.end, trained.checkpoint), (last.end, last.checkpoint));
        assert_eq!(trained.base, hop.base.version());
        let sums = alone.iter().fold(Sums::default(), |all, one| all.plus(&one.sums));
        assert_eq!(trained.sums, sums);
    }
}

#[test]
fn several_hops_cut_or_kept_anywhere_go_on_to_the_same_bytes() {
    let mut context = context(mlp());
    context.config.training.precision = Precision::Bf16;
    let mut world = World::new();
    let hop = several(&mut world, context);
    let (_, bytes) = each_alone(&mut world, &hop);
    let keep_every = Some(Millis(0));
    for cut in 1..hop.to_train() {
        let request = RunUnit { keep_every, ..world.request(Unit::Train(hop.clone())) };
        let (mut progress, mut kept) = (Vec::new(), None);
        let mut listener = |told| {
            match told {
                TrainerUpdate::Progress(told) => progress.push(told),
                TrainerUpdate::PartSaved(trained) => kept = kept.take().or(Some(trained)),
                other => panic!("{other:?}"),
            }
            let done = progress.len() == usize::try_from(cut).unwrap();
            if done { ControlFlow::Break(()) } else { ControlFlow::Continue(Duration::ZERO) }
        };
        let mut shards = Shards::on(tch::Device::Cpu);
        let alone = TORCH_RNG.lock();
        let line = unit::run(&request, &mut shards, &mut listener).unwrap();
        drop(alone);
        let TrainerLine::Trained(part) = line else { panic!("{line:?}") };
        assert_eq!(part.end, hop.position_after(cut));
        assert_eq!(Some(part.sums.rows), hop.rows_to(part.end));
        let told: Vec<u32> = progress.iter().map(|told| told.done).collect();
        assert_eq!(told, (1..=cut).collect::<Vec<_>>(), "counted over all shards");
        assert!(progress.iter().all(|told| told.of == hop.to_train()));
        // From what was kept at its first batch, and from where it was cut.
        let kept = kept.unwrap();
        let of_kept = fs::read(request.part(kept.end)).unwrap();
        for (end, checkpoint) in
            [(kept.end, of_kept), (part.end, fs::read(&request.output).unwrap())]
        {
            let blob = world.put(&checkpoint);
            let base = Base::Checkpoint { version: Version(2), blob };
            let rest = rest_of(&hop, end, base);
            let (_, again) = world.train(&rest, last_batch(&rest)).unwrap();
            assert_eq!(again, bytes, "from {end}");
        }
    }
}

/// Hears what the unit takes.
struct Asking {
    losses: Vec<Option<f64>>,
    /// After every batch, or only when each hop has ended?
    always: bool,
}

impl Listener for Asking {
    fn update(&mut self, _: TrainerUpdate) -> ControlFlow<(), Duration> {
        ControlFlow::Continue(Duration::ZERO)
    }

    fn wants_usage(&self) -> bool {
        self.always
    }

    fn say_usage(&mut self, loss: Option<f64>) {
        self.losses.push(loss);
    }

    fn wait_for(&mut self, _: Digest) -> Option<PathBuf> {
        None
    }
}

#[test]
fn the_losses_that_are_said_on_the_way_are_those_of_the_batches_and_change_no_bytes() {
    let mut world = World::new();
    let hop = several(&mut world, context(mlp()));
    let (trained, bytes) = world.train(&hop, last_batch(&hop)).unwrap();
    let request = world.request(Unit::Train(hop.clone()));
    let mut asking = Asking { losses: Vec::new(), always: true };
    let alone = TORCH_RNG.lock();
    let line = unit::run(&request, &mut Shards::on(tch::Device::Cpu), &mut asking).unwrap();
    drop(alone);
    let TrainerLine::Trained(again) = line else { panic!("{line:?}") };
    assert_eq!((&again.sums, fs::read(&request.output).unwrap()), (&trained.sums, bytes));

    assert_eq!(asking.losses.len(), usize::try_from(hop.to_train()).unwrap());
    let size = hop.context.config.training.batch_size;
    let rows = hop.segments().flat_map(|on| {
        let batches = on.start.batch..on.end.batch;
        batches.map(move |batch| (on.shard.rows - batch * size).min(size))
    });
    let sum: f64 =
        asking.losses.iter().zip(rows).map(|(loss, rows)| loss.unwrap() * f64::from(rows)).sum();
    assert!((sum - trained.sums.loss).abs() < 1e-6, "{sum} of {}", trained.sums.loss);

    // Hops that are too short for that say it once, when they end.
    let mut asking = Asking { losses: Vec::new(), always: false };
    let alone = TORCH_RNG.lock();
    unit::run(&request, &mut Shards::on(tch::Device::Cpu), &mut asking).unwrap();
    drop(alone);
    assert_eq!(asking.losses.len(), 1 + hop.then.len());
    assert!(asking.losses.iter().all(Option::is_some));
}

/// Batches of its last shard.
fn last_batch(hop: &Hop) -> u32 {
    hop.segments().last().unwrap().end.batch
}

/// The hop that is left of a unit behind a position on its way.
fn rest_of(hop: &Hop, end: Position, base: Base) -> Hop {
    let left: Vec<ShardSegment> = hop.segments().skip_while(|of| of.end.step <= end.step).collect();
    let first = left[0];
    let start = if first.start.shard == end.shard { end } else { first.start };
    let then = hop.then.iter().filter(|leg| left[1..].iter().any(|of| of.seed == leg.seed));
    let then = then.copied().collect();
    Hop { base, start, shard: first.shard, seed: first.seed, then, ..hop.clone() }
}

#[test]
fn hops_whose_shard_can_not_be_read_leave_those_before_them_as_a_result() {
    let mut world = World::new();
    let hop = several(&mut world, context(mlp()));
    let mut request = world.request(Unit::Train(hop.clone()));
    request.files.remove(&hop.then[1].shard.blob.sha256);
    let mut shards = Shards::on(tch::Device::Cpu);
    let mut listener = |_| ControlFlow::Continue(Duration::ZERO);
    let alone = TORCH_RNG.lock();
    let line = unit::run(&request, &mut shards, &mut listener).unwrap();
    drop(alone);
    let TrainerLine::Trained(part) = line else { panic!("{line:?}") };
    assert_eq!(part.end, hop.segments().nth(1).unwrap().end);
    request.files.remove(&hop.shard.blob.sha256);
    let error = unit::run(&request, &mut Shards::on(tch::Device::Cpu), &mut listener).unwrap_err();
    assert!(matches!(error, TrainError::NoFile(_)), "{error}");
}

/// Brings so many of the shards that are waited for, a while after they are.
struct Late {
    files: BTreeMap<Digest, PathBuf>,
    brings: usize,
    waited: Vec<Digest>,
}

const A_WHILE: Duration = Duration::from_millis(50);

impl Listener for Late {
    fn update(&mut self, _: TrainerUpdate) -> ControlFlow<(), Duration> {
        ControlFlow::Continue(Duration::ZERO)
    }

    fn wait_for(&mut self, blob: Digest) -> Option<PathBuf> {
        self.waited.push(blob);
        thread::sleep(A_WHILE);
        self.files.remove(&blob).filter(|_| self.waited.len() <= self.brings)
    }
}

#[test]
fn shards_that_come_late_make_the_same_bytes_and_their_wait_is_no_training() {
    let mut world = World::new();
    let hop = several(&mut world, context(mlp()));
    let (alone, bytes) = each_alone(&mut world, &hop);
    let whole = world.request(Unit::Train(hop.clone()));
    let later: Vec<Digest> = hop.then.iter().map(|leg| leg.shard.blob.sha256).collect();
    // None of them, the last, or both are on their way; and all, one or none of those come.
    for (coming, brings) in
        [(&later[..], 2), (&later[..], 1), (&later[..], 0), (&later[1..], 1), (&later[..0], 0)]
    {
        let mut request = whole.clone();
        request.pending = coming.iter().copied().collect();
        request.files.retain(|blob, _| !coming.contains(blob));
        let mut late = Late { files: world.files.clone(), brings, waited: Vec::new() };
        let held = TORCH_RNG.lock();
        let begun = Instant::now();
        let line = unit::run(&request, &mut Shards::on(tch::Device::Cpu), &mut late).unwrap();
        let took = begun.elapsed();
        drop(held);
        let TrainerLine::Trained(trained) = line else { panic!("{line:?}") };
        let legs = hop.then.len() - (coming.len() - brings);
        assert_eq!(late.waited, coming[..coming.len().min(brings + 1)], "in their order");
        assert_eq!((trained.end, trained.checkpoint), (alone[legs].end, alone[legs].checkpoint));
        let waits = A_WHILE * u32::try_from(late.waited.len()).unwrap();
        assert!(Duration::from_micros(trained.train_micros) + waits <= took);
        if legs == hop.then.len() {
            assert_eq!(fs::read(&request.output).unwrap(), bytes);
        }
    }
}
