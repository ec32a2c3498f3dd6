//! A Parzen estimator: the density of a group of observations over one model table's space.
//!
//! Densities are relative to the prior, which is how `random` draws. So a dimension that an observation has no value of counts as 1.

use super::{
    axis::Axis,
    kernel,
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
    /// Of some observations, as indices.
    pub(super) fn new(space: &'a Space, table: u32, places: &Places, group: &[usize]) -> Self {
        let dimensions = space.of_table(table);
        let tables: Vec<Option<u32>> =
            group.iter().map(|at| places.tables.get(*at).copied()).collect();
        let [same, other] = kernel::log_categories(group.len(), space.tables());
        let of_table = |own: &Option<u32>| if *own == Some(table) { same } else { other };
        let mut constant: Vec<f64> = tables.iter().map(of_table).collect();
        let mut masses = vec![1.0; group.len()];
        let mut columns = Vec::with_capacity(dimensions.len());
        for dimension in dimensions {
            let axis = space.dimensions.get(*dimension).map(|dimension| &dimension.axis);
            let places = places.columns.get(*dimension);
            if let (Some(axis), Some(places)) = (axis, places) {
                let of_group =
                    group.iter().map(|at| places.get(*at).copied().unwrap_or(f64::NAN)).collect();
                let column = Column::new(axis, of_group, dimensions.len());
                column.multiply_masses(&mut masses);
                columns.push(column);
            }
            // Far from the least number, which a product of very many masses would fall below.
            for (constant, mass) in constant.iter_mut().zip(&mut masses) {
                if *mass < 1e-100 {
                    *constant -= libm::log(*mass);
                    *mass = 1.0;
                }
            }
        }
        for (constant, mass) in constant.iter_mut().zip(&masses) {
            *constant -= libm::log(*mass);
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
    /// By observation, its place in bandwidths.
    Smooth { bandwidth: f64, scaled: Vec<f64> },
    /// By observation, which of these points it lies at; there is none for those without a value.
    Steps { bandwidth: f64, slots: Vec<u32>, points: Vec<f64> },
}

impl<'a> Column<'a> {
    fn new(axis: &'a Axis, places: Vec<f64>, dimensions: usize) -> Self {
        let known = || places.iter().copied().filter(|place| !place.is_nan());
        let kernels = match axis {
            Axis::Choice(values) => {
                let count = u32::saturating_from(values.len());
                Kernels::Choice { logs: kernel::log_categories(places.len(), count) }
            }
            Axis::Range(..) | Axis::Normal(..) => {
                let bandwidth = kernel::bandwidth(known(), dimensions);
                let scaled = places.iter().map(|place| place / bandwidth).collect();
                Kernels::Smooth { bandwidth, scaled }
            }
            Axis::Steps(..) => {
                let mut distinct: Vec<f64> = known().collect();
                distinct.sort_unstable_by(f64::total_cmp);
                distinct.dedup();
                let slot = |place: &f64| match distinct.binary_search_by(|d| d.total_cmp(place)) {
                    Ok(slot) | Err(slot) => u32::saturating_from(slot),
                };
                let slots: Vec<u32> = places.iter().map(slot).collect();
                let points: Vec<f64> = distinct.iter().map(|place| axis.point(*place)).collect();
                let all = slots.iter().filter_map(|slot| points.get(to_usize(*slot)).copied());
                let bandwidth = kernel::bandwidth(all, dimensions);
                Kernels::Steps { bandwidth, slots, points }
            }
        };
        Self { axis, places, kernels }
    }

    /// Multiplies, by observation, by how much of its Gaussian lies between the dimension's ends.
    fn multiply_masses(&self, masses: &mut [f64]) {
        match &self.kernels {
            Kernels::Choice { .. } => {}
            Kernels::Smooth { bandwidth, .. } => {
                for (mass, own) in masses.iter_mut().zip(kernel::masses(&self.places, *bandwidth)) {
                    *mass *= if own.is_nan() { 1.0 } else { own };
                }
            }
            Kernels::Steps { bandwidth, slots, points } => {
                let of = kernel::masses(points, *bandwidth);
                for (mass, slot) in masses.iter_mut().zip(slots) {
                    *mass *= of.get(to_usize(*slot)).copied().unwrap_or(1.0);
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
            Kernels::Smooth { bandwidth, scaled } => ColumnAt::Smooth {
                scaled,
                place: place / bandwidth,
                height: kernel::log_height(*bandwidth),
            },
            Kernels::Steps { bandwidth, slots, points } => {
                let cell = self.axis.cell(place);
                let logs = points.iter().map(|point| kernel::log_in_cell(*point, *bandwidth, cell));
                ColumnAt::Steps { slots, logs: logs.collect() }
            }
        }
    }

    /// A point of the kernel of an observation, or of the prior, for a uniform number.
    pub(super) fn draw(&self, observation: Option<usize>, uniform: f64) -> f64 {
        let own = observation.and_then(|at| self.places.get(at)).copied();
        let own = own.filter(|place| !place.is_nan());
        match &self.kernels {
            Kernels::Choice { .. } => {
                let count = self.axis.count().unwrap_or(1);
                kernel::draw_category(own, self.places.len(), count, uniform)
            }
            Kernels::Smooth { bandwidth, .. } | Kernels::Steps { bandwidth, .. } => match own {
                Some(own) => kernel::draw(self.axis.point(own), *bandwidth, uniform),
                None => uniform,
            },
        }
    }
}

/// The kernels of one dimension at one place.
enum ColumnAt<'a> {
    Choice { places: &'a [f64], place: f64, same: f64, other: f64 },
    Smooth { scaled: &'a [f64], place: f64, height: f64 },
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
            Self::Smooth { scaled, place, height } => {
                for (log, own) in logs.iter_mut().zip(scaled.get(from..).unwrap_or_default()) {
                    let known = height - (place - own) * (place - own) / 2.0;
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
