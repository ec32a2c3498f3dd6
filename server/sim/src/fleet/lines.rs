//! Which keys of a scenario file are part of each other.

/// Is one of two keys the other, or a table that has the other? Without a number, a key is that of all tables.
pub(super) fn meet(one: &str, other: &str) -> bool {
    let plain = |path: &str| {
        let keys = path.split('.').filter(|key| key.parse::<usize>().is_err());
        keys.map(str::to_owned).collect::<Vec<_>>()
    };
    plain(one).iter().zip(&plain(other)).all(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_meet_where_one_is_within_the_other() {
        assert!(meet("hosts.count", "hosts.1.count") && meet("hosts.0.spot", "hosts.spot.back"));
        assert!(!meet("hosts.count", "hosts.0.tflops") && !meet("job.trials", "jobs.0.trials"));
    }
}
