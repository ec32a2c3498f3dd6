//! Sobol's sequence, one dimension at a time.
//!
//! I. M. Sobol', "On the distribution of points in a cube and the approximate evaluation of integrals", USSR Comput. Math. Math.
//! Phys. 7 (1967), in the order of Gray codes (I. A. Antonov and V. M. Saleev, 1979), as most programs have it. Of each run of
//! `2^k` points that begins at a multiple of `2^k`, each interval of length `2^-k` has one, in every dimension.

use super::direction_numbers::DIRECTION_NUMBERS;

/// Binary digits of a point.
pub(super) const BITS: u32 = 32;
/// How many dimensions there are.
pub(super) const DIMENSIONS: usize = DIRECTION_NUMBERS.len() + 1;

/// One dimension of the sequence.
#[derive(Debug)]
pub(super) struct Sequence {
    /// `v_k`: what the digit `k` of a point's Gray code contributes.
    directions: Vec<u32>,
}

impl Sequence {
    /// A dimension, counted from 0, if there are so many.
    pub(super) fn new(dimension: usize) -> Option<Self> {
        let directions = match dimension.checked_sub(1) {
            // The first one is van der Corput's sequence.
            None => (0..BITS).rev().map(|shift| 1 << shift).collect(),
            Some(row) => {
                DIRECTION_NUMBERS.get(row).map(|(inner, first)| directions(*inner, first))?
            }
        };
        Some(Self { directions })
    }

    /// A point of the sequence, in units of `2^-32`.
    pub(super) fn at(&self, point: u32) -> u32 {
        let gray = point ^ (point >> 1);
        let digits = (0..BITS).map(|digit| (gray >> digit) & 1 == 1).zip(&self.directions);
        digits.filter(|(is_set, _)| *is_set).fold(0, |sum, (_, direction)| sum ^ direction)
    }
}

/// The recurrence of Joe and Kuo's paper, with the direction numbers as binary fractions.
fn directions(inner: u32, first: &[u32]) -> Vec<u32> {
    let shifts = (0..BITS).rev();
    let mut all: Vec<u32> =
        first.iter().zip(shifts).map(|(number, shift)| number << shift).collect();
    let degree = all.len();
    for shift in (0..BITS).skip(degree).map(|_| first.len()) {
        let before = |steps: usize| {
            all.len().checked_sub(steps).and_then(|at| all.get(at)).copied().unwrap_or(0)
        };
        let oldest = before(degree);
        let mut next = oldest ^ (oldest >> shift);
        for steps in (1..degree).filter(|steps| (inner >> (degree - 1 - steps)) & 1 == 1) {
            next ^= before(steps);
        }
        all.push(next);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::digest::Digest;

    fn all() -> Vec<Sequence> {
        (0..DIMENSIONS).map(|dimension| Sequence::new(dimension).unwrap()).collect()
    }

    /// `scipy.stats.qmc.Sobol(64, scramble=False, bits=32).random(256)` of SciPy 1.17.1, times 2^32: some of its numbers, and the
    /// SHA-256 of all of them, point by point, as little-endian `u32`.
    #[test]
    fn points_are_those_of_scipy() {
        let all = all();
        let eighths =
            |point: u32| [0, 1, 2, 63].map(|dimension: usize| all[dimension].at(point) >> 29);
        assert_eq!(eighths(0), [0, 0, 0, 0]);
        assert_eq!(eighths(1), [4, 4, 4, 4]);
        assert_eq!(eighths(2), [6, 2, 2, 6]);
        assert_eq!(eighths(3), [2, 6, 6, 2]);
        assert_eq!(eighths(4), [3, 3, 5, 1]);
        assert_eq!(eighths(7), [1, 5, 3, 3]);
        let points = (0..256).flat_map(|point| all.iter().map(move |one| one.at(point)));
        let bytes: Vec<u8> = points.flat_map(u32::to_le_bytes).collect();
        assert_eq!(bytes.len(), 256 * 64 * 4);
        assert_eq!(
            Digest::of(&bytes).to_string(),
            "9f829d3e43abc88e3336481dbc5137b82c7740aa8d9b102747529378b2dc775e"
        );
        assert!(Sequence::new(DIMENSIONS).is_none());
    }

    /// The claim of docs/job-file.md on two choices with two values each.
    #[test]
    fn pairs_of_dimensions_are_even_once_there_are_enough_points() {
        let all = all();
        let halves = |dimension: usize, point| all[dimension].at(point) >> 31;
        let unevens = |dimensions: usize, points: u32| {
            let pairs = (0..dimensions).flat_map(|one| (0..one).map(move |other| (one, other)));
            let same = |(one, other)| {
                (0..points).filter(|point| halves(one, *point) == halves(other, *point)).count()
            };
            pairs.map(same).filter(|same| u32::try_from(*same) != Ok(points / 2)).count()
        };
        for (dimensions, points) in [(4, 16), (10, 32), (20, 64), (32, 128)] {
            assert_eq!(unevens(dimensions, points), 0, "{dimensions} dimensions");
            assert!(unevens(dimensions, points / 2) > 0, "{dimensions} dimensions");
        }
    }

    #[test]
    fn each_interval_has_one_point_of_a_run() {
        for (dimension, sequence) in all().iter().enumerate() {
            for (digits, begin) in [(1, 0), (4, 48), (10, 3 << 10)] {
                let mut hit = vec![false; 1 << digits];
                for point in begin..begin + (1 << digits) {
                    let interval = usize::try_from(sequence.at(point) >> (32 - digits)).unwrap();
                    let before = std::mem::replace(&mut hit[interval], true);
                    assert!(!before, "dimension {dimension}, point {point}");
                }
            }
        }
    }
}
