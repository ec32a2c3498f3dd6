//! The hop chain: whatever order the shards come in and however hops are split, every batch is trained
//! once per epoch, and nothing out of place is taken.

use proptest::prelude::*;
use sojourn_protocol::{
    cross_validation::Fold,
    digest::{BlobRef, Digest},
    ids::{Epoch, ShardId, TrialId},
    manifest::Shard,
    minibatches::Minibatches,
    position::Position,
    seeds,
};
use sojourn_workgen::{Advance, Chain, ChainError, Through};
use std::collections::BTreeSet;

fn shards(rows: &[u32]) -> Vec<Shard> {
    let blob = BlobRef { sha256: Digest::of(b""), bytes: 0 };
    rows.iter().map(|rows| Shard { blob, rows: *rows }).collect()
}

fn ends_at(start: Position, batch: u32) -> Position {
    Position { batch, step: start.step + u64::from(batch - start.batch), ..start }
}

proptest! {
    #[test]
    fn every_batch_once_per_epoch(
        rows in prop::collection::vec(1u32..50, 1..6),
        epochs in 1u32..4,
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..400),
        is_fixed: bool,
        fold in prop::option::of(0u32..2),
    ) {
        let fold = fold.filter(|_| rows.len() > 1).map(|number| Fold { number, of: 2 });
        let mut chain = Chain::new(epochs, Minibatches::new(8, 1), &shards(&rows));
        chain = chain.without_fold(fold);
        if is_fixed {
            chain = chain.with_fixed_visits(7, TrialId(3));
        }
        let total = chain.remaining();
        let mut trained = BTreeSet::new();
        for (which, how_far) in picks {
            let open: Vec<ShardId> = chain.next_shards().collect();
            if open.is_empty() {
                break;
            }
            let start = chain.next(open[which.index(open.len())]).unwrap();
            prop_assert!(fold.is_none_or(|fold| !fold.holds_out(start.shard)));
            let left = chain.remaining_in(start.shard);
            let end = start.batch + 1 + u32::try_from(how_far.index(left as usize)).unwrap();
            for batch in start.batch..end {
                prop_assert!(trained.insert((start.epoch, start.shard, batch)));
            }
            let before = chain.clone();
            prop_assert!(chain.advance(ends_at(start, end), ends_at(start, end)).is_err());
            prop_assert_eq!(&before, &chain, "a refused part changes nothing");
            let advance = chain.advance(start, ends_at(start, end)).unwrap();
            prop_assert_eq!(advance == Advance::Part, end < start.batch + left);
            prop_assert_eq!(chain.step(), trained.len() as u64);
            prop_assert_eq!(chain.remaining(), total - chain.step());
        }
        if chain.is_done() {
            prop_assert_eq!(trained.len() as u64, total);
            prop_assert_eq!(chain.epoch(), Epoch(epochs));
            let visited = (0..).map(ShardId).take(rows.len());
            let visited = visited.filter(|shard| fold.is_none_or(|fold| !fold.holds_out(*shard)));
            let visited = visited.count() as u64;
            prop_assert_eq!(chain.hops_per_epoch(), visited);
            prop_assert_eq!(chain.hops(), u64::from(epochs) * visited);
        }
    }
}

