//! Messages between a host and the server about CPU shares: the policy comes with a lease, what the trial has learned
//! lately goes back, and with the trial to the host on which it runs next.

use crate::{quantity::Micros, spec::CpuSharePolicy};
use serde::{Deserialize, Serialize};

/// FlowCon's lists of trials: those whose growth efficiency has been below the threshold go one list further at each look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum List {
    /// The trial learns (NL, the new list).
    #[default]
    New,
    /// The trial was below the threshold once (WL, the watching list).
    Watching,
    /// The trial was below the threshold twice (CL, the completing list).
    Completing,
}

impl List {
    /// In a word, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Watching => "watching",
            Self::Completing => "completing",
        }
    }
}

/// The mean of a window of running time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Mean loss, if there is any report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Seconds of processor time in a second of running time.
    pub busy: f64,
}

/// The record of a trial that goes with it to the host on which it runs next.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Carried {
    /// The list that it is in.
    pub list: List,
    /// The highest loss so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest: Option<f64>,
    /// The last window, once there is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Window>,
    /// The window before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Window>,
    /// Processor time so far.
    pub attained: Micros,
}

/// The shares of a lease: the job's policy, and what was seen of its trial. Only for clients with the feature
/// [`HOST_SHARES`](crate::api::HOST_SHARES); left out where shares are equal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = LeaseShares))]
#[serde(deny_unknown_fields)]
pub struct LeaseCpuShares {
    /// The job's policy.
    pub policy: CpuSharePolicy,
    /// The trial's record from the host before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carried>,
}

/// The share of a unit that runs, and what its host has seen of the trial. Only for leases that name a policy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = HeldShare))]
pub struct HeldCpuShare {
    /// Above 0, at most 1.
    #[serde(rename = "share")]
    pub cpu_share: f64,
    /// The trial's record, which goes with it.
    pub carried: Carried,
}
