//! A Parzen estimator: the density of a group of observations over one model table's space.
//!
//! Densities are relative to the prior, which is how `random` draws. So a dimension that an observation has no value of counts as 1.

use super::{
    axis::Axis,
    kernel::{self, Group},
    space::{Places, Space},
};
use sojourn_protocol::quantity::{SaturatingFrom as _, to_usize};
use std::f64::consts::LOG2_E;

/// The mixture of a kernel for each observation and the prior, in equal parts.
pub(super) struct Density<'a> {
    /// By dimension of the table.
    pub(super) columns: Vec<Column<'a>>,
    /// By observation, the logarithm of all that doesn't depend on where the density is asked for.
    constant: Vec<f64>,
    /// By observation, its model table.
    tables: Vec<Option<u32>>,
}

impl<'a> Density<'a> {
    /// Of some observations, as indices, over some dimensions of a table.
    pub(super) fn new(
        space: &'a Space,
        table: u32,
        dimensions: &[usize],
        places: &Places,
        (group, observations): (Group, &[usize]),
    ) -> Self {
        let tables: Vec<Option<u32>> =
            observations.iter().map(|at| places.tables.get(*at).copied()).collect();
        let [same, other] = kernel::log_categories(tables.len(), space.tables());
        let of_table = |own: &Option<u32>| if *own == Some(table) { same } else { other };
        let mut constant: Vec<f64> = tables.iter().map(of_table).collect();
        let mut areas = vec![1.0; tables.len()];
        let mut columns = Vec::with_capacity(dimensions.len());
        for dimension in dimensions {
            let axis = space.dimensions.get(*dimension).map(|dimension| &dimension.axis);
            let places = places.columns.get(*dimension);
            if let (Some(axis), Some(places)) = (axis, places) {
                let own = observations.iter().map(|at| places.get(*at).copied());
                let column =
                    Column::new(axis, own.map(|at| at.unwrap_or(f64::NAN)).collect(), group);
                column.multiply_areas(&mut areas);
                columns.push(column);
            }
            // Far from the least number, which a product of very many areas would fall below.
            for (constant, area) in constant.iter_mut().zip(&mut areas) {
                if *area < 1e-100 {
                    *constant -= libm::log(*area);
                    *area = 1.0;
                }
            }
        }
        for (constant, area) in constant.iter_mut().zip(&areas) {
            *constant -= libm::log(*area);
        }
        Self { columns, constant, tables }
    }

    /// The logarithm of the density at a place, which has a number for each column.
    pub(super) fn log_at(&self, place: &[f64]) -> f64 {
        /// Observations that are added up at once, so that they stay in the processor's first cache.
        const BLOCK: usize = 512;
        let at = self.columns.iter().zip(place).map(|(column, place)| column.at(*place));
        let at: Vec<ColumnAt<'_>> = at.collect();
        let (mut sum, mut logs) = (LogSum::of_prior(), Vec::with_capacity(BLOCK));
        for (block, constant) in self.constant.chunks(BLOCK).enumerate() {
            logs.clear();
            logs.extend_from_slice(constant);
            for column in &at {
                column.add_logs(block * BLOCK, &mut logs);
            }
            sum.add(&logs);
        }
        sum.log() - libm::log(kernel::number(self.constant.len()) + 1.0)
    }

    /// Is one of the observations at this place of this table?
    pub(super) fn has(&self, table: u32, place: &[f64]) -> bool {
        let is_at = |at: usize| {
            let mut columns = self.columns.iter().zip(place);
            columns.all(|(column, place)| column.places.get(at) == Some(place))
        };
        // Two numbers of a range without steps are never the same.
        self.columns.iter().all(|column| column.axis.count().is_some())
            && (0..).zip(&self.tables).any(|(at, own)| *own == Some(table) && is_at(at))
    }
}

/// A sum of numbers of which the logarithms are known, and which may be too large.
struct LogSum {
    /// The largest logarithm.
    most: f64,
    /// The sum over the number with that logarithm.
    sum: f64,
}