proptest! {
    #[test]
    fn several_shards_in_a_row_are_each_alone_or_nothing(
        rows in prop::collection::vec(1u32..50, 1..6),
        picks in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::collection::vec(0u32..6, 0..6), 0u32..30, 0u32..7),
            1..60,
        ),
    ) {
        let mut chain = Chain::new(3, Minibatches::new(8, 1), &shards(&rows));
        for (which, then, how_far, end_on) in picks {
            let open: Vec<ShardId> = chain.open().collect();
            if open.is_empty() {
                break;
            }
            let start = chain.next(open[which.index(open.len())]).unwrap();
            let then: Vec<ShardId> = then.into_iter().map(ShardId).collect();
            // Each alone, whole but for the last; what can't be done that way can't be done at once.
            let mut alone = chain.clone();
            let way: Vec<ShardId> = std::iter::once(start.shard).chain(then.iter().copied()).collect();
            let on = way.len().min(1 + end_on as usize) - 1;
            let mut end = start;
            let mut last = Ok(Advance::Part);
            for (n, shard) in way.iter().take(on + 1).enumerate() {
                let next = alone.next(*shard).filter(|next| next.epoch == start.epoch);
                let fresh = n == 0 || next.is_some_and(|next| next.batch == 0);
                let Some(next) = next.filter(|_| fresh) else {
                    last = Err(());
                    // Some end there that could be claimed.
                    end = Position { shard: *shard, batch: 1, step: end.step + 1, ..start };
                    break;
                };
                let left = alone.remaining_in(*shard);
                let trained = if n == on { left.min(1 + how_far) } else { left };
                end = ends_at(next, next.batch + trained);
                last = alone.advance(next, end).map_err(|_| ());
            }
            let before = chain.clone();
            let through = chain.advance_through(start, &then, end);
            // A shard that comes twice ends where it comes first.
            let first = way.iter().position(|shard| *shard == end.shard);
            if last.is_ok() && first == Some(on) {
                prop_assert_eq!(through, Ok(Through { further: on, last: last.unwrap() }));
                prop_assert_eq!(&chain, &alone);
            } else {
                prop_assert!(through.is_err(), "{:?}", through);
                prop_assert_eq!(&before, &chain, "a refused part changes nothing");
            }
        }
    }
}

#[test]
fn fixed_visits_come_in_one_order_for_each_epoch_however_they_are_cut() {
    let (trial, all) = (TrialId(2), [8, 20, 16, 9]);
    let mut chain =
        Chain::new(3, Minibatches::new(8, 1), &shards(&all)).with_fixed_visits(5, trial);
    for epoch in (0..3).map(Epoch) {
        let order = seeds::visit_order(5, trial, epoch, 4);
        for (n, shard) in order.iter().enumerate() {
            assert_eq!(chain.open().collect::<Vec<_>>(), order[n..], "what remains, in order");
            assert_eq!(chain.next_shards().collect::<Vec<_>>(), [*shard]);
            for other in &order[n + 1..] {
                assert_eq!(chain.next(*other), None);
                assert!(chain.is_untouched(*other));
                let start = Position { shard: *other, ..chain.next(*shard).unwrap() };
                let refused = chain.advance(start, ends_at(start, 1));
                assert_eq!(refused, Err(ChainError::NotNext { start, expected: None }));
            }
            while let Some(start) = chain.next(*shard).filter(|next| next.epoch == epoch) {
                chain.advance(start, ends_at(start, start.batch + 1)).unwrap();
            }
        }
    }
    assert!(chain.is_done());
    assert_eq!(chain.open().next(), None);
    chain.extend(4);
    let order = seeds::visit_order(5, trial, Epoch(3), 4);
    assert_eq!(chain.open().collect::<Vec<_>>(), order);
    // In a row: only in that order.
    let start = chain.next(order[0]).unwrap();
    let steps = chain.remaining_in(order[0]);
    let end =
        Position { shard: order[1], batch: 1, step: start.step + u64::from(steps) + 1, ..start };
    assert!(chain.clone().advance_through(start, &[order[2], order[1]], end).is_err());
    chain.advance_through(start, &order[1..], end).unwrap();
    let saved = serde_json::to_string(&chain).unwrap();
    assert_eq!(serde_json::from_str::<Chain>(&saved).unwrap(), chain);
}

