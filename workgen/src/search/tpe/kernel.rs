//! Kernels of one dimension: truncated Gaussians for numbers, smoothed weights for categories.

use super::axis::LINE;
use crate::search::{draw, normal};
use sojourn_protocol::{quantity::SaturatingFrom as _, spec::dimension::Normal};
use std::f64::consts::PI;

/// What the kernel of an observation's category gives to that category and to each other one of `count`, where so many kernels
/// besides the prior are mixed. Optuna's rule: all categories weigh as much as the prior does among the kernels, and the
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
pub(super) fn bandwidth(points: &[f64], dimensions: usize) -> f64 {
    let count = number(points.len());
    let mean = points.iter().sum::<f64>() / count.max(1.0);
    let squares: f64 = points.iter().map(|point| (point - mean) * (point - mean)).sum();
    let deviation = libm::sqrt(squares / (count - 1.0).max(1.0));
    let scott = deviation * libm::pow(count.max(1.0), -1.0 / (number(dimensions) + 4.0));
    scott.clamp(1.0 / (count + 2.0).min(MOST_BANDWIDTHS), 1.0)
}

/// How much of the Gaussian around `point` lies between two ends.
pub(super) fn mass(point: f64, bandwidth: f64, [low, high]: [f64; 2]) -> f64 {
    let [low, high] = [low, high].map(|end| (end - point) / bandwidth);
    // The smaller of the two numbers is exact far from the point.
    let mass = if low > 0.0 { below(-low) - below(-high) } else { below(high) - below(low) };
    mass.max(0.0)
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
