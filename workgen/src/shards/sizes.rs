//! How a job's rows are distributed over its shards.

use super::ShardHost;
use sojourn_protocol::quantity::{SaturatingFrom as _, to_u64, to_usize};

/// Rows in proportion to weights, rounded to whole numbers, in order. Each weight has at least one row where there are
/// enough; where no weight is above 0 all have equally many.
#[must_use]
pub fn rows_by_weight(rows: u64, weights: &[u64]) -> Vec<u64> {
    let count = to_u64(weights.len());
    let all: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let spare = rows.saturating_sub(count);
    let (mut sum, mut before) = (0u128, 0);
    let mut part = |weight: u64, of: u128| {
        sum += u128::from(weight);
        let of = of.max(1);
        let until = (u128::from(spare).saturating_mul(sum) + of / 2) / of;
        let until = u64::saturating_from(until).min(spare);
        let part = until - before + 1;
        before = until;
        part
    };
    match all {
        0 => weights.iter().map(|_| part(1, u128::from(count))).collect(),
        all => weights.iter().map(|weight| part(*weight, all)).collect(),
    }
}

/// Rows of each shard, in proportion to the speeds of the hosts that will keep them. Each host keeps as many shards as
/// the others, or one more. `None` where all known hosts have the same speed.
#[must_use]
pub fn by_speed(rows: u64, shards: u32, hosts: &[ShardHost]) -> Option<Vec<u64>> {
    let hosts = hosts.iter().filter(|host| host.slots > 0 && host.flops > 0);
    let mut speeds: Vec<u64> = hosts.map(|host| host.flops).collect();
    speeds.sort_unstable_by(|a, b| b.cmp(a));
    // Fewer shards than hosts: the fastest keep them.
    speeds.truncate(to_usize(shards));
    if speeds.first() == speeds.last() || rows < u64::from(shards) {
        return None;
    }
    let count = u32::saturating_from(speeds.len());
    let mut weights = Vec::new();
    for (rank, speed) in (0u32..).zip(speeds) {
        let own = shards / count + u32::from(rank < shards % count);
        weights.extend((0..own).map(|_| speed / u64::from(own.max(1))));
    }
    Some(rows_by_weight(rows, &weights))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_proportion_to_speeds() {
        let host = |flops| ShardHost { slots: 1, flops, ..ShardHost::default() };
        let all = [host(10), host(30), host(20)];
        assert_eq!(by_speed(606, 6, &all).unwrap(), [151, 151, 101, 101, 51, 51]);
        assert_eq!(by_speed(102, 2, &all).unwrap(), [61, 41], "the fastest keep them");
        assert_eq!(
            by_speed(606, 4, &all).unwrap(),
            [152, 151, 202, 101],
            "the fastest has one more"
        );
        assert_eq!(by_speed(5, 6, &all), None, "too few rows");
        assert_eq!(by_speed(100, 2, &[host(10), host(10)]), None);
        assert_eq!(by_speed(100, 2, &[host(0), host(0)]), None);
        assert_eq!(rows_by_weight(10, &[0, 0, 0]), [3, 4, 3]);
    }
}