impl LogSum {
    /// Of the prior alone: the logarithm of its density over its own is 0.
    const fn of_prior() -> Self {
        Self { most: 0.0, sum: 1.0 }
    }

    fn add(&mut self, logs: &[f64]) {
        let before = self.most;
        let larger = |most, log: &f64| if *log > most { *log } else { most };
        self.most = logs.iter().fold(before, larger);
        self.sum *= exponential(before - self.most);
        self.sum += logs.iter().map(|log| exponential(log - self.most)).sum::<f64>();
    }

    fn log(&self) -> f64 {
        self.most + libm::log(self.sum)
    }
}

/// e to the power of a number that is at most 0. By a power of 2, which takes half as long.
fn exponential(power: f64) -> f64 {
    /// The power below which the result is so much less than 1 that it changes no digit of a sum.
    const NOTHING: f64 = -50.0;
    if power < NOTHING { 0.0 } else { libm::exp2(power * LOG2_E) }
}

/// The kernels of one dimension.
pub(super) struct Column<'a> {
    axis: &'a Axis,
    /// By observation; no number where it has no value.
    places: Vec<f64>,
    kernels: Kernels,
}

enum Kernels {
    /// The logarithms of the density at an observation's category and at another one.
    Choice { logs: [f64; 2] },
    /// By observation, one over its kernel's bandwidth; no number where it has no value.
    Smooth { inverses: Vec<f64> },
    /// By observation, which of the points it lies at; there is none for those without a value. By point, its kernel's bandwidth.
    Steps { slots: Vec<u32>, points: Vec<f64>, bandwidths: Vec<f64> },
}

impl<'a> Column<'a> {
    fn new(axis: &'a Axis, places: Vec<f64>, group: Group) -> Self {
        let kernels = match axis {
            Axis::Choice(values) => {
                let count = u32::saturating_from(values.len());
                Kernels::Choice { logs: kernel::log_categories(places.len(), count) }
            }
            Axis::Range(..) | Axis::Normal(..) => {
                let Distinct { slots, bandwidths, .. } = Distinct::new(axis, &places, group);
                let bandwidth = |slot: &u32| bandwidths.get(to_usize(*slot)).copied();
                let inverses = slots.iter().map(|slot| 1.0 / bandwidth(slot).unwrap_or(f64::NAN));
                Kernels::Smooth { inverses: inverses.collect() }
            }
            Axis::Steps(..) => {
                let Distinct { slots, points, bandwidths } = Distinct::new(axis, &places, group);
                Kernels::Steps { slots, points, bandwidths }
            }
        };
        Self { axis, places, kernels }
    }

    /// Multiplies, by observation, by the area between the dimension's ends below its Gaussian. One that is around its own place is 1
    /// high; around the point of a step it has an area of 1 without the ends.
    fn multiply_areas(&self, areas: &mut [f64]) {
        match &self.kernels {
            Kernels::Choice { .. } => {}
            Kernels::Smooth { inverses } => {
                let height = libm::exp(kernel::log_height(1.0));
                for ((area, place), inverse) in areas.iter_mut().zip(&self.places).zip(inverses) {
                    let own = kernel::mass_on_line(*place, 1.0 / inverse) / (inverse * height);
                    *area *= if own.is_nan() { 1.0 } else { own };
                }
            }
            Kernels::Steps { slots, points, bandwidths } => {
                let of = points.iter().zip(bandwidths);
                let of: Vec<f64> =
                    of.map(|(at, width)| kernel::mass_on_line(*at, *width)).collect();
                for (area, slot) in areas.iter_mut().zip(slots) {
                    *area *= of.get(to_usize(*slot)).copied().unwrap_or(1.0);
                }
            }
        }
    }

