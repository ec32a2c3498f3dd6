//! The plan of the cut: parts, their shards, and the shard of each row. Pure.

pub(crate) use crate::piece::Part;
use crate::{
    error::IngestError,
    groups::{Bucket, Dealt, shards_of_fold},
    piece::{Piece, Sizes, ratio_of},
    route::Route,
};
use sojourn_protocol::{
    manifest::MAX_EVALUATION_SHARDS,
    quantity::{SaturatingFrom as _, to_u64},
    spec::{DataSpec, Split},
};

/// How the training rows are cut into shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cut {
    /// Into so many shards, whose sizes differ by at most one row.
    Equal(u32),
    /// Into shards of these sizes, which sum to all training rows.
    Rows(Vec<u64>),
}

impl Cut {
    fn shards(&self) -> u64 {
        match self {
            Cut::Equal(shards) => u64::from((*shards).max(1)),
            Cut::Rows(rows) => to_u64(rows.len()),
        }
    }

    fn largest(&self, rows: u64) -> u64 {
        match self {
            Cut::Equal(_) => rows.div_ceil(self.shards()),
            Cut::Rows(rows) => rows.iter().copied().max().unwrap_or(0),
        }
    }

    /// Refuses a cut that doesn't fit `left` training rows, or has a shard without rows. Rows are windows where text is cut into
    /// such.
    fn check(&self, left: u64, total: u64, window: Option<u32>) -> Result<(), IngestError> {
        let shards = u32::saturating_from(self.shards());
        let none = matches!(self, Cut::Rows(rows) if rows.contains(&0) || rows.is_empty());
        if left < self.shards() || none {
            return Err(match window {
                Some(window) => IngestError::TooFewWindows { window, left, total, shards },
                None => IngestError::TooManyShards { shards, rows: left, total },
            });
        }
        if let Cut::Rows(rows) = self {
            let rows = rows.iter().fold(0, |all: u64, rows| all.saturating_add(*rows));
            if rows != left {
                return Err(IngestError::OtherRows { rows, left });
            }
        }
        let largest = self.largest(left);
        let fits = largest <= u64::from(u32::MAX);
        if fits { Ok(()) } else { Err(IngestError::TooFewShards { rows: largest }) }
    }
}

/// All parts with their shards: training, then validation, then test.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    seed: u64,
    pieces: Vec<Piece>,
    /// Does each piece of the training file have a bucket of its groups?
    has_buckets: bool,
}

impl Plan {
    /// The plan for files with these many rows, each named by the part that it is for.
    pub(crate) fn new(
        seed: u64,
        data: &DataSpec,
        files: &[(Part, u64)],
        cut: &Cut,
        dealt: Option<&Dealt>,
    ) -> Result<Self, IngestError> {
        let (train, others) = left_to_train(data, files, dealt);
        let total = rows_of(files, Part::Train);
        cut.check(train, total, data.window)?;
        let largest = cut.largest(train);
        let mut plan = Self { seed, pieces: Vec::new(), has_buckets: dealt.is_some() };
        let folds: Vec<(u32, u64)> = dealt.map(folds_of).unwrap_or_default();
        if !folds.is_empty() {
            plan.add_folds(&folds, cut.shards(), total)?;
        }
        let sizes = match cut {
            Cut::Equal(_) => Sizes::Equal(cut.shards()),
            Cut::Rows(rows) => {
                let ends = rows.iter().scan(0, |end: &mut u64, rows| {
                    *end = end.saturating_add(*rows);
                    Some(*end)
                });
                Sizes::Ends(ends.collect())
            }
        };
        if folds.is_empty() {
            plan.add(Part::Train, Part::Train, train, sizes);
        }
        for (part, from, rows) in others {
            // No larger than a training shard, so that no host needs more memory for them, unless they would
            // be too many.
            let shards = rows.div_ceil(largest).clamp(1, u64::from(MAX_EVALUATION_SHARDS));
            plan.add(part, from, rows, Sizes::Equal(shards));
        }
        Ok(plan)
    }

    fn add(&mut self, part: Part, from: Part, rows: u64, sizes: Sizes) {
        let first_shard = self.in_order().len();
        self.pieces.push(Piece { part, from, rows, sizes, first_shard, step: 1 });
    }

