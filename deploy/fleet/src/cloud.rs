//! A cloud's interface: pools of machines with prices, and the few calls by which machines are bought and given back.
//!
//! A [`Cloud`] keeps no books of ours. What was bought is known by its tags alone, which a machine carries from its
//! launch on, so a fleet can be read back after any crash.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    machines::{MachineEnd, MachineName, Market},
    money::MicroUsd,
    time::UnixMillis,
};
use std::{collections::BTreeMap, fmt, sync::Arc};

/// Machines of one type in one zone: they have one price, and one capacity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// As `eu-west-1`.
    pub region: String,
    /// As `eu-west-1a`.
    pub zone: String,
    /// As `c6i.2xlarge`.
    pub instance_type: String,
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.instance_type, self.zone)
    }
}

/// A type of machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceType {
    /// As `c6i.2xlarge`.
    pub name: String,
    /// Virtual processors.
    pub vcpus: u32,
    /// Bytes of memory.
    pub memory: u64,
    /// The number of GPUs.
    #[serde(default)]
    pub gpus: u32,
    /// Bytes of memory of each GPU.
    #[serde(default)]
    pub gpu_memory: u64,
}

/// The prices of an hour in a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    /// Preemptible, as it is now; none where it isn't sold so.
    pub spot: Option<MicroUsd>,
    /// The list price.
    pub on_demand: MicroUsd,
}

/// The types and prices that a cloud sells at the moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offers {
    /// The types, by name.
    pub types: BTreeMap<String, InstanceType>,
    /// The prices, by pool.
    pub quotes: BTreeMap<Pool, Quote>,
}

/// A machine that is to be bought.
#[derive(Clone, PartialEq, Eq)]
pub struct NewMachine {
    /// The machine's name: a tag of it from its launch on.
    pub name: MachineName,
    /// With it the machine becomes a host of the server: good for one host and some minutes.
    pub enrolment_token: String,
}

impl fmt::Debug for NewMachine {
    /// Without the token, which is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewMachine").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Machines that are bought alike. A machine's idempotency token is made of its name, `market` and `pools`: an order that is sent
/// again has the same tokens, and buys nothing twice; an order that was changed has others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The machines.
    pub machines: Vec<NewMachine>,
    /// How they are bought.
    pub market: Market,
    /// Where, the best first; all of one region.
    pub pools: Vec<Pool>,
    /// The most that an hour of one may cost.
    pub price_limit: MicroUsd,
}

/// A machine that was bought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bought {
    /// The machine's name.
    pub name: MachineName,
    /// The cloud's id of it.
    pub instance: String,
    /// Where it is.
    pub pool: Pool,
}

/// The outcome of an order: it may be filled in part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filled {
    /// The machines that were bought.
    pub bought: Vec<Bought>,
    /// Why the others weren't, where any weren't. [`CloudError::Away`]: whether they were isn't known.
    pub failure: Option<CloudError>,
}

/// How far a machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MachineState {
    /// The machine was launched, and starts.
    Pending,
    /// The machine runs.
    Running,
    /// The machine is being ended.
    Ending,
    /// The machine has ended.
    Ended,
}

/// A machine with the fleet's tags, as the cloud knows it. Ended ones are known for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudMachine {
    /// The machine's name, from its tags; none where the tag is missing or no name.
    pub name: Option<MachineName>,
    /// The cloud's id of it.
    pub instance: String,
    /// Where it is.
    pub pool: Pool,
    /// How it was bought.
    pub market: Market,
    /// How far it is.
    pub state: MachineState,
    /// When it was launched.
    pub launched_at: UnixMillis,
    /// When it ended, where it has and the cloud says so.
    pub ended_at: Option<UnixMillis>,
    /// Why, where the cloud says so.
    pub end: Option<MachineEnd>,
}

/// Why a cloud didn't do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloudError {
    /// These pools have no machine left.
    #[error("no capacity in {}", pools.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    NoCapacity {
        /// The pools.
        pools: Vec<Pool>,
    },
    /// The account may have no more of this market in this region.
    #[error("the account's quota of {} machines in {region} is used up: {message}", market.name())]
    Quota {
        /// The region.
        region: String,
        /// The market.
        market: Market,
        /// As the cloud says it.
        message: String,
    },
    /// Too many requests: it is to be asked again later.
    #[error("the cloud asks for fewer requests")]
    Throttled,
    /// The idempotency token was used with other parameters.
    #[error("the idempotency token was used for another order")]
    TokenReused,
    /// The account may not do this, or what was asked can't be.
    #[error("the cloud refuses: {0}")]
    Refused(String),
    /// The cloud couldn't be reached, or failed.
    #[error("the cloud doesn't answer: {0}")]
    Away(String),
}

impl CloudError {
    /// May the same request succeed later?
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::NoCapacity { .. } | Self::Quota { .. } | Self::Throttled | Self::Away(_) => true,
            Self::TokenReused | Self::Refused(_) => false,
        }
    }
}

/// A cloud, for one fleet: its tags are the implementation's. Programs hold one as `Arc<dyn Cloud>`.
#[async_trait]
pub trait Cloud: Send + Sync {
    /// The types and prices of now, in all regions of the fleet.
    ///
    /// # Errors
    /// See [`CloudError`].
    async fn offers(&self) -> Result<Offers, CloudError>;

    /// The price of a spot machine of the pool at a time, where that is known.
    ///
    /// # Errors
    /// See [`CloudError`].
    async fn spot_price_at(
        &self,
        pool: &Pool,
        at: UnixMillis,
    ) -> Result<Option<MicroUsd>, CloudError>;

    /// All machines with the fleet's tags, in all its regions.
    ///
    /// # Errors
    /// See [`CloudError`]. None is left out in silence: where one region doesn't answer, this is an error.
    async fn machines(&self) -> Result<Vec<CloudMachine>, CloudError>;

    /// Buys machines, none of them twice: the same [`Order`], sent again after an answer that was lost, gives those that were bought by
    /// it before.
    ///
    /// # Errors
    /// [`CloudError::Away`] where nothing is known of what came of it; any other error where nothing was bought for sure.
    /// [`Filled::failure`] says why less was bought.
    async fn buy(&self, order: &Order) -> Result<Filled, CloudError>;

    /// Ends machines, by the cloud's ids. One that has ended is no error.
    ///
    /// # Errors
    /// See [`CloudError`].
    async fn end(&self, region: &str, instances: &[String]) -> Result<(), CloudError>;
}

#[async_trait]
impl<C: Cloud + ?Sized> Cloud for Arc<C> {
    async fn offers(&self) -> Result<Offers, CloudError> {
        (**self).offers().await
    }

    async fn spot_price_at(
        &self,
        pool: &Pool,
        at: UnixMillis,
    ) -> Result<Option<MicroUsd>, CloudError> {
        (**self).spot_price_at(pool, at).await
    }

    async fn machines(&self) -> Result<Vec<CloudMachine>, CloudError> {
        (**self).machines().await
    }

    async fn buy(&self, order: &Order) -> Result<Filled, CloudError> {
        (**self).buy(order).await
    }

    async fn end(&self, region: &str, instances: &[String]) -> Result<(), CloudError> {
        (**self).end(region, instances).await
    }
}
