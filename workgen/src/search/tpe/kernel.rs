//! Kernels of one dimension: truncated Gaussians for numbers, smoothed weights for categories.

use super::axis::LINE;
use crate::search::{draw, normal};
use sojourn_protocol::{
    quantity::{SaturatingFrom as _, to_usize},
    spec::dimension::Normal,
};
use std::{f64::consts::PI, sync::LazyLock};

/// The observations that a density is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    Good,
    Others,
}

/// The shares that the kernel of an observation's category gives to that category and to each other one of `count`. Besides the
/// prior so many `kernels` are mixed. Optuna's rule with twice its smoothing: each category weighs twice as much as the prior does
/// among the kernels, and the observation's own weighs 1 more.
fn category_shares(kernels: usize, count: u32) -> [f64; 2] {
    /// The weight of each category, in those of the prior. With 1 more searches stay with a category that began well.
    const SMOOTHING: f64 = 2.0;
    let other = SMOOTHING / (number(kernels) + 1.0);
    let sum = 1.0 + f64::from(count) * other;
    [(1.0 + other) / sum, other / sum]
}

/// The logarithms of these shares over the prior's.
pub(super) fn log_categories(kernels: usize, count: u32) -> [f64; 2] {
    category_shares(kernels, count).map(|share| libm::log(share * f64::from(count)))
}

/// A category of `count` for a uniform number: of the kernel of one's own category, or of the prior.
pub(super) fn draw_category(own: Option<f64>, kernels: usize, count: u32, uniform: f64) -> f64 {
    let Some(own) = own else { return f64::from(draw::index(count, uniform)) };
    // Each category has the smaller share, and the own one the rest as well.
    let [_, other] = category_shares(kernels, count);
    let all = f64::from(count) * other;
    if uniform < all { f64::from(draw::index(count, uniform / all)) } else { own }
}

/// The least bandwidth where so many observations have a value: the "magic clip" of Hyperopt and Optuna, without which few points
/// that are close would end the search around them. Theirs is 1 of `n + 2` parts of the line, and 1 of 100 at least.
pub(super) fn least_bandwidth(group: Group, count: usize) -> f64 {
    let count = number(count);
    let parts = match group {
        Group::Good => (2.0 * count + 2.0).min(27.0),
        Group::Others => (count + 2.0).min(50.0),
    };
    1.0 / parts
}

/// The bandwidths of the kernels at these points, which are in order and none of which comes twice, with how many observations are
/// at each. It is the distance to the farther of both neighbours, as in Hyperopt and Optuna; of a single point to the farther
/// end of the line. Where several observations are at one point their distance is 0, and the least bandwidth counts.
pub(super) fn bandwidths(points: &[(f64, usize)], least: f64) -> Vec<f64> {
    let far = |at: usize, point: f64| {
        let neighbours = [at.checked_sub(1), at.checked_add(1)];
        let neighbours = neighbours.into_iter().flatten().filter_map(|at| points.get(at));
        neighbours.map(|(other, _)| (other - point).abs()).reduce(f64::max)
    };
    let bandwidth = |(at, (point, count)): (usize, &(f64, usize))| match count {
        1 => far(at, *point).unwrap_or(point.max(1.0 - point)).clamp(least, 1.0),
        _ => least,
    };
    points.iter().enumerate().map(bandwidth).collect()
}

/// How much of the Gaussian around `point` lies between two ends.
fn mass(point: f64, bandwidth: f64, [low, high]: [f64; 2]) -> f64 {
    let [low, high] = [low, high].map(|end| (end - point) / bandwidth);
    // Of two small shares the difference is exact far from the point.
    let mass = if low > 0.0 { below(-low) - below(-high) } else { below(high) - below(low) };
    if mass < 0.0 { 0.0 } else { mass }
}

/// How much of the Gaussian around a point of the line lies on the line; no number where the point is none.
pub(super) fn mass_on_line(point: f64, bandwidth: f64) -> f64 {
    1.0 - beyond(point / bandwidth) - beyond((1.0 - point) / bandwidth)
}

/// Deviations up to which the shares beyond are tabulated. The rest is less than half of the last binary digit of 1.
const LAST_DEVIATION: u32 = 9;
const NODES_A_DEVIATION: u32 = 128;