    /// Folds of groups, each with as many of the training shards as it has of shards at all.
    fn add_folds(
        &mut self,
        folds: &[(u32, u64)],
        shards: u64,
        total: u64,
    ) -> Result<(), IngestError> {
        let step = folds.len();
        for (fold, rows) in folds {
            let of_fold = shards_of_fold(*fold, u32::saturating_from(step), shards);
            if *rows < of_fold {
                let shards = u32::saturating_from(of_fold);
                return Err(IngestError::TooManyShards { shards, rows: *rows, total });
            }
            let (part, from) = (Part::Train, Part::Train);
            let (first_shard, sizes) = (usize::saturating_from(*fold), Sizes::Equal(of_fold));
            self.pieces.push(Piece { part, from, rows: *rows, sizes, first_shard, step });
        }
        Ok(())
    }

    /// Every shard in order, with its piece and its rows.
    fn in_order(&self) -> Vec<(&Piece, u32)> {
        let of = |piece| {
            Piece::all(piece).map(move |(place, rows)| (place, (piece, u32::saturating_from(rows))))
        };
        let mut all: Vec<(usize, (&Piece, u32))> = self.pieces.iter().flat_map(of).collect();
        all.sort_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, shard)| shard).collect()
    }

    /// Every shard in order: its part and its rows.
    pub(crate) fn shards(&self) -> impl Iterator<Item = (Part, u32)> + '_ {
        self.in_order().into_iter().map(|(piece, rows)| (piece.part, rows))
    }

    /// For every shard in order, the part whose file its rows come from.
    pub(crate) fn sources(&self) -> impl Iterator<Item = Part> + '_ {
        self.in_order().into_iter().map(|(piece, _)| piece.from)
    }

    /// The places of the rows of the file for `from`. `classes`: how many rows of it each class has, where each is to be spread
    /// over parts and shards as all rows are.
    pub(crate) fn route(&self, from: Part, classes: Option<&[u64]>) -> Route {
        let pieces: Vec<Piece> =
            self.pieces.iter().filter(|piece| piece.from == from).cloned().collect();
        if self.has_buckets && from == Part::Train {
            return Route::by_bucket((self.seed, from.stream()), pieces);
        }
        Route::new((self.seed, from.stream()), pieces, classes)
    }
}

/// The number of training rows, and the other parts: each with the part whose file it comes from, and its rows.
pub(crate) fn left_to_train(
    data: &DataSpec,
    files: &[(Part, u64)],
    dealt: Option<&Dealt>,
) -> (u64, Vec<(Part, Part, u64)>) {
    let total = rows_of(files, Part::Train);
    let split = |part, split: Option<&Split>| match split {
        None | Some(Split::Folds) => None,
        Some(Split::File(_) | Split::Source(_)) => Some((part, part, rows_of(files, part))),
        Some(Split::Ratio(ratio)) => {
            let of_groups = dealt.and_then(|dealt| dealt.rows_of(part));
            Some((part, Part::Train, of_groups.unwrap_or_else(|| ratio_of(total, *ratio))))
        }
    };
    let valid = split(Part::Valid, Some(&data.valid));
    let test = split(Part::Test, data.test.as_ref());
    let others: Vec<(Part, Part, u64)> = valid.into_iter().chain(test).collect();
    let taken: u64 =
        others.iter().filter(|(_, from, _)| *from == Part::Train).map(|(.., rows)| rows).sum();
    (total.saturating_sub(taken), others)
}

/// The folds of groups, with their rows.
fn folds_of(dealt: &Dealt) -> Vec<(u32, u64)> {
    let fold = |(bucket, rows): &(Bucket, u64)| match bucket {
        Bucket::Fold(fold) => Some((*fold, *rows)),
        Bucket::Part(_) => None,
    };
    dealt.buckets.iter().filter_map(fold).collect()
}

