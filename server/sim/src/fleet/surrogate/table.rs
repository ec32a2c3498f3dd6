//! Recorded curves, and where configurations lie between them.

use serde_json::Value;
use sojourn_protocol::{quantity::SaturatingFrom as _, spec::TrialConfig};
use std::borrow::Cow;

/// With fewer none could be held out.
const MIN_CURVES: usize = 3;
/// Curves that weigh less beside the nearest are left out.
const LEAST_WEIGHT: f64 = 1e-9;

/// A setting along which configurations differ.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    /// The way to it in a configuration: `training.optimizer.lr`.
    path: String,
    /// The kernel's, as a share of the axis; of settings that are no numbers, whose distance is 1 or 0, likewise.
    width: f64,
    scale: Scale,
}

/// How values of an axis become shares of it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Scale {
    Linear {
        least: f64,
        most: f64,
    },
    Logarithmic {
        least: f64,
        most: f64,
    },
    /// No numbers: alike or not.
    Words,
}

/// A value on its axis.
#[derive(Debug, Clone, PartialEq)]
enum Coordinate {
    Ratio(f64),
    Word(String),
}

/// A configuration among the axes: coordinates over widths.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place(Vec<(Coordinate, f64)>);

/// A recorded curve.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    pub(super) place: Place,
    /// The logarithm of its loss after each epoch.
    pub(super) logs: Vec<f64>,
}

impl Curve {
    pub(super) fn epochs(&self) -> u32 {
        u32::saturating_from(self.logs.len())
    }
}

impl Place {
    pub(super) fn of(axes: &[Axis], config: &TrialConfig) -> Result<Self, String> {
        let config = serde_json::to_value(config).map_err(|error| error.to_string())?;
        let place =
            axes.iter().map(|axis| Ok((axis.coordinate(&*find(&config, axis)?)?, axis.width)));
        place.collect::<Result<_, String>>().map(Self)
    }

    /// The square of the distance to another place.
    fn distance2(&self, other: &Self) -> f64 {
        let both = self.0.iter().zip(&other.0);
        both.map(|((a, width), (b, _))| {
            let along = match (a, b) {
                (Coordinate::Ratio(a), Coordinate::Ratio(b)) => (a - b) / width,
                (a, b) if a == b => 0.0,
                _ => 1.0 / width,
            };
            along * along
        })
        .sum()
    }
}

/// The value of a setting. Configurations leave out a share that is 0.
fn find<'a>(config: &'a Value, axis: &Axis) -> Result<Cow<'a, Value>, String> {
    let mut at = config;
    let mut keys = axis.path.split('.').peekable();
    while let Some(key) = keys.next() {
        match (at.get(key), axis.scale) {
            (Some(value), _) => at = value,
            (None, Scale::Linear { .. }) if keys.peek().is_none() => {
                return Ok(Cow::Owned(Value::from(0)));
            }
            (None, _) => {
                return Err(format!("the curves vary `{}`, which a trial lacks", axis.path));
            }
        }
    }
    Ok(Cow::Borrowed(at))
}

impl Axis {
    fn coordinate(&self, value: &Value) -> Result<Coordinate, String> {
        let number = || {
            let refused = || format!("`{}` is {value}, and a number in all curves", self.path);
            value.as_f64().ok_or_else(refused)
        };
        let ratio = |value: f64, least: f64, most: f64| (value - least) / (most - least);
        Ok(match self.scale {
            Scale::Words => Coordinate::Word(value.to_string()),
            Scale::Linear { least, most } => Coordinate::Ratio(ratio(number()?, least, most)),
            Scale::Logarithmic { least, most } => {
                let log = libm::log(number()?.max(f64::MIN_POSITIVE));
                Coordinate::Ratio(ratio(log, least, most))
            }
        })
    }
}

/// The scale of an axis with these values. Numbers are taken by their logarithms where their median is then nearer to the middle.
fn scale_of(values: &[&Value]) -> Scale {
    let numbers: Option<Vec<f64>> = values.iter().map(|value| value.as_f64()).collect();
    let Some(mut numbers) = numbers else { return Scale::Words };
    numbers.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (numbers.first().copied(), numbers.last().copied()) else {
        return Scale::Words;
    };
    if least >= most {
        return Scale::Words;
    }
    let median = numbers.get(numbers.len() / 2).copied().unwrap_or(least);
    let off_middle =
        |median: f64, least: f64, most: f64| libm::fabs((median - least) / (most - least) - 0.5);
    let linear = Scale::Linear { least, most };
    if least <= 0.0 {
        return linear;
    }
    let [log_median, log_least, log_most] = [median, least, most].map(libm::log);
    match off_middle(log_median, log_least, log_most) < off_middle(median, least, most) {
        true => Scale::Logarithmic { least: log_least, most: log_most },
        false => linear,
    }
}