/// The share of standard normal numbers beyond every 128th of a deviation, and its slope from node to node.
static BEYOND: LazyLock<Vec<[f64; 2]>> = LazyLock::new(|| {
    let node = |node: u32| {
        let deviations = f64::from(node) / f64::from(NODES_A_DEVIATION);
        let density = libm::exp(log_height(1.0) - deviations * deviations / 2.0);
        [below(-deviations), -density / f64::from(NODES_A_DEVIATION)]
    };
    (0..=LAST_DEVIATION * NODES_A_DEVIATION).map(node).collect()
});

/// The share of standard normal numbers that are above one, which is at least 0.
///
/// For many points that takes longer than all else. So it is a cubic through two values of a table and their slopes, which is right
/// to 2 in 100,000,000,000.
fn beyond(deviations: f64) -> f64 {
    if deviations >= f64::from(LAST_DEVIATION) {
        return 0.0;
    }
    let place = deviations * f64::from(NODES_A_DEVIATION);
    let first = draw::floor(place);
    let pair = BEYOND.get(to_usize(first)..).and_then(|nodes| nodes.first_chunk());
    let Some([[a, a_slope], [b, b_slope]]) = pair else { return 0.0 };
    let t = place - f64::from(first);
    let rest = 1.0 - t;
    let ends = a * (1.0 + 2.0 * t) * rest * rest + b * (1.0 + 2.0 * rest) * t * t;
    ends + (a_slope * rest - b_slope * t) * t * rest
}

/// The share of standard normal numbers that are below one.
fn below(number: f64) -> f64 {
    // Beyond this the rest is less than half of the last binary digit of 1.
    if number > 9.0 { 1.0 } else { normal::below(number) }
}

/// A point of the truncated Gaussian around `point`, for a uniform number.
pub(super) fn draw(point: f64, bandwidth: f64, uniform: f64) -> f64 {
    let normal = Normal { mean: point, deviation: bandwidth, truncate: Some(LINE) };
    normal::number(&normal, uniform)
}

/// The logarithm of the Gaussian's density at its mean.
pub(super) fn log_height(bandwidth: f64) -> f64 {
    -libm::log(bandwidth * libm::sqrt(2.0 * PI))
}

/// The logarithm of the Gaussian's mean density in a cell.
pub(super) fn log_in_cell(point: f64, bandwidth: f64, cell: [f64; 2]) -> f64 {
    /// In a cell this narrow, in bandwidths, the mean density is that in its middle, to 1 in 10,000 even 15 bandwidths away.
    const NARROW: f64 = 0.003;
    let width = cell[1] - cell[0];
    if width < NARROW * bandwidth {
        let away = (f64::midpoint(cell[0], cell[1]) - point) / bandwidth;
        return log_height(bandwidth) - away * away / 2.0;
    }
    libm::log(mass(point, bandwidth, cell) / width)
}

/// A count as a number.
pub(super) fn number(count: usize) -> f64 {
    f64::from(u32::saturating_from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masses_are_right_to_their_tenth_digit() {
        for bandwidth in [0.01, 0.037, 0.15, 1.0] {
            let points = (0..=9_999).map(|n| f64::from(n) / 9_999.0);
            let worst = points
                .map(|point| mass(point, bandwidth, LINE) / mass_on_line(point, bandwidth) - 1.0)
                .fold(0.0, |worst: f64, error| worst.max(error.abs()));
            assert!(worst > 0.0 && worst < 1e-10, "{bandwidth}: {worst}");
        }
        assert!(mass_on_line(f64::NAN, 1.0).is_nan());
    }

    #[test]
    fn bandwidths_are_distances_to_neighbours() {
        let points = [(0.1, 1), (0.15, 1), (0.4, 2), (0.9, 1)];
        let found = bandwidths(&points, 0.125);
        for (found, expected) in found.iter().zip([0.125, 0.25, 0.125, 0.5]) {
            assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
        }
        assert_eq!(bandwidths(&[(0.25, 1)], 0.25), [0.75]);
        assert_eq!(bandwidths(&[(0.25, 3)], 0.125), [0.125]);
        assert!(bandwidths(&[], 0.5).is_empty());
    }
}
