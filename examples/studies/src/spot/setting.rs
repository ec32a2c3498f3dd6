//! All that one run needs: a world, what is trained in it, and on which machines.

use super::{
    file::{SimFile, TypeEntry},
    market::{self, Traces, millis},
    number::float,
};
use sojourn_fake_cloud::{CloudConfig, FakeCloud, World};
use sojourn_fleet::{limits::Limits, settings::Settings};
use sojourn_protocol::{
    quantity::{to_u64, to_usize},
    spec::OrderChoice,
    time::Millis,
};
use sojourn_sim::fleet::{
    Auto, Scenario, Span,
    scenario::{Costs, HostGroup, JobEntry, Pick, Speeds},
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
        scenario.job = self.file.job.clone();
        scenario.jobs = self.file.jobs.clone();
        for job in scenario.job.iter_mut().chain(&mut scenario.jobs) {
            job.pick = Pick::Cycle;
            if merges {
                job.order = Some(OrderChoice::Merge);
            }
        }
        if merges {
            scenario.server.lease_term = Auto::Given(Span(300_000_000));
            scenario.server.heartbeat = Auto::Given(Span(120_000_000));
        }
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

    /// All trials of all jobs.
    #[must_use]
    pub fn trials(&self) -> Vec<TrialWork> {
        self.file.all_jobs().flat_map(trials_of).collect()
    }

    /// Operations of all jobs.
    #[must_use]
    pub fn work(&self) -> f64 {
        self.trials().iter().map(|of| of.epoch * f64::from(of.epochs)).sum()
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
        float(to_u64(self.trials().len()).max(1))
    }
}

/// A trial, and what it takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialWork {
    /// Operations of an epoch, with its evaluation.
    pub epoch: f64,
    /// How many epochs it has.
    pub epochs: u32,
    /// Bytes of its job's data.
    pub data: u64,
    /// Bytes of a checkpoint.
    pub checkpoint: u64,
    /// When it is submitted.
    pub submitted: Millis,
}

/// The trials of a job.
fn trials_of(job: &JobEntry) -> Vec<TrialWork> {
    let rows = float(job.rows) + float(job.valid_rows) / 3.0;
    let costs: Vec<f64> = match (&job.costs, job.equal) {
        (Some(Costs::List(list)), _) => list.clone(),
        (_, equal) => vec![equal.unwrap_or(0.0)],
    };
    let usual = match &job.costs {
        Some(Costs::List(list)) => list.len(),
        Some(Costs::File(_)) | None => 16,
    };
    let count = job.trials.map_or(usual, to_usize);
    let trial = |mflops: &f64| TrialWork {
        epoch: mflops * 1e6 * rows,
        epochs: job.epochs.unwrap_or(1),
        data: job.data_bytes.0,
        checkpoint: job.checkpoint_bytes.map_or(0, |bytes| bytes.0),
        submitted: millis(job.submitted),
    };
    costs.iter().cycle().take(count).map(trial).collect()
}
