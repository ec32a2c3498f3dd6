//! The properties of every number of shards.

use proptest::prelude::*;
use sojourn_workgen::shards::{Load, MAX_SHARDS, ShardHost, by_speed, rows_by_weight, shard_count};

fn load() -> impl Strategy<Value = Load> {
    let sizes = (1u64.., 0u64..1 << 50, 0u64..100_000, 0u64..1 << 20);
    let work = (0u64..1 << 50, 0u64..1 << 45, proptest::option::of(0u32..100));
    (sizes, work).prop_map(|((rows, bytes, trials, batch), (flops, checkpoint, replicas))| Load {
        rows: rows >> (bytes % 60),
        bytes,
        trials,
        batch,
        flops,
        checkpoint,
        replicas,
    })
}

fn hosts() -> impl Strategy<Value = Vec<ShardHost>> {
    let rate = || proptest::option::of(0u64..1 << 40);
    let host = (0u32..64, 0u64..1 << 55, rate(), rate(), rate());
    let host = host.prop_map(|(slots, flops, download, upload, cache)| ShardHost {
        slots,
        flops,
        download,
        upload,
        cache,
    });
    proptest::collection::vec(host, 0..40)
}

proptest! {
    #[test]
    fn there_is_a_row_for_every_shard(load in load(), hosts in hosts()) {
        let count = shard_count(&load, &hosts);
        prop_assert!((1..=MAX_SHARDS).contains(&count.shards));
        prop_assert!(count.shards == 1 || u64::from(count.shards) <= load.rows / (4 * load.batch.max(1)));
        prop_assert!(!count.to_string().is_empty());
    }

    #[test]
    fn hosts_may_come_in_any_order(load in load(), mut hosts in hosts()) {
        let count = shard_count(&load, &hosts);
        let sizes = by_speed(load.rows, count.shards, &hosts);
        hosts.reverse();
        prop_assert_eq!(shard_count(&load, &hosts), count.clone());
        prop_assert_eq!(by_speed(load.rows, count.shards, &hosts), sizes);
    }

    #[test]
    fn heavier_checkpoints_never_make_more_shards(load in load(), hosts in hosts(), more in 0u64..1 << 45) {
        let heavier = Load { checkpoint: load.checkpoint + more, ..load };
        prop_assert!(shard_count(&heavier, &hosts).shards <= shard_count(&load, &hosts).shards);
    }

    #[test]
    fn every_row_is_shared_out(rows in 0u64..1 << 40, weights in proptest::collection::vec(0u64.., 1..50)) {
        let rows_by_weight = rows_by_weight(rows.max(weights.len() as u64), &weights);
        prop_assert_eq!(rows_by_weight.iter().sum::<u64>(), rows.max(weights.len() as u64));
        prop_assert!(rows_by_weight.iter().all(|ratio| *ratio > 0));
    }

    #[test]
    fn sizes_go_by_speed(rows in 1u64..1 << 40, shards in 1u32..500, hosts in hosts()) {
        let Some(sizes) = by_speed(rows, shards, &hosts) else { return Ok(()) };
        prop_assert_eq!(sizes.len(), shards as usize);
        prop_assert_eq!(sizes.iter().sum::<u64>(), rows);
        prop_assert!(sizes.iter().all(|size| *size > 0));
    }
}
