//! Kernels of one dimension: truncated Gaussians for numbers, smoothed weights for categories.

use super::axis::LINE;
use crate::search::{draw, normal};
use sojourn_protocol::{
    quantity::{SaturatingFrom as _, to_usize},
    spec::dimension::Normal,
};
use std::f64::consts::PI;

/// The shares that the kernel of an observation's category gives to that category and to each other one of `count`. Besides the
/// prior so many `kernels` are mixed. Optuna's rule: all categories weigh as much as the prior does among the kernels, and the
/// observation's own weighs 1 more.
fn category_shares(kernels: usize, count: u32) -> [f64; 2] {
    let other = 1.0 / (number(kernels) + 1.0);
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

/// The most bandwidths that a dimension's line is long.
const MOST_BANDWIDTHS: f64 = 100.0;

/// The bandwidth of kernels at these points, where a combination has this many dimensions.
///
/// Scott's rule for each dimension: the points' standard deviation times `n^(-1 / (d + 4))` (D. W. Scott, "Multivariate Density
/// Estimation", 1992); BOHB takes 1.06 times that. At least the line's length over `n + 2`, or over 100 if that is more: the "magic
/// clip" of Hyperopt and Optuna, without which few points that are close would end the search around them.
pub(super) fn bandwidth(points: impl Iterator<Item = f64> + Clone, dimensions: usize) -> f64 {
    let count = number(points.clone().count());
    let mean = points.clone().sum::<f64>() / count.max(1.0);
    let squares: f64 = points.map(|point| (point - mean) * (point - mean)).sum();
    let deviation = libm::sqrt(squares / (count - 1.0).max(1.0));
    let scott = deviation * libm::pow(count.max(1.0), -1.0 / (number(dimensions) + 4.0));
    scott.clamp(1.0 / (count + 2.0).min(MOST_BANDWIDTHS), 1.0)
}

/// How much of the Gaussian around `point` lies between two ends.
fn mass(point: f64, bandwidth: f64, [low, high]: [f64; 2]) -> f64 {
    let [low, high] = [low, high].map(|end| (end - point) / bandwidth);
    // Of two small shares the difference is exact far from the point.
    let mass = if low > 0.0 { below(-low) - below(-high) } else { below(high) - below(low) };
    if mass < 0.0 { 0.0 } else { mass }
}

/// How much of the Gaussian around each of these points lies on the line; no number where a point is none.
///
/// Of many points that takes longer than all else. So it is worked out for points at even distances, of which there are enough
/// that a cubic through two of them and their slopes is right to 2 in 1,000,000,000.
pub(super) fn masses(points: &[f64], bandwidth: f64) -> Vec<f64> {
    const NODES_A_BANDWIDTH: f64 = 48.0;
    let parts = libm::ceil(NODES_A_BANDWIDTH / bandwidth);
    if number(points.len()) < 2.0 * parts {
        return points.iter().map(|point| mass(*point, bandwidth, LINE)).collect();
    }
    let density = |away: f64| libm::exp(log_height(bandwidth) - away * away / 2.0);
    let nodes: Vec<[f64; 2]> = (0..=draw::floor(parts))
        .map(|node| {
            let point = f64::from(node) / parts;
            let slope = density(point / bandwidth) - density((1.0 - point) / bandwidth);
            [mass(point, bandwidth, LINE), slope / parts]
        })
        .collect();
    let between = |point: f64| {
        let first = draw::floor(point * parts).min(draw::floor(parts) - 1);
        let t = point * parts - f64::from(first);
        let mut pair = nodes.iter().skip(to_usize(first));
        let ([a, a_slope], [b, b_slope]) = (pair.next()?, pair.next()?);
        let rest = 1.0 - t;
        let ends = a * (1.0 + 2.0 * t) * rest * rest + b * (1.0 + 2.0 * rest) * t * t;
        Some(ends + (a_slope * rest - b_slope * t) * t * rest)
    };
    points.iter().map(|point| between(*point).unwrap_or(f64::NAN)).collect()
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
    fn masses_of_many_points_are_those_of_each() {
        for bandwidth in [0.01, 0.037, 0.15, 1.0] {
            let points: Vec<f64> = (0..=9_999).map(|n| f64::from(n) / 9_999.0).collect();
            let all = masses(&points, bandwidth);
            let worst = points
                .iter()
                .zip(&all)
                .map(|(point, of)| (mass(*point, bandwidth, LINE) / of - 1.0).abs());
            let worst = worst.fold(0.0, f64::max);
            assert!(worst > 0.0 && worst < 2e-9, "{bandwidth}: {worst}");
        }
        let none = masses(&vec![f64::NAN; 10_000], 1.0);
        assert!(none.iter().all(|mass| mass.is_nan()));
        assert!(masses(&[0.5, f64::NAN], 1.0).last().is_some_and(|mass| mass.is_nan()));
    }
}
