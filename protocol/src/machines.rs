//! Machines that are bought by the minute: what whoever buys them tells the server, and what each costs.
//!
//! A machine has its name before it is bought. The name is in its tags and in its enrolment token
//! ([`TokenGrant::Enrol`](crate::tokens::TokenGrant::Enrol)), so that cloud, server and host mean the same machine.

use crate::{
    ids::{HostId, JobId, TrialId},
    metrics::is_default,
    money::MicroUsd,
    time::{Millis, UnixMillis},
};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use std::{fmt, str::FromStr};

/// Characters of a machine's name.
pub const MAX_MACHINE_NAME_CHARS: usize = 64;
/// Machines in one request.
pub const MAX_MACHINES: usize = 1 << 12;
/// The longest time for which one process may lead, before it asks again.
pub const MAX_LEADER_TERM: Millis = Millis::from_secs(300);

/// The name of a bought machine: 1 to 64 lower-case letters, digits and `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[a-z0-9-]{1,64}$"))]
#[serde(transparent)]
pub struct MachineName(String);

impl MachineName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for MachineName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if (1..=MAX_MACHINE_NAME_CHARS).contains(&text.len()) && text.bytes().all(fits) {
            return Ok(Self(text.to_owned()));
        }
        Err(
            "it isn't one line of 1 to 64 lower-case letters, digits and `-`, as names of machines are",
        )
    }
}

impl fmt::Display for MachineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for MachineName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// How a machine was bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Market {
    /// Preemptible: the cloud may take it back at any time.
    Spot,
    /// At the list price, until it is given back.
    OnDemand,
}

impl Market {
    /// The market's word, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spot => "spot",
            Self::OnDemand => "on-demand",
        }
    }
}

/// A bought machine, as the cloud's owner pays for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MachineReport {
    /// The machine's name.
    pub name: MachineName,
    /// The cloud's id of it, as `i-0123456789abcdef0`.
    pub instance: String,
    /// The machine's type, as `c6i.2xlarge`.
    pub instance_type: String,
    /// Where it stands, as `eu-west-1a`.
    pub zone: String,
    /// How it was bought.
    pub market: Market,
    /// The price of an hour when it was launched.
    pub price: MicroUsd,
    /// The price of an hour of the same type on demand.
    pub on_demand_price: MicroUsd,
    /// When it was launched: from then on it costs.
    pub launched_at: UnixMillis,
    /// When it ended: it costs no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<UnixMillis>,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<MachineEnd>,
}

impl MachineReport {
    /// For how long it has run at this time.
    #[must_use]
    pub fn run_time(&self, now: UnixMillis) -> Millis {
        self.ended_at.unwrap_or(now.max(self.launched_at)) - self.launched_at
    }

    /// The machine's cost up to this time: the price at launch, for the time from launch to end.
    #[must_use]
    pub fn cost(&self, now: UnixMillis) -> MicroUsd {
        self.price.for_time(self.run_time(now))
    }

    /// The cost of the same time on demand.
    #[must_use]
    pub fn on_demand_cost(&self, now: UnixMillis) -> MicroUsd {
        self.on_demand_price.for_time(self.run_time(now))
    }
}

/// Why a bought machine ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MachineEnd {
    /// The cloud took it back.
    Interrupted,
    /// The machine was given back.
    Released,
    /// The machine ended by itself: nothing was to do, or it couldn't reach the server.
    Itself,
    /// The machine never started, or failed.
    Failed,
}

/// `POST /v1/machines`: machines that were bought or have ended. What is known of a name already is replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MachinesRequest {
    /// The machines, at most [`MAX_MACHINES`].
    pub machines: Vec<MachineReport>,
}

/// `POST /v1/machines/drain`: hosts of these machines give their units back with what they have trained, and end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// The machines, at most [`MAX_MACHINES`].
    pub machines: Vec<MachineName>,
    /// How long they have for it.
    pub within: Millis,
}

