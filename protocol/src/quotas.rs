//! Quotas: bounds of what the jobs of one user's token may take, and what they take now.

use crate::metrics::is_default;
use serde::{Deserialize, Serialize};

/// Bounds that are set for one token. A bound that is left out is the server's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TokenQuotas {
    /// Jobs that haven't ended, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u32>,
    /// Trials of these jobs that have something left to train, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials: Option<u32>,
    /// Bytes of data and checkpoints that the store keeps because of its jobs, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Links to pages of jobs that open something, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<u32>,
    /// Requests of the token that may be refused in a minute. Beyond that all its requests are refused until the minute is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
    /// The token's part of slot time beside other owners of jobs of the same priority, from 1 to 1,000.
    #[serde(rename = "share", default, skip_serializing_if = "Option::is_none")]
    pub slot_share: Option<u32>,
}

impl TokenQuotas {
    /// Is none of them set?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        is_default(self)
    }

    /// These bounds, and those of `other` where they are left out here.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            jobs: self.jobs.or(other.jobs),
            trials: self.trials.or(other.trials),
            bytes: self.bytes.or(other.bytes),
            links: self.links.or(other.links),
            failures: self.failures.or(other.failures),
            slot_share: self.slot_share.or(other.slot_share),
        }
    }
}

/// All bounds of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Quotas {
    /// Jobs that haven't ended.
    pub jobs: u32,
    /// Trials of these jobs that have something left to train.
    pub trials: u32,
    /// Bytes of data and checkpoints that the store keeps because of its jobs.
    pub bytes: u64,
    /// Links to pages of jobs that open something.
    pub links: u32,
    /// Requests that may be refused in a minute.
    pub failures: u32,
    /// The part of slot time beside other owners.
    #[serde(rename = "share")]
    pub slot_share: u32,
}

impl Quotas {
    /// The defaults of a server: thirty users who reach all of them keep 600 GB, and as many links as there may be take two thirds
    /// of the server's 1,000.
    pub const DEFAULT: Self = Self {
        jobs: 20,
        trials: 10_000,
        bytes: 20_000_000_000,
        links: 20,
        failures: 120,
        slot_share: 1,
    };

    /// These bounds, but for those that are set.
    #[must_use]
    pub fn with(self, set: TokenQuotas) -> Self {
        Self {
            jobs: set.jobs.unwrap_or(self.jobs),
            trials: set.trials.unwrap_or(self.trials),
            bytes: set.bytes.unwrap_or(self.bytes),
            links: set.links.unwrap_or(self.links),
            failures: set.failures.unwrap_or(self.failures),
            slot_share: set.slot_share.unwrap_or(self.slot_share),
        }
    }
}

impl Default for Quotas {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// How much of its quotas a token has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaUsage {
    /// Jobs that haven't ended.
    pub jobs: u32,
    /// Trials of these jobs that have something left to train.
    pub trials: u32,
    /// Bytes of data and checkpoints that the store keeps because of its jobs.
    pub bytes: u64,
    /// Links to pages of jobs that open something.
    pub links: u32,
    /// Requests that were refused in this minute, as the server counted that asks.
    pub failures: u32,
}

/// The quotas of a token with what is used of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaView {
    /// The bounds, the server's defaults included.
    pub limits: Quotas,
    /// The use of the quotas so far.
    pub used: QuotaUsage,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_are_left_out_are_those_of_before_and_then_the_servers() {
        let set = TokenQuotas { jobs: Some(5), ..TokenQuotas::default() };
        let later = TokenQuotas { links: Some(0), ..TokenQuotas::default() };
        let both = later.or(set);
        assert_eq!((both.jobs, both.links, both.trials), (Some(5), Some(0), None));
        let all = Quotas::DEFAULT.with(both);
        assert_eq!(all, Quotas { jobs: 5, links: 0, ..Quotas::DEFAULT });
        assert!(TokenQuotas::default().is_empty() && !set.is_empty());
        assert_eq!(serde_json::to_string(&set).unwrap(), r#"{"jobs":5}"#);
        serde_json::from_str::<TokenQuotas>(r#"{"job":5}"#).unwrap_err();
    }
}
