//! Amazon EC2 as a [`Cloud`] of the spot fleet.
//!
//! | module | owns |
//! |---|---|
//! | `settings` | the tables `[ec2]` and `[ec2.server]`, and what can be wrong with them |
//! | `user_data` | the template of the machines' user data |
//! | `connection` | the SDK's settings: credentials, TLS, retries, time limits |
//! | `region` | a region: its client, subnets, image |
//! | `catalog`, `sold`, `prices` | what is sold where, for how much |
//! | `template` | the launch template of a region |
//! | `order`, `tokens`, `tags` | buying |
//! | `machines` | the machines by their tags, and their end |
//! | `leavings` | what the fleet has in the account, and its removal |
//! | `site` | the fleet's network, rights and server: made and removed |
//! | `provider` | all of this behind the traits of `sojourn-clouds`: the only part that programs name |
//! | `errors` | what EC2's error codes mean |
//!
//! Nothing is kept on disk. EC2 itself knows what was bought, by the tags [`FLEET_TAG`] and [`MACHINE_TAG`].
//!
//! No token gets into a log or an error: user data goes with the order that buys a machine, and what the SDK and this
//! package print of it is redacted.

mod catalog;
mod connection;
mod errors;
mod leavings;
mod machines;
mod money;
mod order;
mod patterns;
mod prices;
mod provider;
mod region;
mod settings;
mod site;
mod sold;
mod tags;
mod template;
mod tokens;
mod user_data;

pub use connection::{connect, connect_in, offline};
pub use leavings::{Leaving, LeavingKind};
pub use order::MAX_POOLS;
pub use provider::Ec2Provider;
pub use settings::{
    Ec2Settings, FLEET_TAG, GivenTemplate, ListPrice, MACHINE_TAG, MAX_FLEET_CHARS, MAX_TAGS,
    MAX_TYPES, MAX_ZONES, Package, ROLE_TAG, RegionSettings, SERVER_ROLE, ServerSettings,
    ServerSettingsError, SettingsError,
};
pub use site::{
    ADDRESS_PLACEHOLDER, PORT, Part, PartState, Placement, ServerFiles, Site, SiteError, SiteServer,
};
pub use user_data::{MAX_USER_DATA, UserData, UserDataError};

use async_trait::async_trait;
pub use aws_config::SdkConfig;
use futures::future::try_join_all;
use region::Region;
pub use sojourn_clouds::{Costs, Goes, State};
use sojourn_fleet::cloud::{Cloud, CloudError, CloudMachine, Filled, Offers, Order, Pool};
use sojourn_protocol::{money::MicroUsd, time::UnixMillis};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

/// A fleet's account and regions.
#[derive(Debug)]
pub struct Ec2 {
    regions: BTreeMap<String, Region>,
    user_data: UserData,
}

/// The result of checking a region's settings with EC2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionCheck {
    /// The region.
    pub region: String,
    /// The image with which machines are bought.
    pub image: String,
    /// The image's processors, as `x86_64`: types of others aren't bought.
    pub architecture: String,
    /// The subnet of each zone.
    pub subnets: BTreeMap<String, String>,
    /// How many types the settings name that are sold there.
    pub types: usize,
    /// The types without a list price: they aren't bought.
    pub unlisted: Vec<String>,
}

impl Ec2 {
    /// A fleet with these settings over an SDK's configuration: see [`connect`]. Nothing is asked yet.
    ///
    /// # Errors
    /// With what is wrong with the settings.
    pub fn new(
        config: &SdkConfig,
        settings: Ec2Settings,
        user_data: UserData,
    ) -> Result<Self, SettingsError> {
        settings.validate()?;
        let shared = Arc::new(settings);
        let regions = shared.regions.iter().map(|(name, settings)| {
            let client = connection::client(config, name);
            (name.clone(), Region::new(name, client, settings.clone(), shared.clone()))
        });
        Ok(Self { regions: regions.collect(), user_data })
    }

    /// Asks EC2 whether the settings are as they should: credentials, images, subnets, types. Nothing is made.
    ///
    /// # Errors
    /// See [`CloudError`].
    pub async fn check(&self) -> Result<Vec<RegionCheck>, CloudError> {
        let checks = self.regions.values().map(|region| async move {
            let place = region.place().await?.clone();
            let catalog = catalog::catalog(region).await?;
            let unlisted = |name: &&String| !region.settings.on_demand.contains_key(*name);
            Ok(RegionCheck {
                region: region.name.clone(),
                image: place.image,
                architecture: place.architecture,
                subnets: place.subnets,
                types: catalog.zones.len(),
                unlisted: catalog.zones.keys().filter(unlisted).cloned().collect(),
            })
        });
        try_join_all(checks).await
    }

    /// All that has the fleet's tag and hasn't ended, in all its regions.
    ///
    /// # Errors
    /// See [`CloudError`].
    pub async fn leavings(&self) -> Result<Vec<Leaving>, CloudError> {
        Ok(try_join_all(self.regions.values().map(leavings::of)).await?.concat())
    }

    /// Removes all that has the fleet's tag, and says what that was. Machines and their volumes go some time later: nothing is
    /// left once [`Ec2::leavings`] says so.
    ///
    /// # Errors
    /// See [`CloudError`].
    pub async fn remove_all(&self) -> Result<Vec<Leaving>, CloudError> {
        let removed = self.regions.values().map(|region| async move {
            let found = leavings::of(region).await?;
            leavings::remove(region, &found).await?;
            // The next order makes it anew.
            template::forget(region).await;
            Ok::<_, CloudError>(found)
        });
        Ok(try_join_all(removed).await?.concat())
    }

    fn region(&self, name: &str) -> Result<&Region, CloudError> {
        let unknown = || CloudError::Refused(format!("the fleet has no region {name}"));
        self.regions.get(name).ok_or_else(unknown)
    }
}

#[async_trait]
impl Cloud for Ec2 {
    async fn offers(&self) -> Result<Offers, CloudError> {
        let now = now();
        let all = self.regions.values().map(|region| prices::offers(region, now));
        let mut offers = Offers::default();
        for of_region in try_join_all(all).await? {
            offers.types.extend(of_region.types);
            offers.quotes.extend(of_region.quotes);
        }
        Ok(offers)
    }

    async fn spot_price_at(
        &self,
        pool: &Pool,
        at: UnixMillis,
    ) -> Result<Option<MicroUsd>, CloudError> {
        prices::spot_price_at(self.region(&pool.region)?, pool, at).await
    }

    async fn machines(&self) -> Result<Vec<CloudMachine>, CloudError> {
        Ok(try_join_all(self.regions.values().map(machines::machines)).await?.concat())
    }

    async fn buy(&self, order: &Order) -> Result<Filled, CloudError> {
        if order.machines.is_empty() {
            return Ok(Filled::default());
        }
        let refused = |text: &str| Filled {
            bought: vec![],
            failure: Some(CloudError::Refused(text.to_owned())),
        };
        let Some(first) = order.pools.first() else {
            return Ok(refused("the order has no pool"));
        };
        if order.pools.iter().any(|pool| pool.region != first.region) {
            return Ok(refused("the order has pools of several regions"));
        }
        match self.region(&first.region) {
            Ok(region) => order::buy(region, &self.user_data, order).await,
            Err(failure) => Ok(Filled { bought: vec![], failure: Some(failure) }),
        }
    }

    async fn end(&self, region: &str, instances: &[String]) -> Result<(), CloudError> {
        machines::end(self.region(region)?, instances).await
    }
}

/// The time at which prices are asked for.
fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
