//! How well a surrogate meets curves that it was not given: each recorded curve is held out once.

use super::table::{Curve, mean_of};
use crate::fleet::quantity::float;
use serde::Serialize;
use sojourn_protocol::quantity::to_u64;

/// Of a surrogate, over all recorded curves, each predicted from the others alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quality {
    /// Spearman's rank correlation of losses after the first epoch.
    pub rank_first: f64,
    /// The same after the last epoch.
    pub rank_last: f64,
    /// The root of the mean squared error of the losses' logarithms, over all epochs.
    pub error: f64,
    /// The standard deviation of what a curve lies above or below its prediction, the mean of its epochs.
    pub offset: f64,
    /// The standard deviation of an epoch from the smooth curve through its neighbours, by second differences.
    pub noise: f64,
}

impl Quality {
    pub(super) fn of(curves: &[Curve]) -> Self {
        let predicted: Vec<Vec<f64>> =
            (0..).zip(curves).map(|(n, curve)| mean_of(curves, &curve.place, Some(n))).collect();
        let misses: Vec<Vec<f64>> = curves
            .iter()
            .zip(&predicted)
            .map(|(curve, predicted)| {
                curve.logs.iter().zip(predicted).map(|(is, said)| is - said).collect()
            })
            .collect();
        let rank = |pick: fn(&[f64]) -> Option<&f64>| {
            let of = |logs: &[f64]| pick(logs).copied().unwrap_or(0.0);
            let is: Vec<f64> = curves.iter().map(|curve| of(&curve.logs)).collect();
            let said: Vec<f64> = predicted.iter().map(|logs| of(logs)).collect();
            spearman(&is, &said)
        };
        let bends = curves.iter().flat_map(|curve| {
            curve.logs.windows(3).filter_map(|of| match of {
                [a, b, c] => Some(a - 2.0 * b + c),
                _ => None,
            })
        });
        Self {
            rank_first: rank(<[f64]>::first),
            rank_last: rank(<[f64]>::last),
            error: root_mean_square(misses.iter().flatten().copied()),
            offset: root_mean_square(misses.iter().map(|misses| mean(misses))),
            // The variance of a - 2 b + c is 1 + 4 + 1 times that of each.
            noise: root_mean_square(bends) / libm::sqrt(6.0),
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / float(to_u64(values.len()).max(1))
}

fn root_mean_square(values: impl Iterator<Item = f64>) -> f64 {
    let squares: Vec<f64> = values.map(|value| value * value).collect();
    libm::sqrt(mean(&squares))
}

/// Spearman's rank correlation; of equal values the first has the lower rank.
fn spearman(a: &[f64], b: &[f64]) -> f64 {
    let [a, b] = [a, b].map(|values| {
        let mut order: Vec<usize> = (0..values.len()).collect();
        let of = |index: &usize| values.get(*index).copied().unwrap_or(0.0);
        order.sort_by(|one, other| of(one).total_cmp(&of(other)));
        let mut ranks = vec![0.0; values.len()];
        for (rank, index) in (0u64..).zip(order) {
            if let Some(place) = ranks.get_mut(index) {
                *place = float(rank);
            }
        }
        let middle = mean(&ranks);
        ranks.into_iter().map(|rank| rank - middle).collect::<Vec<f64>>()
    });
    let together: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
    let alone: f64 = a.iter().map(|a| a * a).sum();
    if alone > 0.0 { together / alone } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_correlate_by_order_alone() {
        let near = |value: f64, wanted: f64| (value - wanted).abs() < 1e-12;
        assert!(near(spearman(&[1.0, 2.0, 30.0], &[-5.0, 0.0, 0.1]), 1.0));
        assert!(near(spearman(&[1.0, 2.0, 30.0], &[3.0, 2.0, 1.0]), -1.0));
        assert!(near(spearman(&[1.0, 2.0, 3.0, 4.0], &[2.0, 1.0, 4.0, 3.0]), 0.6));
    }
}