    /// The values that the column's kernels need for their densities at a place.
    fn at(&self, place: f64) -> ColumnAt<'_> {
        match &self.kernels {
            Kernels::Choice { logs: [same, other] } => {
                ColumnAt::Choice { places: &self.places, place, same: *same, other: *other }
            }
            Kernels::Smooth { inverses } => {
                ColumnAt::Smooth { places: &self.places, inverses, place }
            }
            Kernels::Steps { slots, points, bandwidths } => {
                let cell = self.axis.cell(place);
                let logs = points.iter().zip(bandwidths);
                let logs = logs.map(|(point, width)| kernel::log_in_cell(*point, *width, cell));
                ColumnAt::Steps { slots, logs: logs.collect() }
            }
        }
    }

    /// A point of the kernel of an observation, or of the prior, for a uniform number.
    pub(super) fn draw(&self, observation: Option<usize>, uniform: f64) -> f64 {
        let own = observation.and_then(|at| Some((at, self.places.get(at).copied()?)));
        let own = own.filter(|(_, place)| !place.is_nan());
        let gaussian = match &self.kernels {
            Kernels::Choice { .. } => {
                let count = self.axis.count().unwrap_or(1);
                let own = own.map(|(_, place)| place);
                return kernel::draw_category(own, self.places.len(), count, uniform);
            }
            Kernels::Smooth { inverses } => {
                own.and_then(|(at, place)| Some((place, 1.0 / inverses.get(at)?)))
            }
            Kernels::Steps { slots, points, bandwidths } => own.and_then(|(at, _)| {
                let slot = to_usize(*slots.get(at)?);
                Some((*points.get(slot)?, *bandwidths.get(slot)?))
            }),
        };
        gaussian.map_or(uniform, |(point, bandwidth)| kernel::draw(point, bandwidth, uniform))
    }
}

/// The distinct points of one dimension's observations.
struct Distinct {
    /// By observation, which of the points it lies at; there is none for those without a value.
    slots: Vec<u32>,
    points: Vec<f64>,
    /// By point.
    bandwidths: Vec<f64>,
}

impl Distinct {
    fn new(axis: &Axis, places: &[f64], group: Group) -> Self {
        let mut order: Vec<(f64, usize)> = places.iter().copied().zip(0..).collect();
        order.retain(|(place, _)| !place.is_nan());
        order.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut slots = vec![u32::MAX; places.len()];
        let mut counted: Vec<(f64, usize)> = Vec::with_capacity(order.len());
        for run in order.chunk_by(|(a, _), (b, _)| a == b) {
            for (_, at) in run {
                if let Some(slot) = slots.get_mut(*at) {
                    *slot = u32::saturating_from(counted.len());
                }
            }
            counted.extend(run.first().map(|(place, _)| (axis.point(*place), run.len())));
        }
        let least = kernel::least_bandwidth(group, order.len());
        let bandwidths = kernel::bandwidths(&counted, least);
        Self { slots, points: counted.into_iter().map(|(point, _)| point).collect(), bandwidths }
    }
}

/// The kernels of one dimension at one place.
enum ColumnAt<'a> {
    Choice { places: &'a [f64], place: f64, same: f64, other: f64 },
    Smooth { places: &'a [f64], inverses: &'a [f64], place: f64 },
    Steps { slots: &'a [u32], logs: Vec<f64> },
}

impl ColumnAt<'_> {
    /// Adds, by observation from this one on, the logarithm of its kernel, but for what is constant.
    fn add_logs(&self, from: usize, logs: &mut [f64]) {
        match self {
            Self::Choice { places, place, same, other } => {
                for (log, own) in logs.iter_mut().zip(places.get(from..).unwrap_or_default()) {
                    let known = if own == place { *same } else { *other };
                    *log += if own.is_nan() { 0.0 } else { known };
                }
            }
            Self::Smooth { places, inverses, place } => {
                let places = places.get(from..).unwrap_or_default();
                let inverses = inverses.get(from..).unwrap_or_default();
                for ((log, own), inverse) in logs.iter_mut().zip(places).zip(inverses) {
                    let away = (place - own) * inverse;
                    let known = away * away * -0.5;
                    *log += if known.is_nan() { 0.0 } else { known };
                }
            }
            Self::Steps { slots, logs: of } => {
                for (log, slot) in logs.iter_mut().zip(slots.get(from..).unwrap_or_default()) {
                    *log += of.get(to_usize(*slot)).copied().unwrap_or(0.0);
                }
            }
        }
    }
}
