//! `--keep-jobs`: how many jobs that have ended a server keeps, for how long, and how many bytes of them.

use sojourn_client::limits::Size;
use sojourn_core::{BeyondRetention, Retention};
use sojourn_protocol::time::Millis;
use std::str::FromStr;

/// One limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeepJobs {
    Jobs(u32),
    Age(Millis),
    Bytes(u64),
}

/// A shorter time is hardly meant: a job could be gone before anybody had seen its end.
const MIN_AGE: Millis = Millis::from_secs(3600);

const WANTED: &str =
    "a number of jobs such as `100`, an age such as `30d` or a size such as `50GB` is wanted";

impl FromStr for KeepJobs {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            // With none, a job would be gone before anybody had seen its end.
            return match text.parse() {
                Ok(0) => Err("at least 1 job is to be kept"),
                Ok(jobs) => Ok(Self::Jobs(jobs)),
                Err(_) => Err("so many jobs can't be counted; leave it out to keep all"),
            };
        }
        let age = || text.parse().ok().map(Self::Age);
        if matches!(age(), Some(Self::Age(age)) if age < MIN_AGE) {
            return Err("jobs are to be kept for at least an hour: `1h`");
        }
        let bytes = || text.parse().ok().map(|Size(bytes)| Self::Bytes(bytes));
        age().or_else(bytes).ok_or(WANTED)
    }
}

/// The fate of jobs that aren't kept as they are.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum OldJobs {
    /// The jobs lose their data and all checkpoints but the best model.
    Thin,
    /// The jobs are deleted.
    Delete,
}

/// All limits together.
///
/// # Errors
/// Where two of them are of the same kind.
pub(crate) fn retention(limits: &[KeepJobs], old: OldJobs) -> Result<Retention, String> {
    let beyond = match old {
        OldJobs::Thin => BeyondRetention::Thin,
        OldJobs::Delete => BeyondRetention::Delete,
    };
    let mut retention = Retention { beyond, ..Retention::default() };
    for limit in limits {
        let is_second = match *limit {
            KeepJobs::Jobs(jobs) => retention.jobs.replace(jobs).is_some(),
            KeepJobs::Age(age) => retention.age.replace(age).is_some(),
            KeepJobs::Bytes(bytes) => retention.bytes.replace(bytes).is_some(),
        };
        if is_second {
            return Err(
                "`--keep-jobs` has two numbers, two ages or two sizes: one of each is enough"
                    .to_owned(),
            );
        }
    }
    Ok(retention)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_an_age_or_a_size() {
        assert_eq!("100".parse(), Ok(KeepJobs::Jobs(100)));
        assert_eq!("30d".parse(), Ok(KeepJobs::Age(Millis::from_secs(30 * 86_400))));
        assert_eq!("1h".parse(), Ok(KeepJobs::Age(MIN_AGE)));
        assert_eq!("50GB".parse(), Ok(KeepJobs::Bytes(50_000_000_000)));
        for wrong in ["", "0", "many", "30 years", "-1", "0d", "59min", "99999999999999999999"] {
            assert!(wrong.parse::<KeepJobs>().is_err(), "{wrong}");
        }
        let limits = [KeepJobs::Jobs(9), KeepJobs::Bytes(5)];
        let all = retention(&limits, OldJobs::Delete).unwrap();
        let beyond = BeyondRetention::Delete;
        assert_eq!(all, Retention { jobs: Some(9), age: None, bytes: Some(5), beyond });
        assert!(retention(&[KeepJobs::Jobs(9), KeepJobs::Jobs(8)], OldJobs::Thin).is_err());
    }
}
