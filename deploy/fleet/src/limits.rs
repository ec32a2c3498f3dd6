//! The limits of a fleet's machines and costs, and how much of them is left.

use serde::{Deserialize, Serialize};
use sojourn_protocol::money::MicroUsd;

/// The limits. One that is left out is none, but for the number of machines, which is always limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Machines at a time.
    pub machines: u32,
    /// Virtual processors at a time.
    #[serde(default)]
    pub vcpus: Option<u32>,
    /// The most that an hour of all machines together may cost.
    #[serde(default)]
    pub hourly: Option<MicroUsd>,
    /// The most that all machines together may cost, over all time.
    #[serde(default)]
    pub total: Option<MicroUsd>,
    /// The most that a job may cost, over all time. The budget of a job holds too, where it has one.
    #[serde(default)]
    pub job: Option<MicroUsd>,
}

impl Limits {
    /// The most that a job with this budget may cost; none where neither limit nor budget says.
    #[must_use]
    pub fn of_job(&self, budget: Option<MicroUsd>) -> Option<MicroUsd> {
        self.job.into_iter().chain(budget).min()
    }

    /// The room that is left where so much is taken.
    #[must_use]
    pub fn left(&self, taken: &Taken) -> Room {
        Room {
            machines: self.machines.saturating_sub(taken.machines),
            vcpus: self.vcpus.map(|limit| limit.saturating_sub(taken.vcpus)),
            hourly: self.hourly.map(|limit| limit.saturating_sub(taken.hourly)),
        }
    }

    /// The first limit that so much is past.
    #[must_use]
    pub fn exceeded(&self, taken: &Taken) -> Option<Limit> {
        if taken.machines > self.machines {
            return Some(Limit::Machines);
        }
        if self.vcpus.is_some_and(|limit| taken.vcpus > limit) {
            return Some(Limit::Vcpus);
        }
        self.hourly.is_some_and(|limit| taken.hourly > limit).then_some(Limit::Hourly)
    }
}

/// One of the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The number of machines.
    Machines,
    /// The number of the machines' virtual processors.
    Vcpus,
    /// Dollars for an hour of all machines.
    Hourly,
    /// Dollars in all.
    Total,
    /// Dollars for a job.
    Job,
}

impl Limit {
    /// The name of the limited quantity, in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Machines => "machines",
            Self::Vcpus => "virtual processors",
            Self::Hourly => "dollars for an hour",
            Self::Total => "dollars in all",
            Self::Job => "dollars for the job",
        }
    }
}

/// The share of the limits that a fleet's machines take: those that run and those that were ordered, also where it isn't known
/// what came of the order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// The number of machines.
    pub machines: u32,
    /// The number of the machines' virtual processors.
    pub vcpus: u32,
    /// The price of an hour of all of the machines.
    pub hourly: MicroUsd,
}

impl Taken {
    /// Adds machines of `vcpus` processors that cost `price` an hour, each.
    pub fn add(&mut self, count: u32, vcpus: u32, price: MicroUsd) {
        self.machines = self.machines.saturating_add(count);
        self.vcpus = self.vcpus.saturating_add(vcpus.saturating_mul(count));
        self.hourly += MicroUsd(price.0.saturating_mul(u64::from(count)));
    }
}

/// The room for purchases: how much may still be bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The number of machines.
    pub machines: u32,
    /// Virtual processors; none where there is no limit.
    pub vcpus: Option<u32>,
    /// Dollars for an hour; none where there is no limit.
    pub hourly: Option<MicroUsd>,
}

impl Room {
    /// How many machines of `vcpus` processors that cost `price` an hour fit, and which limit says so.
    #[must_use]
    pub fn fits(&self, vcpus: u32, price: MicroUsd) -> (u32, Limit) {
        let by_vcpus = self.vcpus.map(|room| (room / vcpus.max(1), Limit::Vcpus));
        let by_price = self.hourly.map(|room| {
            let fit = room.0 / price.0.max(1);
            (u32::try_from(fit).unwrap_or(u32::MAX), Limit::Hourly)
        });
        let machines = (self.machines, Limit::Machines);
        [by_vcpus, by_price]
            .into_iter()
            .flatten()
            .fold(machines, |least, other| if other.0 < least.0 { other } else { least })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        machines: 10,
        vcpus: Some(32),
        hourly: Some(MicroUsd(1_000_000)),
        total: None,
        job: Some(MicroUsd(5)),
    };

    #[test]
    fn the_tightest_limit_says_how_many_machines_fit() {
        let mut taken = Taken::default();
        assert_eq!(LIMITS.left(&taken).fits(2, MicroUsd(10_000)), (10, Limit::Machines));
        assert_eq!(LIMITS.left(&taken).fits(8, MicroUsd(10_000)), (4, Limit::Vcpus));
        assert_eq!(LIMITS.left(&taken).fits(2, MicroUsd(300_000)), (3, Limit::Hourly));
        taken.add(4, 8, MicroUsd(250_001));
        assert_eq!(LIMITS.exceeded(&taken), Some(Limit::Hourly));
        assert_eq!(LIMITS.left(&taken).fits(1, MicroUsd(1)), (0, Limit::Vcpus));
    }

    #[test]
    fn a_job_keeps_to_the_lower_of_its_budget_and_the_limit() {
        assert_eq!(LIMITS.of_job(None), Some(MicroUsd(5)));
        assert_eq!(LIMITS.of_job(Some(MicroUsd(3))), Some(MicroUsd(3)));
        assert_eq!(LIMITS.of_job(Some(MicroUsd(9))), Some(MicroUsd(5)));
    }
}
