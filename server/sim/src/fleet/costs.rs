//! The trials of a cost table.
//!
//! A row of the table says what training on one row costs; the core knows architectures. So each trial gets a
//! made-up network, two convolutions and a hidden layer, that comes as near to the cost and to the size of the
//! checkpoint as whole channels and units let it. Nothing of it is ever allocated; how long units take follows
//! from the table.
//!
//! ```text
//!   [1, s, s] -- 3x3 conv, b channels -- 3x3 conv, 1 channel -- pooled -- h units -- 1 output
//!                '---------- 36 s^2 b operations ----------'   '- s^2 h bytes, little work -'
//! ```

use super::{
    check::{COSTS, outside},
    files::Files,
    job::{Cost, Made, PASSES, index},
    quantity::{float, whole},
    scenario::{Costs, JobEntry, Pick},
};
use sojourn_protocol::{
    manifest::Labels,
    quantity::SaturatingFrom as _,
    seeds,
    spec::{
        Architecture, AugmentSpace, Channels, ClassWeights, Cnn, DataSpec, Dialect, Dimension,
        JobSpec, Loss, Metric, Missing, ModelSpace, OnBad, OptimizerName, OptimizerSpace,
        OrderChoice, PlacementSpec, Precision, Sampling, Scale, ScaleLabel, ScheduleSpace,
        SearchMethod, SearchSpec, Split, TrainingSpace,
    },
};

/// MFLOPs of a row where a job says nothing.
const USUAL_COST: f64 = 4_000.0;
/// The longest side of a made-up row.
const WIDEST: u32 = 256;

/// The trials of a cost table.
pub(crate) fn of(
    entry: &JobEntry,
    name: &str,
    n: u64,
    seed: u64,
    files: &mut Files<'_>,
) -> Result<Made, String> {
    let costs = match (&entry.costs, entry.equal) {
        (None, equal) => vec![cost(None, equal.unwrap_or(USUAL_COST))?],
        (Some(Costs::List(list)), _) => {
            list.iter().map(|mflops| cost(None, *mflops)).collect::<Result<_, _>>()?
        }
        (Some(Costs::File(path)), _) => cost_table(path, &files(path)?)?,
    };
    if costs.is_empty() {
        return Err("`job.costs` has no costs".into());
    }
    let count = u32::saturating_from(costs.len());
    let trials = match (entry.trials, &entry.costs) {
        (Some(trials), _) => trials,
        (None, Some(_)) => count,
        (None, None) => 16,
    };
    let mut chance = seeds::stream("sim-costs", &[seed, n]);
    let trials: Vec<usize> = (0..trials)
        .map(|trial| {
            index(match entry.pick {
                Pick::Sample => seeds::below(&mut chance, count),
                Pick::Cycle => trial % count,
            })
        })
        .collect();
    let side = side(&costs);
    let bytes = entry.checkpoint_bytes.map_or(0, |bytes| bytes.0);
    let models = trials.iter().filter_map(|cost| costs.get(*cost));
    let models = models.map(|cost| architecture(cost.flops / PASSES, bytes, side).into()).collect();
    let spec = spec(name, seed, entry, models);
    Ok((spec, costs, trials, vec![1, side, side], Labels::Number))
}

fn cost(name: Option<String>, mflops: f64) -> Result<Cost, String> {
    if let Some(what) = outside(mflops, COSTS) {
        return Err(format!("the MFLOPs of a row {what}"));
    }
    Ok(Cost { name: name.unwrap_or_else(|| format!("{mflops} MFLOPs")), flops: mflops * 1e6 })
}

