//! All that one run needs: a world, what is trained in it, and on which machines.

use super::{
    file::{SimFile, TypeEntry},
    market::{self, Traces, millis},
    number::float,
};
use sojourn_fake_cloud::{CloudConfig, FakeCloud, World};
use sojourn_fleet::{limits::Limits, settings::Settings};
use sojourn_protocol::{quantity::to_u64, spec::OrderChoice};
use sojourn_sim::fleet::{
    Auto, Scenario, Span,
    scenario::{Costs, HostGroup, Pick, Speeds},
};
use std::sync::Arc;

/// A world with one seed, and what is done in it.
#[derive(Debug)]
pub struct Setting {
    /// The file.
    pub file: SimFile,
    /// The share of spot machines that are gone after an hour.
    pub rate: f64,
    /// The seed.
    pub seed: u64,
    /// The market: the same for all ways to buy in it.
    pub world: Arc<World>,
    /// How its calls go.
    pub cloud: CloudConfig,
}

impl Setting {
    /// The setting of a file, at a rate of interruptions and with a seed.
    #[must_use]
    pub fn new(file: &SimFile, traces: &Traces, rate: f64, seed: u64) -> Self {
        let world = Arc::new(World::new(&market::world(file, traces, rate, seed), seed));
        let (least, most) = file.machines.boot;
        let cloud = CloudConfig { boot: (millis(least), millis(most)), ..CloudConfig::default() };
        Self { file: file.clone(), rate, seed, world, cloud }
    }

    /// A cloud in this world, in which nothing was bought yet.
    #[must_use]
    pub fn cloud(&self) -> FakeCloud {
        FakeCloud::new(Arc::clone(&self.world), self.cloud.clone(), self.seed)
    }

    /// The planner's settings.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let of = self.file.autoscaler;
        let mut settings = Settings::new(Limits {
            machines: of.machines,
            vcpus: None,
            hourly: of.hourly,
            total: of.total,
            job: None,
        });
        settings.times.interval = of.interval;
        for of in &self.file.types {
            let gflops = super::number::whole(of.tflops * 1000.0);
            let gflops = u32::try_from(gflops).unwrap_or(u32::MAX);
            settings.types.gflops.insert(of.name.clone(), gflops);
        }
        settings
    }

    /// The scenario of a fleet simulation. `merges`: results are merged instead of handed on in hop order.
    #[must_use]
    pub fn scenario(&self, merges: bool) -> Scenario {
        let mut scenario = Scenario::default();
        scenario.seed = self.seed;
        scenario.server = self.file.server.clone();
        scenario.horizon = Auto::Given(Span(self.file.market.length.0.saturating_mul(2)));
        scenario.hosts = self.file.types.iter().map(|of| self.group(of)).collect();
        let mut job = self.file.job.clone();
        job.pick = Pick::Cycle;
        if merges {
            job.order = Some(OrderChoice::Merge);
            scenario.server.lease_term = Auto::Given(Span(300_000_000));
            scenario.server.heartbeat = Auto::Given(Span(120_000_000));
        }
        scenario.job = Some(job);
        scenario
    }

    fn group(&self, of: &TypeEntry) -> HostGroup {
        let machines = self.file.machines;
        HostGroup {
            name: of.name.clone(),
            tflops: Speeds::One(of.tflops),
            gpus: of.gpus,
            cache: machines.cache,
            download: machines.download,
            upload: machines.upload,
            latency: machines.latency,
            noise: machines.noise,
            ..HostGroup::default()
        }
    }

    /// The number of a type among the scenario's groups.
    #[must_use]
    pub fn group_of(&self, instance_type: &str) -> Option<usize> {
        self.file.types.iter().position(|of| of.name == instance_type)
    }

    /// A type by its name.
    #[must_use]
    pub fn type_of(&self, instance_type: &str) -> Option<&TypeEntry> {
        self.file.types.iter().find(|of| of.name == instance_type)
    }

    /// How many trials the job has.
    #[must_use]
    pub fn trials(&self) -> u32 {
        let costs = match &self.file.job.costs {
            Some(Costs::List(list)) => list.len(),
            Some(Costs::File(_)) | None => 16,
        };
        self.file.job.trials.unwrap_or(u32::try_from(costs).unwrap_or(u32::MAX))
    }

    /// Operations of each trial's epoch, with its evaluation.
    #[must_use]
    pub fn epochs(&self) -> Vec<f64> {
        let job = &self.file.job;
        let rows = float(job.rows) + float(job.valid_rows) / 3.0;
        let costs: Vec<f64> = match (&job.costs, job.equal) {
            (Some(Costs::List(list)), _) => list.clone(),
            (_, equal) => vec![equal.unwrap_or(0.0)],
        };
        let of = costs.iter().cycle().take(usize::try_from(self.trials()).unwrap_or(usize::MAX));
        of.map(|mflops| mflops * 1e6 * rows).collect()
    }

    /// How many epochs each trial has.
    #[must_use]
    pub fn epoch_count(&self) -> u32 {
        self.file.job.epochs.unwrap_or(1)
    }

    /// Operations of the whole job.
    #[must_use]
    pub fn work(&self) -> f64 {
        self.epochs().iter().sum::<f64>() * f64::from(self.epoch_count())
    }

    /// Seconds for so many bytes from the server.
    #[must_use]
    pub fn download_seconds(&self, bytes: u64) -> f64 {
        let rate = self.file.machines.download;
        if rate > 0.0 { float(bytes) * 8.0 / (rate * 1e6) } else { 0.0 }
    }

    /// Seconds for so many bytes to the server.
    #[must_use]
    pub fn upload_seconds(&self, bytes: u64) -> f64 {
        let rate = self.file.machines.upload;
        if rate > 0.0 { float(bytes) * 8.0 / (rate * 1e6) } else { 0.0 }
    }

    /// The trials' number, for averages.
    #[must_use]
    pub fn trials_float(&self) -> f64 {
        float(to_u64(self.epochs().len()).max(1))
    }
}