/// Rows of the file for a part.
fn rows_of(files: &[(Part, u64)], part: Part) -> u64 {
    files.iter().find(|(of, _)| *of == part).map_or(0, |(_, rows)| *rows)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use sojourn_protocol::spec::{Channels, Dialect, Missing, OnBad, Scale, ScaleLabel};
    use std::collections::BTreeMap;

    pub(crate) fn data(valid: Split, test: Option<Split>) -> DataSpec {
        DataSpec {
            train: "t".into(),
            features: None,
            label: Some("y".into()),
            labels: None,
            separator: None,
            columns: None,
            categories: Vec::new(),
            missing: Missing::Refuse,
            on_bad_row: OnBad::Refuse,
            on_bad_image: OnBad::Refuse,
            dialect: Dialect::default(),
            window: None,
            tokenizer: None,
            length: BTreeMap::new(),
            shape: None,
            channels: Channels::First,
            scale: Scale::None,
            scale_label: ScaleLabel::None,
            valid,
            test,
            shards: None,
            shard_sizes: None,
            stratified: false,
            groups: None,
            group_folds: None,
            seed: None,
        }
    }

    fn counts(plan: &Plan, from: Part, rows: u64) -> Vec<u64> {
        let mut counts = vec![0; plan.shards().count()];
        let mut route = plan.route(from, None);
        for _ in 0..rows {
            counts[route.next(None).unwrap().shard] += 1;
        }
        assert_eq!(route.next(None), None);
        counts
    }

    proptest! {
        #[test]
        fn shards_are_balanced_within_one_row_and_as_planned(
            seed: u64, rows in 20u64..2000, shards in 1u32..10, ratio in 0.05f64..0.4, test in 0.05f64..0.4,
        ) {
            let spec = data(Split::Ratio(ratio), Some(Split::Ratio(test)));
            let Ok(plan) = Plan::new(seed, &spec, &[(Part::Train, rows)], &Cut::Equal(shards), None) else {
                return Ok(()); // More shards than rows; its own test.
            };
            let planned: Vec<(Part, u32)> = plan.shards().collect();
            let counts = counts(&plan, Part::Train, rows);
            let largest = planned.iter().filter(|(part, _)| *part == Part::Train).map(|(_, rows)| *rows).max();
            for part in [Part::Train, Part::Valid, Part::Test] {
                let of: Vec<u64> = planned.iter().zip(&counts)
                    .filter(|((of, _), _)| *of == part).map(|(_, count)| *count).collect();
                prop_assert!(of.iter().max().unwrap() - of.iter().min().unwrap() <= 1);
                prop_assert!(*of.iter().max().unwrap() <= u64::from(largest.unwrap()));
            }
            let planned: Vec<u64> = planned.iter().map(|(_, rows)| u64::from(*rows)).collect();
            prop_assert_eq!(planned, counts);
        }
    }

    #[test]
    fn evaluation_data_has_at_most_as_many_shards_as_a_report_can_name() {
        let spec = data(Split::Ratio(0.4), Some(Split::File("t".into())));
        let rows = [(Part::Train, 125_000), (Part::Test, 5_000)];
        let plan = Plan::new(1, &spec, &rows, &Cut::Equal(65_536), None).unwrap();
        // 75,000 rows to train on are two to a shard.
        for (part, wanted) in [(Part::Valid, 4096), (Part::Test, 2500)] {
            assert_eq!(plan.shards().filter(|(of, _)| *of == part).count(), wanted);
        }
    }

    #[test]
    fn own_files_are_cut_into_shards_no_larger_than_those_trained_on() {
        let spec = data(Split::File("v".into()), None);
        let plan =
            Plan::new(1, &spec, &[(Part::Train, 10), (Part::Valid, 7)], &Cut::Equal(4), None)
                .unwrap();
        let shards: Vec<(Part, u32)> = plan.shards().collect();
        assert_eq!(shards[..4], [3, 3, 2, 2].map(|rows| (Part::Train, rows)));
        assert_eq!(shards[4..], [3, 2, 2].map(|rows| (Part::Valid, rows)));
        assert_eq!(counts(&plan, Part::Train, 10)[..4], [3, 3, 2, 2]);
        assert_eq!(counts(&plan, Part::Valid, 7)[4..], [3, 2, 2]);
    }

    #[test]
    fn more_shards_than_rows_are_refused() {
        let spec = data(Split::Ratio(0.5), None);
        let plan = |cut| Plan::new(1, &spec, &[(Part::Train, 10)], &cut, None).unwrap_err();
        for cut in [Cut::Equal(6), Cut::Rows(vec![1, 1, 1, 1, 1, 0])] {
            let error = plan(cut);
            assert!(matches!(error, IngestError::TooManyShards { shards: 6, rows: 5, total: 10 }));
        }
        let error = plan(Cut::Rows(vec![3, 1]));
        assert!(matches!(error, IngestError::OtherRows { rows: 4, left: 5 }));
    }

    #[test]
    fn shards_are_of_the_sizes_that_are_said() {
        let spec = data(Split::Ratio(0.2), None);
        let plan =
            Plan::new(7, &spec, &[(Part::Train, 20)], &Cut::Rows(vec![9, 2, 5]), None).unwrap();
        let shards: Vec<(Part, u32)> = plan.shards().collect();
        assert_eq!(shards[..3], [9, 2, 5].map(|rows| (Part::Train, rows)));
        assert_eq!(shards[3..], [(Part::Valid, 4)], "no larger than the largest");
        assert_eq!(counts(&plan, Part::Train, 20), [9, 2, 5, 4]);
    }
}
