//! Open shops by seed, in the spirit of public sets.

#![expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "small by construction"
)]

use sojourn_protocol::seeds;

/// Rows and columns that nearly all add up to 1000, of widely spread durations (in the spirit of Guéret
/// and Prins): the lower bound is out of reach, and static rules do badly.
pub(crate) fn balanced(size: usize, seed: u64) -> Vec<Vec<u64>> {
    let mut rng = seeds::stream("balanced", &[seed, size as u64]);
    let mut rows = vec![vec![1000 / size as u64; size]; size];
    for (n, row) in rows.iter_mut().enumerate() {
        row[n] += 1000 % size as u64;
    }
    // Moves along a rectangle keep all sums.
    for _ in 0..size * size * 40 {
        let mut draw = || seeds::below(&mut rng, size as u32) as usize;
        let (a, b, c, d) = (draw(), draw(), draw(), draw());
        if a == b || c == d {
            continue;
        }
        let most = rows[a][c].min(rows[b][d]).saturating_sub(1);
        let by = u64::from(seeds::below(&mut rng, most as u32 + 1));
        rows[a][c] -= by;
        rows[b][d] -= by;
        rows[a][d] += by;
        rows[b][c] += by;
    }
    rows
}