/// The number of machines that a request has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MachinesAnswer {
    /// Machines of which something changed.
    pub changed: u32,
}

/// `POST /v1/leader`: a process asks to be the only one of its kind that acts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaderRequest {
    /// The role that is led: there is one leader of each.
    pub role: String,
    /// The process.
    pub holder: String,
    /// For how long, at most [`MAX_LEADER_TERM`]; 0 gives it back.
    pub term: Millis,
    /// The process leads already, as far as it knows.
    #[serde(default, skip_serializing_if = "is_default")]
    pub renews: bool,
}

/// The leader of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaderAnswer {
    /// The process; none right after the server's start, when it may be any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Is it the one that asked?
    pub leads: bool,
    /// For how long, or how long to wait before the next ask.
    pub term: Millis,
}

/// `GET /v1/costs`: what all machines that were bought have cost, and for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CostsView {
    /// Up to when.
    pub at: UnixMillis,
    /// All of it: the sum over `jobs`, `deleted` and `unused`, and over all machines that ever were.
    pub cost: MicroUsd,
    /// The cost of the same time on the same types, on demand.
    pub on_demand_cost: MicroUsd,
    /// The cost of machines that held no unit at all.
    pub unused: MicroUsd,
    /// The cost of jobs that were deleted.
    pub deleted: MicroUsd,
    /// By job, in their order. A machine's whole cost is shared out in proportion to the time for which it held units.
    pub jobs: Vec<JobCost>,
    /// The machines that run, and those that ended in the last week.
    pub machines: Vec<MachineView>,
}

/// The cost of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobCost {
    /// The job.
    pub job: JobId,
    /// The job's name.
    pub name: String,
    /// All of it: the sum over its trials.
    pub cost: MicroUsd,
    /// The job's cost, had all machines been bought on demand.
    pub on_demand_cost: MicroUsd,
    /// The job's budget, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<MicroUsd>,
    /// By trial.
    pub trials: Vec<TrialCost>,
}

/// The cost of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TrialCost {
    /// The trial.
    pub trial: TrialId,
    /// The trial's cost.
    pub cost: MicroUsd,
    /// The trial's cost, had all machines been bought on demand.
    pub on_demand_cost: MicroUsd,
}

/// A machine and its cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MachineView {
    /// The machine.
    pub machine: MachineReport,
    /// The machine's host, once it has enrolled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostId>,
    /// For how long it has run.
    pub run_time: Millis,
    /// The machine's cost so far.
    pub cost: MicroUsd,
    /// Whether it is to end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub draining: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_costs_from_its_launch_to_its_end() {
        let mut machine = MachineReport {
            name: "m-1".parse().unwrap(),
            instance: "i-1".into(),
            instance_type: "c6i.large".into(),
            zone: "eu-west-1a".into(),
            market: Market::Spot,
            price: MicroUsd(36_000),
            on_demand_price: MicroUsd(72_000),
            launched_at: UnixMillis(5000),
            ended_at: None,
            end: None,
        };
        assert_eq!(machine.cost(UnixMillis(0)), MicroUsd(0), "clocks may differ");
        assert_eq!(machine.cost(UnixMillis(3_605_000)), MicroUsd(36_000));
        machine.ended_at = Some(UnixMillis(6000));
        assert_eq!(machine.cost(UnixMillis(3_605_000)), MicroUsd(10));
        assert_eq!(machine.on_demand_cost(UnixMillis(3_605_000)), MicroUsd(20));
    }

    #[test]
    fn names_of_machines_are_plain() {
        for fine in ["m", "m-00ff-3", &"x".repeat(64)] {
            assert_eq!(fine.parse::<MachineName>().unwrap().as_str(), fine);
        }
        for wrong in ["", "M", "a b", "a_b", "\u{e4}", &"x".repeat(65)] {
            wrong.parse::<MachineName>().unwrap_err();
        }
    }
}
