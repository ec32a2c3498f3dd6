//! The places of one file's rows, as they are read: at random, or so that each class is spread over parts and shards alike.
//!
//! ```text
//! at random    row i of the file       -> permutation(i) ---------------------+
//! by class     row k of its class c    -> first of c + permutation of c (k) --+-> place -> part -> shard
//! by bucket    row k of its bucket b   -> permutation of b (k) -> place in the piece of b -> shard
//! ```
//!
//! By class, places are those of all rows in the order of their classes. Of any run of them each part has its ratio to within one
//! row, and so has each shard of a part: they take every n-th place, as Bresenham's line has its steps.

use crate::{
    permutation::Permutation,
    piece::{Part, Piece},
};
use sojourn_protocol::quantity::mul_div;

/// A row's place: its part, and its shard among all shards of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowPlace {
    pub(crate) part: Part,
    pub(crate) shard: usize,
}

/// The places of one file's rows, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// All rows, or those of each class or bucket.
    strata: Vec<Stratum>,
    by: By,
    pieces: Vec<Piece>,
}

/// The strata of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    File,
    Class,
    /// Each bucket of groups has a piece.
    Bucket,
}

/// Rows that are dealt alike.
#[derive(Debug, Clone)]
struct Stratum {
    /// The first place of its rows.
    first: u64,
    permutation: Permutation,
    /// How many of its rows have a place.
    dealt: u64,
}

impl Route {
    /// The route of a file whose rows go to these parts.
    pub(crate) fn new(
        (seed, stream): (u64, u64),
        pieces: Vec<Piece>,
        classes: Option<&[u64]>,
    ) -> Self {
        let all = [pieces.iter().map(|piece| piece.rows).sum()];
        let by = if classes.is_some() { By::Class } else { By::File };
        Self { strata: strata((seed, stream), classes.unwrap_or(&all), by), by, pieces }
    }

    /// The route of a file of whose rows each piece has a bucket.
    pub(crate) fn by_bucket(of: (u64, u64), pieces: Vec<Piece>) -> Self {
        let rows: Vec<u64> = pieces.iter().map(|piece| piece.rows).collect();
        Self { strata: strata(of, &rows, By::Bucket), by: By::Bucket, pieces }
    }

    /// The place of the next row, which is of this class or bucket; `None` where the plan has no such row.
    pub(crate) fn next(&mut self, of: Option<usize>) -> Option<RowPlace> {
        let index = if self.by == By::File { 0 } else { of? };
        let stratum = self.strata.get_mut(index)?;
        let place = stratum.permutation.at(stratum.dealt)?;
        stratum.dealt += 1;
        match self.by {
            By::File => self.in_a_row(place),
            By::Class => {
                let place = stratum.first + place;
                self.spread(place)
            }
            By::Bucket => self.pieces.get(index)?.place(place),
        }
    }

    /// Places by parts, one part after the other.
    fn in_a_row(&self, mut place: u64) -> Option<RowPlace> {
        for piece in &self.pieces {
            if place < piece.rows {
                return piece.place(place);
            }
            place -= piece.rows;
        }
        None
    }

    /// Places that the parts share evenly: those of the last part are taken out of all, those of the one before out of the rest, and so on.
    fn spread(&self, mut place: u64) -> Option<RowPlace> {
        let mut all: u64 = self.pieces.iter().map(|piece| piece.rows).sum();
        let (first, others) = self.pieces.split_first()?;
        for piece in others.iter().rev() {
            let before = mul_div(place, piece.rows, all);
            if mul_div(place + 1, piece.rows, all) > before {
                return piece.place(before);
            }
            (place, all) = (place - before, all - piece.rows);
        }
        first.place(place)
    }
}

/// Strata with so many rows each.
fn strata((seed, stream): (u64, u64), rows: &[u64], by: By) -> Vec<Stratum> {
    let mut first = 0;
    let strata = rows.iter().zip(0..).map(|(rows, index)| {
        let seed = if by == By::File { seed } else { Permutation::seed_of(seed, index) };
        let permutation = Permutation::new(seed, stream, *rows);
        let stratum = Stratum { first, permutation, dealt: 0 };
        first += rows;
        stratum
    });
    strata.collect()
}

impl Piece {
    fn place(&self, place: u64) -> Option<RowPlace> {
        Some(RowPlace { part: self.part, shard: self.shard_of(place)? })
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::{Cut, Part, Plan, tests::data};
    use proptest::prelude::*;
    use sojourn_protocol::spec::Split;

    proptest! {
        #[test]
        fn each_class_is_spread_over_parts_and_shards_to_within_a_row(
            seed: u64,
            sizes in prop::collection::vec(0u64..300, 1..8),
            order: u64,
            shards in 1u32..10,
            ratio in 0.05f64..0.4,
            test in prop::option::of(0.05f64..0.4),
        ) {
            let spec = data(Split::Ratio(ratio), test.map(Split::Ratio));
            let rows: u64 = sizes.iter().sum();
            let Ok(plan) = Plan::new(seed, &spec, &[(Part::Train, rows)], &Cut::Equal(shards), None) else {
                return Ok(());
            };
            let planned: Vec<(Part, u32)> = plan.shards().collect();
            let mut route = plan.route(Part::Train, Some(&sizes));
            let mut counts = vec![vec![0_u64; sizes.len()]; planned.len()];
            // Rows in any order of their classes.
            let mut left = sizes.clone();
            let mut at = order;
            for _ in 0..rows {
                at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let mut class = usize::try_from(at >> 33).unwrap() % left.len();
                while left[class] == 0 {
                    class = (class + 1) % left.len();
                }
                left[class] -= 1;
                counts[route.next(Some(class)).unwrap().shard][class] += 1;
            }
            for (class, size) in sizes.iter().enumerate() {
                prop_assert_eq!(route.next(Some(class)), None);
                for part in [Part::Train, Part::Valid, Part::Test] {
                    let of_part: Vec<(u64, u64)> = planned.iter().zip(&counts)
                        .filter(|((of, _), _)| *of == part)
                        .map(|((_, rows), counts)| (u64::from(*rows), counts[class])).collect();
                    let (in_part, of_class) = of_part.iter().fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
                    let fair = in_part as f64 * *size as f64 / rows as f64;
                    prop_assert!((of_class as f64 - fair).abs() < 2.5, "{of_class} {fair}");
                    for (_, of_shard) in &of_part {
                        let fair = of_class as f64 / of_part.len() as f64;
                        prop_assert!((*of_shard as f64 - fair).abs() < 1.0 + 1e-9, "{of_shard} {fair}");
                    }
                }
            }
            let found: Vec<u64> = counts.iter().map(|counts| counts.iter().sum()).collect();
            let planned: Vec<u64> = planned.iter().map(|(_, rows)| u64::from(*rows)).collect();
            prop_assert_eq!(found, planned);
        }
    }
}
