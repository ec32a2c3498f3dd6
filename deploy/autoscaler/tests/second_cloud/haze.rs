//! A made-up cloud: its table, and its account over the fleet's fake cloud. Nothing but this file knows it.

use async_trait::async_trait;
use serde::Deserialize;
use sojourn_clouds::{Account, Goes, Holdings, Leaving, Provider, ProviderError};
use sojourn_fake_cloud::{
    CapacityConfig, CloudConfig, FakeClient, FakeCloud, InterruptionConfig, PoolConfig, Prices,
    World, WorldConfig,
};
use sojourn_fleet::cloud::{
    Cloud, CloudError, CloudMachine, Filled, InstanceType, MachineState, Offers, Order, Pool,
};
use sojourn_protocol::{
    money::MicroUsd,
    time::{Millis, UnixMillis},
};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};
use toml::Table;

/// The regions that it has.
const REGIONS: [&str; 2] = ["bay-1", "fen-1"];

/// The provider, with all that its cloud has.
#[derive(Debug)]
pub(crate) struct Haze {
    table: &'static str,
    pub(crate) cloud: HazeCloud,
}

/// The cloud of an account, and its clock.
#[derive(Debug, Clone)]
pub(crate) struct HazeCloud {
    client: FakeClient,
    pub(crate) now: Arc<AtomicU64>,
    /// How often it was asked what it sells.
    pub(crate) asked: Arc<AtomicU64>,
    regions: Vec<String>,
}

/// The table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HazeSettings {
    regions: Vec<String>,
}

pub(crate) fn pool(region: &str) -> Pool {
    Pool { region: region.into(), zone: format!("{region}a"), instance_type: "drop".into() }
}

impl Haze {
    /// A cloud whose table has this name.
    pub(crate) fn named(table: &'static str) -> Self {
        let now = Arc::new(AtomicU64::new(1_000_000));
        let kind =
            InstanceType { name: "drop".into(), vcpus: 4, memory: 8 << 30, gpus: 0, gpu_memory: 0 };
        let sold = |region: &&str| PoolConfig {
            pool: pool(region),
            on_demand: MicroUsd(100_000),
            prices: Prices::Trace(vec![(Millis(0), MicroUsd(30_000))]),
            capacity: CapacityConfig {
                machines: 8,
                shortages: 0.0,
                shortage: Millis(0),
                on_demand: 8,
            },
            interruptions: InterruptionConfig {
                per_hour: 0.0,
                in_shortage: 1.0,
                noticed: 1.0,
                notice: Millis::from_secs(30),
            },
        };
        let world = WorldConfig {
            types: [(kind.name.clone(), kind)].into(),
            pools: REGIONS.iter().map(sold).collect(),
            from: UnixMillis(now.load(Ordering::Relaxed)),
            length: Millis::from_secs(3600),
            step: Millis::from_secs(60),
        };
        let cloud = FakeCloud::new(Arc::new(World::new(&world, 1)), CloudConfig::default(), 1);
        let clock = Arc::clone(&now);
        let clock = Arc::new(move || UnixMillis(clock.load(Ordering::Relaxed)));
        let client = FakeClient::new(Arc::new(Mutex::new(cloud)), clock);
        let cloud = HazeCloud { client, now, asked: Arc::default(), regions: Vec::new() };
        Self { table, cloud }
    }

    /// Machines that haven't ended.
    pub(crate) fn alive(&self) -> usize {
        self.cloud.client.lock().alive()
    }
}

impl Provider for Haze {
    fn table(&self) -> &'static str {
        self.table
    }

    fn title(&self) -> &'static str {
        "Haze"
    }

    fn contents(&self) -> &'static str {
        "the regions"
    }

    fn read(
        &self,
        table: &Table,
        _fleet: &str,
        _folder: &Path,
    ) -> Result<Box<dyn Account>, ProviderError> {
        let wrong = |what: &str| ProviderError::File(format!("`[{}]`: {what}", self.table));
        let settings: Result<HazeSettings, toml::de::Error> = table.clone().try_into();
        let HazeSettings { regions } = settings.map_err(|error| wrong(error.message()))?;
        if let Some(region) = regions.iter().find(|region| !REGIONS.contains(&region.as_str())) {
            return Err(wrong(&format!("there is no region `{region}`")));
        }
        Ok(Box::new(HazeCloud { regions, ..self.cloud.clone() }))
    }
}

#[async_trait(?Send)]
impl Account for HazeCloud {
    async fn connect(
        &self,
        values: &BTreeMap<String, String>,
    ) -> Result<Arc<dyn Cloud>, ProviderError> {
        assert!(values.contains_key("server"), "machines are told where their server is");
        Ok(Arc::new(self.clone()))
    }

    async fn open(&self) -> Result<Box<dyn Holdings>, ProviderError> {
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl Cloud for HazeCloud {
    async fn offers(&self) -> Result<Offers, CloudError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut offers = self.client.offers().await?;
        offers.quotes.retain(|pool, _| self.regions.contains(&pool.region));
        Ok(offers)
    }

    async fn spot_price_at(
        &self,
        pool: &Pool,
        at: UnixMillis,
    ) -> Result<Option<MicroUsd>, CloudError> {
        self.client.spot_price_at(pool, at).await
    }

    async fn machines(&self) -> Result<Vec<CloudMachine>, CloudError> {
        self.client.machines().await
    }

    async fn buy(&self, order: &Order) -> Result<Filled, CloudError> {
        self.client.buy(order).await
    }

    async fn end(&self, region: &str, instances: &[String]) -> Result<(), CloudError> {
        self.client.end(region, instances).await
    }
}

#[async_trait(?Send)]
impl Holdings for HazeCloud {
    async fn check(&self) -> Result<Vec<String>, CloudError> {
        let offers = self.offers().await?;
        let sold = |region: &String| {
            let pools = offers.quotes.keys().filter(|pool| pool.region == *region);
            format!("{region}: {} pools are sold.", pools.count())
        };
        Ok(self.regions.iter().map(sold).collect())
    }

    async fn leavings(&self) -> Result<Vec<Leaving>, CloudError> {
        let mut found = Vec::new();
        for machine in self.machines().await? {
            let goes = match machine.state {
                MachineState::Pending | MachineState::Running => Goes::Stays,
                MachineState::Ending => Goes::Itself,
                MachineState::Ended => continue,
            };
            found.push(Leaving {
                region: machine.pool.region,
                kind: "machine",
                id: machine.instance,
                goes,
                has_models: false,
            });
        }
        Ok(found)
    }

    async fn remove_all(&self) -> Result<Vec<Leaving>, CloudError> {
        let found = self.leavings().await?;
        for region in &self.regions {
            let of_region = found.iter().filter(|leaving| leaving.region == *region);
            let ids: Vec<String> = of_region.map(|leaving| leaving.id.clone()).collect();
            self.end(region, &ids).await?;
        }
        Ok(found)
    }
}
