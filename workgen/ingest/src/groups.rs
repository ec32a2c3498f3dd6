//! Groups of rows that are kept together: all rows of one patient, or of one speaker, are in the same fold, or in the same part.
//!
//! ```text
//!   survey: rows of each group -> the largest first, each to the bucket that lacks most rows -> bucket of each group
//! ```
//!
//! A bucket is a fold, or the training, validation or test rows that are shares of one file. Groups of equal size are dealt in an
//! order that follows from the seed.

use crate::{
    error::{IngestError, Problem},
    piece::{Part, ratio_of},
};
use sojourn_protocol::{
    digest::Digest,
    quantity::to_u64,
    seeds,
    spec::{JobSpec, Split},
};
use std::{cmp::Reverse, collections::HashMap};

/// Most groups: they are kept in memory.
const MAX_GROUPS: usize = 1 << 20;

/// The groups of a file's rows, in the order in which they come.
#[derive(Debug, Clone, Default)]
pub(crate) struct Groups {
    places: HashMap<Digest, usize>,
    rows: Vec<u64>,
}

impl Groups {
    /// Counts a row of this group.
    pub(crate) fn see(&mut self, group: &[u8]) -> Result<(), Problem> {
        let next = self.rows.len();
        let place = *self.places.entry(Digest::of(group)).or_insert(next);
        match self.rows.get_mut(place) {
            Some(rows) => *rows += 1,
            None if next == MAX_GROUPS => {
                return Err(Problem::TooManyGroups { limit: MAX_GROUPS });
            }
            None => self.rows.push(1),
        }
        Ok(())
    }
}

/// Rows that are dealt together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bucket {
    Fold(u32),
    Part(Part),
}

/// The bucket of each group of the training file.
#[derive(Debug, Clone)]
pub(crate) struct Dealt {
    places: HashMap<Digest, usize>,
    /// The index of each group's bucket.
    of_group: Vec<usize>,
    /// All buckets, the training rows or folds first, with their rows.
    pub(crate) buckets: Vec<(Bucket, u64)>,
}

impl Dealt {
    /// Deals the groups of the training file.
    pub(crate) fn new(spec: &JobSpec, groups: Groups) -> Result<Self, IngestError> {
        let wanted = wanted(spec, groups.rows.iter().sum());
        let too_few = || IngestError::TooFewGroups {
            groups: to_u64(groups.rows.len()),
            wanted: to_u64(wanted.len()),
        };
        let seed = spec.data_seed();
        let chance = |group: usize| seeds::derive("ingest-groups", &[seed, to_u64(group)]);
        let mut order: Vec<(usize, u64)> = groups.rows.iter().copied().enumerate().collect();
        order.sort_by_cached_key(|(group, rows)| (Reverse(*rows), chance(*group)));
        let mut of_group = vec![0; groups.rows.len()];
        let mut has = vec![0_u64; wanted.len()];
        for ((group, rows), left) in order.into_iter().zip((1..=groups.rows.len()).rev()) {
            // None stays empty that a group is left for.
            let is_short = left <= has.iter().filter(|has| **has == 0).count();
            let open =
                wanted.iter().zip(&has).enumerate().filter(|(_, (_, has))| !is_short || **has == 0);
            let lacks = |of: &(usize, (&(Bucket, u64), &u64))| {
                let (_, ((_, wanted), has)) = of;
                wanted.cast_signed() - has.cast_signed()
            };
            // Of several that lack as many, the first.
            let (bucket, _) = open.min_by_key(|of| Reverse(lacks(of))).ok_or_else(too_few)?;
            if let (Some(of), Some(has)) = (of_group.get_mut(group), has.get_mut(bucket)) {
                (*of, *has) = (bucket, *has + rows);
            }
        }
        if has.contains(&0) {
            return Err(too_few());
        }
        let buckets = wanted.iter().zip(has).map(|((bucket, _), rows)| (*bucket, rows)).collect();
        Ok(Self { places: groups.places, of_group, buckets })
    }

    /// The index of the bucket of a group's rows; `None` of a group that isn't known.
    pub(crate) fn bucket(&self, group: &[u8]) -> Option<usize> {
        self.of_group.get(*self.places.get(&Digest::of(group))?).copied()
    }

    /// Rows of a part, of all its folds together; `None` of a part that has its own file.
    pub(crate) fn rows_of(&self, part: Part) -> Option<u64> {
        let of_part = |bucket: Bucket| match bucket {
            Bucket::Fold(_) => part == Part::Train,
            Bucket::Part(of) => part == of,
        };
        let rows = self.buckets.iter().filter(|(bucket, _)| of_part(*bucket));
        let rows: Vec<u64> = rows.map(|(_, rows)| *rows).collect();
        (!rows.is_empty()).then(|| rows.iter().sum())
    }
}

