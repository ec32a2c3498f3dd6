//! How a hop cuts its shard's rows into batches: one pass over the shard after another, each in an order of its own.
//!
//! ```text
//!   20 rows, batches of 8, two passes
//!   batch   0        1         2         3        4         5
//!   rows    0..8     8..16     16..20    0..8     8..16     16..20     of the pass's order
//!   pass    0                            1
//! ```

/// The batches of a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Minibatches {
    /// Rows in a batch.
    batch_size: u32,
    /// Passes over the shard, at least 1.
    passes: u32,
}

/// Where a batch of a hop is in its pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassBatch {
    /// The pass, from 0.
    pub pass: u32,
    /// The batch, from the pass's first.
    pub batch: u32,
}

impl Minibatches {
    /// Batches of so many rows, with so many passes over the shard; each at least 1.
    #[must_use]
    pub fn new(batch_size: u32, passes: u32) -> Self {
        Self { batch_size: batch_size.max(1), passes: passes.max(1) }
    }

    /// Rows in a batch.
    #[must_use]
    pub fn batch_size(self) -> u32 {
        self.batch_size
    }

    /// Batches of one pass over so many rows: the last one may be smaller.
    #[must_use]
    pub fn of_pass(self, rows: u32) -> u32 {
        rows.div_ceil(self.batch_size)
    }

    /// Batches of a whole hop over a shard of so many rows. [`Self::fits`] says whether they can be counted.
    #[must_use]
    pub fn of_hop(self, rows: u32) -> u32 {
        self.of_pass(rows).saturating_mul(self.passes)
    }

    /// Can the batches of a shard of so many rows be counted in 32 bits?
    #[must_use]
    pub fn fits(self, rows: u32) -> bool {
        self.of_pass(rows).checked_mul(self.passes).is_some()
    }

    /// Rows that a whole hop over a shard of so many rows trains on.
    fn rows_of_hop(self, rows: u32) -> u64 {
        u64::from(rows) * u64::from(self.passes)
    }

    /// Rows of a hop's batches before `batch`, over a shard of so many rows.
    #[must_use]
    pub fn rows_before(self, rows: u32, batch: u32) -> u64 {
        let PassBatch { pass, batch } = self.place(rows, batch);
        if pass >= self.passes {
            return self.rows_of_hop(rows);
        }
        let in_pass = u64::from(batch) * u64::from(self.batch_size);
        u64::from(pass) * u64::from(rows) + in_pass.min(u64::from(rows))
    }

    /// The pass that a batch of a hop is in, and its place there.
    #[must_use]
    pub fn place(self, rows: u32, batch: u32) -> PassBatch {
        let of_pass = self.of_pass(rows).max(1);
        PassBatch { pass: batch / of_pass, batch: batch % of_pass }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_and_rows_go_on_over_the_passes() {
        let two = Minibatches::new(8, 2);
        assert_eq!((two.of_pass(20), two.of_hop(20), two.rows_of_hop(20)), (3, 6, 40));
        let before: Vec<u64> = (0..=7).map(|batch| two.rows_before(20, batch)).collect();
        assert_eq!(before, [0, 8, 16, 20, 28, 36, 40, 40]);
        assert_eq!(two.rows_before(20, u32::MAX), 40);
        assert_eq!(two.place(20, 4), PassBatch { pass: 1, batch: 1 });
    }

    #[test]
    fn one_pass_is_a_hop_as_ever() {
        let one = Minibatches::new(8, 1);
        let before: Vec<u64> = (0..=3).map(|batch| one.rows_before(20, batch)).collect();
        assert_eq!((one.of_hop(20), before), (3, vec![0, 8, 16, 20]));
    }

    #[test]
    fn more_batches_than_can_be_counted_are_seen() {
        let many = Minibatches::new(1, 1000);
        assert!(many.fits(4_000_000) && !many.fits(5_000_000));
        assert_eq!(many.of_hop(5_000_000), u32::MAX);
    }
}