#[test]
fn shards_in_a_row_are_of_one_epoch_and_each_from_its_first_batch() {
    let mut chain = Chain::new(2, Minibatches::new(8, 1), &shards(&[20, 8, 16]));
    let [a, b, c] = [0, 1, 2].map(ShardId);
    let start = chain.next(a).unwrap();
    chain.advance(start, ends_at(start, 2)).unwrap();
    let rest = chain.next(a).unwrap();
    let end = |shard, batch, step| Position { shard, batch, step, ..rest };
    let untouched = chain.clone();
    for (then, end) in [
        (&[c][..], end(b, 1, 4)),
        (&[c, b], end(b, 1, 4)),
        (&[c, b], end(b, 2, 7)),
        (&[c, b], end(b, 0, 5)),
        (&[a, b], end(b, 1, 4)),
        (&[c, c, b], end(b, 1, 6)),
        (&[ShardId(9), b], end(b, 1, 4)),
        // Behind the epoch's end the first shard would be open again.
        (&[b, c, a], Position { epoch: Epoch(1), ..end(a, 1, 7) }),
    ] {
        assert!(chain.advance_through(rest, then, end).is_err(), "{then:?} to {end}");
        assert_eq!(chain, untouched);
    }
    assert!(chain.advance_through(start, &[c], end(c, 1, 4)).is_err());
    let mut elsewhere = chain.clone();
    let other = elsewhere.next(b).unwrap();
    let into_rest = elsewhere.advance_through(other, &[a], end(a, 1, 4));
    assert!(into_rest.is_err(), "a further shard begins at its first batch");
    let through = chain.advance_through(rest, &[c, b], end(c, 1, 4));
    assert_eq!(through, Ok(Through { further: 1, last: Advance::Part }));
    assert_eq!((chain.remaining_in(a), chain.remaining_in(c), chain.remaining_in(b)), (0, 1, 1));
    let rest = chain.next(c).unwrap();
    let through = chain.advance_through(rest, &[b], end(b, 1, 6));
    assert_eq!(through, Ok(Through { further: 1, last: Advance::Epoch(Epoch(0)) }));
    assert_eq!((chain.epoch(), chain.hops(), chain.remaining()), (Epoch(1), 3, 6));
}

#[test]
fn a_part_out_of_place_is_refused() {
    let mut chain = Chain::new(2, Minibatches::new(8, 1), &shards(&[20, 8]));
    let start = chain.next(ShardId(0)).unwrap();
    assert_eq!(chain.remaining_in(ShardId(0)), 3);
    assert_eq!(chain.advance(start, ends_at(start, 2)), Ok(Advance::Part));
    assert!(matches!(chain.advance(start, ends_at(start, 3)), Err(ChainError::NotNext { .. })));
    let rest = chain.next(ShardId(0)).unwrap();
    assert_eq!((rest.batch, rest.step), (2, 2));
    assert!(matches!(chain.advance(rest, ends_at(rest, 4)), Err(ChainError::BadEnd { .. })));
    assert!(matches!(chain.advance(rest, rest), Err(ChainError::BadEnd { .. })));
    let mut other = ends_at(rest, 3);
    other.shard = ShardId(1);
    assert!(matches!(chain.advance(rest, other), Err(ChainError::BadEnd { .. })));
    assert_eq!(chain.advance(rest, ends_at(rest, 3)), Ok(Advance::Hop));
    assert_eq!(chain.next(ShardId(0)), None, "a shard is visited once in an epoch");
    let last = chain.next(ShardId(1)).unwrap();
    assert_eq!(chain.advance(last, ends_at(last, 1)), Ok(Advance::Epoch(Epoch(0))));
    assert_eq!(chain.next(ShardId(7)), None);
}

#[test]
fn an_extended_chain_goes_on_where_it_ended() {
    let mut chain = Chain::new(1, Minibatches::new(8, 1), &shards(&[20, 8]));
    let hop = |chain: &mut Chain, shard: u32| {
        let start = chain.next(ShardId(shard)).unwrap();
        let left = chain.remaining_in(ShardId(shard));
        let end =
            Position { batch: start.batch + left, step: start.step + u64::from(left), ..start };
        chain.advance(start, end).unwrap()
    };
    hop(&mut chain, 1);
    chain.extend(2);
    assert_eq!((chain.remaining(), chain.hops()), (7, 1), "in the middle of an epoch");
    assert_eq!(hop(&mut chain, 0), Advance::Epoch(Epoch(0)));
    hop(&mut chain, 0);
    hop(&mut chain, 1);
    assert!(chain.is_done());
    chain.extend(2);
    assert!(chain.is_done(), "it has as many");
    chain.extend(3);
    assert!(!chain.is_done());
    let start = Position { epoch: Epoch(2), shard: ShardId(1), batch: 0, step: 8 };
    assert_eq!(chain.next(ShardId(1)), Some(start));
    assert_eq!((chain.remaining(), chain.hops()), (4, 4));
    hop(&mut chain, 1);
    assert_eq!(hop(&mut chain, 0), Advance::Epoch(Epoch(2)));
    assert!(chain.is_done());
}