/// The buckets, each with the rows that it would have if groups were single rows.
fn wanted(spec: &JobSpec, total: u64) -> Vec<(Bucket, u64)> {
    let share = |split: Option<&Split>| match split {
        Some(Split::Ratio(ratio)) => Some(ratio_of(total, *ratio)),
        Some(Split::File(_) | Split::Source(_) | Split::Folds) | None => None,
    };
    let others = [(Part::Valid, Some(&spec.data.valid)), (Part::Test, spec.data.test.as_ref())];
    let others = others.map(|(part, split)| Some((Bucket::Part(part), share(split)?)));
    let others: Vec<(Bucket, u64)> = others.into_iter().flatten().collect();
    let left = total.saturating_sub(others.iter().map(|(_, rows)| rows).sum());
    let train = match spec.search.folds {
        None => vec![(Bucket::Part(Part::Train), left)],
        Some(folds) => {
            let of_fold = |fold| {
                let fold = u64::from(fold);
                left / u64::from(folds) + u64::from(fold < left % u64::from(folds))
            };
            (0..folds).map(|fold| (Bucket::Fold(fold), of_fold(fold))).collect()
        }
    };
    train.into_iter().chain(others).collect()
}

/// How many of so many shards are of a fold.
pub(crate) fn shards_of_fold(fold: u32, folds: u32, shards: u64) -> u64 {
    let (fold, folds) = (u64::from(fold), u64::from(folds).max(1));
    (shards + folds).saturating_sub(fold + 1) / folds
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_fold_has_its_shards() {
        for (folds, shards) in [(2, 2), (3, 7), (5, 20), (4, 5)] {
            let all: u64 = (0..folds).map(|fold| shards_of_fold(fold, folds, shards)).sum();
            assert_eq!(all, shards);
            assert_eq!(shards_of_fold(0, folds, shards), shards.div_ceil(u64::from(folds)));
        }
    }

    fn deal(sizes: &[u64], keys: &str) -> Result<Dealt, IngestError> {
        let text = format!(
            "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\ngroups = \"g\"\n{keys}\n[[model]]\narch = \"mlp\"\nhidden = [4]\n"
        );
        let job = sojourn_protocol::jobfile::parse(&format!("{text}[training]\nepochs = 1\n"));
        let mut groups = Groups::default();
        for (group, rows) in sizes.iter().enumerate() {
            (0..*rows).try_for_each(|_| groups.see(&group.to_be_bytes())).unwrap();
        }
        Dealt::new(&job.unwrap(), groups)
    }

    #[test]
    fn folds_of_equal_groups_have_as_many_of_them() {
        let mut sizes = vec![10; 30];
        let dealt = deal(&sizes, "test = 0.1\n[search]\nfolds = 3").unwrap();
        let rows: Vec<u64> = dealt.buckets.iter().map(|(_, rows)| *rows).collect();
        assert_eq!(rows, [90, 90, 90, 30]);
        assert_eq!((dealt.rows_of(Part::Train), dealt.rows_of(Part::Test)), (Some(270), Some(30)));
        assert_eq!(dealt.rows_of(Part::Valid), None);
        // One group that is larger than a fold.
        sizes[7] = 500;
        let dealt = deal(&sizes, "[search]\nfolds = 3").unwrap();
        let rows: Vec<u64> = dealt.buckets.iter().map(|(_, rows)| *rows).collect();
        assert_eq!(rows.iter().sum::<u64>(), 790);
        assert!(rows.contains(&500), "{rows:?}");
        assert!(matches!(
            deal(&[3, 3], "[search]\nfolds = 3"),
            Err(IngestError::TooFewGroups { groups: 2, wanted: 3 })
        ));
    }

    proptest! {
        #[test]
        fn no_bucket_is_off_by_more_than_the_largest_group(
            sizes in prop::collection::vec(1_u64..40, 8..60),
            valid in 0.1_f64..0.5,
        ) {
            let dealt = deal(&sizes, &format!("valid = {valid}")).unwrap();
            let total: u64 = sizes.iter().sum();
            let wanted = ratio_of(total, valid);
            let largest = *sizes.iter().max().unwrap();
            let has = dealt.rows_of(Part::Valid).unwrap();
            prop_assert!(has.abs_diff(wanted) <= largest, "{has} of {wanted}, groups up to {largest}");
            prop_assert_eq!(dealt.rows_of(Part::Train).unwrap() + has, total);
        }
    }
}
