//! The policies of a simulation: those of the server, and two references that plan in their place.
//!
//! A reference runs on the server's own code: the core asks for plans, as under `rollout`, and gets
//! those of another planner.

use super::{quantity::Span, words::hint};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IntoDeserializer, value::StrDeserializer},
};
use sojourn_workgen::{
    PolicyName,
    plan::{Iterations, Planner as _, Problem, Rollout, Schedule, VectorRearrangement},
};
use std::fmt;

/// A policy of a scenario, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The server's.
    Randomized,
    /// The server's.
    Ltrp,
    /// The server's, and its default.
    #[default]
    Rollout,
    /// Cerebro's section 5.2.
    VectorRearrangement,
    /// Cerebro's section 5.1, where the program was built with it.
    Milp,
}

/// One policy or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policies(pub Vec<Policy>);

impl Policy {
    /// All of them, the server's first.
    pub const ALL: [Policy; 5] = [
        Policy::Randomized,
        Policy::Ltrp,
        Policy::Rollout,
        Policy::VectorRearrangement,
        Policy::Milp,
    ];

    /// The message for people who ask for a policy that this program wasn't built with.
    pub const MISSING: &str = "`milp` is not in this program: build it with `--features milp`, which \
                               needs cmake and libclang, or name other policies";

    /// The policy of that name.
    ///
    /// # Errors
    /// The nearest name that there is.
    pub fn named(name: &str) -> Result<Self, String> {
        let name: StrDeserializer<'_, serde::de::value::Error> = name.into_deserializer();
        Self::deserialize(name).map_err(|error| hint(&error.to_string()))
    }

    /// The policy's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Policy::Randomized | Policy::Ltrp | Policy::Rollout => self.in_core().name(),
            Policy::VectorRearrangement => "vector-rearrangement",
            Policy::Milp => "milp",
        }
    }

    /// Was this program built with it?
    #[must_use]
    pub const fn is_built(self) -> bool {
        !matches!(self, Policy::Milp) || cfg!(feature = "milp")
    }

    /// The policy that the core is told to decide by.
    pub(crate) const fn in_core(self) -> PolicyName {
        match self {
            Policy::Randomized => PolicyName::Randomized,
            Policy::Ltrp => PolicyName::Ltrp,
            Policy::Rollout | Policy::VectorRearrangement | Policy::Milp => PolicyName::Rollout,
        }
    }

    /// The plan that the core asks for. `limit`: real time for `milp`, of which the best so far counts then.
    pub(crate) fn plan(
        self,
        problem: &Problem,
        seed: u64,
        iterations: u64,
        limit: Span,
    ) -> Option<Schedule> {
        let mut budget = Iterations::new(iterations);
        match self {
            Policy::Randomized | Policy::Ltrp | Policy::Rollout => {
                Rollout.plan(problem, seed, &mut budget)
            }
            Policy::VectorRearrangement => VectorRearrangement.plan(problem, seed, &mut budget),
            Policy::Milp => milp(problem, limit),
        }
    }
}

/// Where the program is too large to be built, what it would have started from is the best so far.
#[cfg(feature = "milp")]
fn milp(problem: &Problem, limit: Span) -> Option<Schedule> {
    use sojourn_workgen::plan::Ltrp;
    let limit = std::time::Duration::from_micros(limit.0);
    let solved = crate::milp::Milp { limit }.solve(problem).map(|plan| plan.schedule);
    solved.ok().or_else(|| Ltrp.plan(problem, 0, &mut Iterations::new(0)))
}

#[cfg(not(feature = "milp"))]
const fn milp(_: &Problem, _: Span) -> Option<Schedule> {
    None
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Policies {
    /// These, none of them twice.
    ///
    /// # Errors
    /// Which one is named twice.
    pub fn each_once(policies: Vec<Policy>) -> Result<Self, String> {
        let twice = policies
            .iter()
            .enumerate()
            .find(|(n, one)| policies.iter().take(*n).any(|of| of == *one));
        match twice {
            Some((_, policy)) => Err(format!("`{policy}` is named twice: each policy is run once")),
            None => Ok(Self(policies)),
        }
    }
}

impl<'de> Deserialize<'de> for Policies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a policy or a list of policies was wanted")]
        enum Names {
            One(String),
            Many(Vec<String>),
        }
        let names = match Names::deserialize(deserializer)? {
            Names::One(name) => vec![name],
            Names::Many(names) => names,
        };
        let policies = names.iter().map(|name| Policy::named(name));
        let policies = policies.collect::<Result<_, _>>().map_err(D::Error::custom)?;
        Policies::each_once(policies).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_files_say() {
        for policy in Policy::ALL {
            assert_eq!(Policy::named(policy.name()), Ok(policy));
        }
        assert!(Policy::named("lrpt").unwrap_err().contains("`ltrp`"));
        assert!(Policy::named("mlip").unwrap_err().contains("`milp`"));
    }
}