/// A file's axes and curves.
pub(super) fn axes_and_curves(text: &str) -> Result<(Vec<Axis>, Vec<Curve>), String> {
    let mut reader = csv::ReaderBuilder::new();
    let mut reader = reader.has_headers(false).from_reader(text.as_bytes());
    let mut records = reader.records();
    let mut next = |what: &str| match records.next() {
        Some(record) => record.map_err(|error| error.to_string()),
        None => Err(format!("there is no row of {what}")),
    };
    let names = next("names")?;
    let settings = names.iter().take_while(|name| name.parse::<u32>().is_err()).count();
    if settings == names.len() {
        return Err("no column is an epoch".into());
    }
    for (n, name) in (1u32..).zip(names.iter().skip(settings)) {
        if *name != n.to_string() {
            let ordinal = match n {
                1 => "1st".to_owned(),
                2 => "2nd".to_owned(),
                3 => "3rd".to_owned(),
                n => format!("{n}th"),
            };
            return Err(format!("epochs are 1, 2 and so on, and the {ordinal} is `{name}`"));
        }
    }
    let widths = next("widths")?;
    let mut rows = Vec::new();
    for (n, record) in (3u32..).zip(records) {
        let record = record.map_err(|error| error.to_string())?;
        let values = record.iter().take(settings).map(|text| {
            serde_json::from_str(text).map_err(|_| format!("line {n}: `{text}` isn't JSON"))
        });
        let values: Vec<Value> = values.collect::<Result<_, _>>()?;
        let losses = record.iter().skip(settings).map(|text| {
            let loss = text.parse().ok().filter(|loss: &f64| loss.is_finite() && *loss > 0.0);
            loss.map(libm::log).ok_or_else(|| format!("line {n}: `{text}` is no loss above 0"))
        });
        rows.push((values, losses.collect::<Result<Vec<f64>, _>>()?));
    }
    if rows.len() < MIN_CURVES {
        return Err("there are fewer than three curves".into());
    }
    let axes = names.iter().zip(&widths).take(settings).enumerate().map(|(n, (path, width))| {
        let values: Vec<&Value> = rows.iter().filter_map(|(values, _)| values.get(n)).collect();
        let width = width.parse().ok().filter(|width: &f64| width.is_finite() && *width > 0.0);
        let width = width.ok_or_else(|| format!("the width of `{path}` must be above 0"))?;
        Ok(Axis { path: path.to_owned(), width, scale: scale_of(&values) })
    });
    let axes = axes.collect::<Result<Vec<Axis>, String>>()?;
    let curves = rows.into_iter().map(|(values, logs)| {
        let place = axes.iter().zip(&values);
        let place = place.map(|(axis, value)| Ok((axis.coordinate(value)?, axis.width)));
        Ok(Curve { place: Place(place.collect::<Result<_, String>>()?), logs })
    });
    let curves = curves.collect::<Result<_, String>>()?;
    Ok((axes, curves))
}

/// The mean of curves around a place, by the kernel: of their logarithms after each epoch. `but`: without this curve.
pub(super) fn mean_of(curves: &[Curve], place: &Place, but: Option<usize>) -> Vec<f64> {
    let others = curves.iter().enumerate().filter(|(n, _)| Some(*n) != but);
    let near: Vec<(f64, &Curve)> =
        others.map(|(_, curve)| (place.distance2(&curve.place), curve)).collect();
    // So that far from all of them the nearest still has a weight.
    let least = near.iter().map(|(distance2, _)| *distance2).fold(f64::INFINITY, f64::min);
    let epochs = curves.first().map_or(0, |curve| curve.logs.len());
    let mut sums = vec![0.0; epochs];
    let mut weights = 0.0;
    for (distance2, curve) in near {
        let weight = libm::exp((least - distance2) / 2.0);
        if weight < LEAST_WEIGHT {
            continue;
        }
        weights += weight;
        sums.iter_mut().zip(&curve.logs).for_each(|(sum, log)| *sum += weight * log);
    }
    sums.iter().map(|sum| sum / weights).collect()
}