/// Lines of a name and MFLOPs, with a line of names above them or without.
fn cost_table(path: &str, text: &str) -> Result<Vec<Cost>, String> {
    let mut reader = csv::ReaderBuilder::new();
    let mut reader =
        reader.trim(csv::Trim::All).has_headers(false).flexible(true).from_reader(text.as_bytes());
    let is_header = |(n, record): &(usize, csv::Result<csv::StringRecord>)| {
        let last = record.as_ref().ok().and_then(|record| record.iter().next_back());
        *n == 0 && last.is_some_and(|last| last.parse::<f64>().is_err())
    };
    let rows = reader.records().enumerate().filter(|row| !is_header(row));
    let costs = rows.map(|(_, record)| {
        let record = record.map_err(|error| format!("the cost table `{path}`: {error}"))?;
        let (name, mflops) = (record.get(0), record.iter().next_back());
        let line = record.position().map_or(0, csv::Position::line);
        let mflops: Option<f64> = mflops.and_then(|mflops| mflops.parse().ok());
        let mflops = mflops.ok_or_else(|| {
            format!("line {line} of the cost table `{path}` doesn't end with MFLOPs")
        })?;
        cost(name.map(str::to_owned), mflops)
    });
    costs.collect()
}

/// The longest side of a row at which a channel is no more than a hundredth of the cheapest trial's work.
fn side(costs: &[Cost]) -> u32 {
    let least = costs.iter().map(|cost| cost.flops / PASSES).fold(f64::INFINITY, f64::min);
    let fits = |side: &u32| 36.0 * f64::from(side * side) * 100.0 <= least;
    let sides = std::iter::successors(Some(WIDEST), |side| (*side > 2).then_some(side / 2));
    sides.into_iter().find(fits).unwrap_or(2)
}

/// A network of about so many operations forward and so many bytes.
fn architecture(flops: f64, bytes: u64, side: u32) -> Architecture {
    let places = f64::from(side * side);
    let channel = 36.0 * places;
    // A hidden unit: a weight for each pooled place, one to the output, a bias.
    let weights = places / 4.0 + 2.0;
    let (mut channels, mut hidden) = (libm::round(flops / channel).max(1.0), 0.0);
    for _ in 0..8 {
        let left = float(bytes) / 4.0 - 20.0 * channels - 200.0;
        hidden = libm::floor((left / weights).max(0.0)).min(1e9);
        channels = libm::round((flops - hidden * (places / 2.0 + 2.0)) / channel).max(1.0);
    }
    let number = |value: f64| whole(value).and_then(|value| u32::try_from(value).ok());
    let hidden = number(hidden).filter(|hidden| *hidden > 0);
    Architecture::Cnn(Cnn {
        pool_every: 2,
        hidden: hidden.into_iter().collect(),
        ..Cnn::new([number(channels).unwrap_or(1), 1])
    })
}

fn spec(name: &str, seed: u64, entry: &JobEntry, models: Vec<ModelSpace>) -> JobSpec {
    JobSpec {
        name: name.to_owned(),
        seed,
        seeds: Vec::new(),
        data: DataSpec {
            train: "rows.npz".into(),
            features: None,
            label: Some("y".into()),
            labels: None,
            separator: None,
            columns: None,
            categories: Vec::new(),
            missing: Missing::Refuse,
            on_bad_row: OnBad::Refuse,
            on_bad_image: OnBad::Refuse,
            dialect: Dialect::default(),
            window: None,
            tokenizer: None,
            length: std::collections::BTreeMap::new(),
            shape: None,
            channels: Channels::First,
            scale: Scale::None,
            scale_label: ScaleLabel::None,
            valid: Split::Ratio(0.1),
            test: None,
            shards: None,
            shard_sizes: None,
            stratified: false,
            groups: None,
            group_folds: None,
            seed: None,
        },
        models,
        init: Vec::new(),
        training: TrainingSpace {
            epochs: 1,
            local_epochs: 1,
            batch_size: entry.batch_size.into(),
            loss: Loss::Mse,
            optimizer: OptimizerSpace {
                lr: Dimension::Fixed(0.01),
                ..OptimizerSpace::new(OptimizerName::Sgd.into())
            },
            schedule: ScheduleSpace::default(),
            clip_norm: 0.0.into(),
            augment: AugmentSpace::default(),
            precision: Precision::F32.into(),
            class_weights: ClassWeights::None,
            sampling: Sampling::Shuffled.into(),
            label_smoothing: 0.0.into(),
        },
        search: SearchSpec::new(SearchMethod::Grid, Metric::Loss),
        placement: PlacementSpec::new(OrderChoice::Hop, entry.reproducible, 1),
    }
}
