//! Quotas on the command line: the flags of `sojourn token new` and `sojourn token set`, and the words of `sojourn serve --quotas`.

use sojourn_client::limits::Size;
use sojourn_protocol::{quotas::TokenQuotas, spec::MAX_SLOT_SHARE};
use std::str::FromStr;

/// Bounds of what the jobs of a user's token may take.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct QuotaArgs {
    /// Jobs that haven't ended, at most.
    #[arg(long, value_name = "N")]
    jobs: Option<u32>,
    /// Trials of these jobs that have something left to train, at most.
    #[arg(long, value_name = "N")]
    trials: Option<u32>,
    /// Data and checkpoints that the store keeps because of the token's jobs, at most, e.g. `50GB`.
    #[arg(long, value_name = "SIZE")]
    bytes: Option<Size>,
    /// Links to pages of jobs (`sojourn share`) that open something, at most.
    #[arg(long, value_name = "N")]
    links: Option<u32>,
    /// Requests that may be refused in a minute. Beyond that the token is refused until the minute is over.
    #[arg(long, value_name = "N")]
    failures: Option<u32>,
    /// The token's part of slot time beside other owners of jobs of the same priority, 1 to 1000 [default: 1].
    #[arg(long = "share", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SLOT_SHARE)))]
    slot_share: Option<u32>,
}

impl QuotaArgs {
    pub(crate) fn quotas(&self) -> TokenQuotas {
        let Self { jobs, trials, bytes, links, failures, slot_share } = *self;
        let bytes = bytes.map(|Size(bytes)| bytes);
        TokenQuotas { jobs, trials, bytes, links, failures, slot_share }
    }
}

/// A bound that holds for tokens without one of their own, as `jobs=20` or `bytes=50GB`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DefaultQuota(TokenQuotas);

impl DefaultQuota {
    /// All of these together; of two for the same quota the later one.
    pub(crate) fn all(given: &[Self]) -> TokenQuotas {
        given.iter().fold(TokenQuotas::default(), |all, one| one.0.or(all))
    }
}

impl FromStr for DefaultQuota {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            let wanted = "`jobs=N`, `trials=N`, `bytes=SIZE`, `links=N` or `failures=N` is wanted";
            format!("`{text}` is no quota: {wanted}")
        };
        let (name, value) = text.split_once('=').ok_or_else(wrong)?;
        let number = || value.parse::<u32>().map_err(|_| wrong());
        let mut quotas = TokenQuotas::default();
        match name.trim() {
            "jobs" => quotas.jobs = Some(number()?),
            "trials" => quotas.trials = Some(number()?),
            "links" => quotas.links = Some(number()?),
            "failures" => quotas.failures = Some(number()?),
            "bytes" => {
                let Size(bytes) = value.parse::<Size>().map_err(|_| wrong())?;
                quotas.bytes = Some(bytes);
            }
            _ => return Err(wrong()),
        }
        Ok(Self(quotas))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_named_and_the_later_one_counts() {
        let of = |text: &str| text.parse::<DefaultQuota>();
        let given: Vec<DefaultQuota> =
            ["jobs=5", "bytes=2GB", "jobs=7"].map(|text| of(text).unwrap()).to_vec();
        let all = DefaultQuota::all(&given);
        assert_eq!((all.jobs, all.bytes, all.links), (Some(7), Some(2_000_000_000), None));
        for wrong in ["jobs", "jobs=", "jobs=many", "share=2", "job=1"] {
            assert!(of(wrong).unwrap_err().contains("is no quota"), "{wrong}");
        }
    }
}
