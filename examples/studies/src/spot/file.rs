//! The file of a simulation: a market, types of machines, a job, and how machines are bought.

use serde::{Deserialize, Deserializer, de::Error as _};
use sojourn_protocol::{money::MicroUsd, time::Millis};
use sojourn_sim::fleet::{
    self, Bytes, Span,
    scenario::{JobEntry, ServerSpec},
};

/// The file. Every key is documented in docs/spot-simulation.md.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimFile {
    /// The first seed.
    #[serde(default)]
    pub seed: u64,
    /// How many seeds.
    #[serde(default = "one")]
    pub seeds: u64,
    /// Shares of spot machines that are gone after an hour: each is a table of its own.
    pub rates: Vec<f64>,
    /// The market.
    pub market: Market,
    /// The machines.
    pub machines: Machines,
    /// The types.
    pub types: Vec<TypeEntry>,
    /// The job, where there is but one.
    #[serde(default)]
    pub job: Option<JobEntry>,
    /// Several jobs.
    #[serde(default)]
    pub jobs: Vec<JobEntry>,
    /// The server.
    #[serde(default)]
    pub server: ServerSpec,
    /// The autoscaler.
    pub autoscaler: Autoscaler,
    /// The choices that the other ways are given.
    #[serde(default)]
    pub others: Others,
}

/// `[market]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Market {
    /// The region.
    pub region: String,
    /// The region's zones.
    pub zones: Vec<String>,
    /// For how long prices and capacity move.
    pub length: Span,
    /// How often.
    pub step: Span,
    /// How prices move.
    pub price: Price,
    /// Prices that were seen instead: a CSV file with the columns `type`, `zone`, `seconds` and `price`.
    pub trace: Option<String>,
    /// How many machines there are.
    pub capacity: Capacity,
    /// How they are taken back.
    pub interruptions: Interruptions,
}

/// `[market.price]`: see [`Walk`](sojourn_fake_cloud::Walk).
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// The median, as a share of the list price.
    pub mean: f64,
    /// How far the medians of pools are apart: a standard deviation, of the logarithm.
    #[serde(default)]
    pub spread: f64,
    /// How fast a price comes back, an hour.
    pub reversion: f64,
    /// The standard deviation in the long run, of the logarithm.
    pub deviation: f64,
    /// Jumps in an hour.
    #[serde(default)]
    pub jumps: f64,
    /// The standard deviation of a jump, of the logarithm.
    #[serde(default)]
    pub jump: f64,
    /// The least, as a share of the list price.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// `[market.capacity]`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// Spot machines of a pool.
    pub machines: u32,
    /// How often in an hour a pool has none.
    #[serde(default)]
    pub shortages: f64,
    /// For how long, in the mean.
    #[serde(default)]
    pub shortage: Span,
    /// Machines of a pool on demand.
    pub on_demand: u32,
}

/// `[market.interruptions]`; how many there are is `rates`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interruptions {
    /// How many times as likely they are while a pool has no capacity.
    #[serde(default = "once")]
    pub in_shortage: f64,
    /// The share that is told before.
    pub noticed: f64,
    /// How long before.
    pub notice: Span,
}

/// `[machines]`: what all of them share.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machines {
    /// From launch until the client starts: the least and the most.
    pub boot: (Span, Span),
    /// Mbit/s from the server or the store; 0: free and instant.
    pub download: f64,
    /// Mbit/s to it.
    pub upload: f64,
    /// One way to it.
    #[serde(default)]
    pub latency: Span,
    /// How far the time of a unit scatters: the sigma of a lognormal factor.
    #[serde(default)]
    pub noise: f64,
    /// Bytes of its cache; none: no limit.
    pub cache: Option<Bytes>,
}

/// One of `[[types]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeEntry {
    /// As `g5.xlarge`.
    pub name: String,
    /// Virtual processors.
    pub vcpus: u32,
    /// The memory of a machine.
    pub memory: Bytes,
    /// GPUs: each is a slot.
    pub gpus: u32,
    /// Memory of each.
    pub gpu_memory: Bytes,
    /// The speed that training reaches on one GPU, in TFLOP/s.
    pub tflops: f64,
    /// The list price of an hour: `"1.006 usd"`.
    #[serde(deserialize_with = "text")]
    pub on_demand: MicroUsd,
}

/// `[autoscaler]`: the settings of the planner that a simulation changes.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Autoscaler {
    /// The most machines at a time.
    pub machines: u32,
    /// The most dollars in all.
    #[serde(default, deserialize_with = "some_text")]
    pub total: Option<MicroUsd>,
    /// The most dollars an hour.
    #[serde(default, deserialize_with = "some_text")]
    pub hourly: Option<MicroUsd>,
    /// Between two plans.
    #[serde(deserialize_with = "text")]
    pub interval: Millis,
    /// A client without a unit ends after so long.
    #[serde(deserialize_with = "text")]
    pub exit_when_idle: Millis,
}

/// `[others]`: the sizes that fixed fleets are tried with; the best counts.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Others {
    /// Slots of the fixed fleet in hop order, as shares of the trials.
    pub fixed: Vec<f64>,
    /// The same while results are merged.
    pub merging: Vec<f64>,
    /// Of those that end in so many times the time on demand, the cheapest counts.
    pub makespan: f64,
}

impl Default for Others {
    fn default() -> Self {
        Self { fixed: vec![0.5, 0.75, 1.0], merging: vec![0.75], makespan: 1.25 }
    }
}

/// Reads a file's text.
///
/// # Errors
/// The first thing that is wrong with it, with its line.
pub fn read(text: &str) -> Result<SimFile, String> {
    let file: SimFile = fleet::parse(text).map_err(|error| error.to_string())?;
    let told = |(key, complaint): Fault| fleet::at_key(text, &key, &complaint).to_string();
    file.check().map_err(told)?;
    Ok(file)
}

/// A key, and a complaint about it.
type Fault = (String, String);

fn fault<T>(key: &str, complaint: impl Into<String>) -> Result<T, Fault> {
    Err((key.to_owned(), complaint.into()))
}

fn ratio(key: &str, value: f64) -> Result<(), Fault> {
    match (0.0..=1.0).contains(&value) {
        true => Ok(()),
        false => fault(key, format!("is {value}: from 0 to 1 is wanted")),
    }
}

impl SimFile {
    /// All its jobs.
    pub fn all_jobs(&self) -> impl Iterator<Item = &JobEntry> {
        self.job.iter().chain(&self.jobs)
    }

    fn check(&self) -> Result<(), Fault> {
        if self.rates.is_empty() {
            return fault("rates", "is empty: at least one rate of interruptions is wanted");
        }
        if self.seeds == 0 {
            return fault("seeds", "is 0: at least one is wanted");
        }
        self.rates.iter().try_for_each(|rate| ratio("rates", *rate))?;
        self.check_market()?;
        if self.types.is_empty() {
            return fault("types", "is empty: at least one type of machine is wanted");
        }
        for (at, of) in self.types.iter().enumerate() {
            if of.gpus == 0 {
                return fault(&format!("types.{at}.gpus"), "is 0: each machine has one at least");
            }
            if of.tflops <= 0.0 || of.tflops.is_nan() {
                let told = format!("is {}: more than 0 is wanted", of.tflops);
                return fault(&format!("types.{at}.tflops"), told);
            }
        }
        match (&self.job, self.jobs.as_slice()) {
            (Some(_), [_, ..]) => {
                return fault("jobs", "stands beside `job`: one of both is wanted");
            }
            (None, []) => {
                return fault("job", "is missing, and so is `jobs`: one of both is wanted");
            }
            (_, _) => {}
        }
        for (at, job) in self.all_jobs().enumerate() {
            let key = |key: &str| match self.job {
                Some(_) => format!("job.{key}"),
                None => format!("jobs.{at}.{key}"),
            };
            if job.file.is_some() {
                return fault(
                    &key("file"),
                    "isn't wanted: models aren't trained here, `costs` says what they take",
                );
            }
            if job.costs.is_none() && job.equal.is_none() {
                return fault(
                    &key("costs"),
                    "is missing: a list of MFLOPs a row, or `equal`, is wanted",
                );
            }
            if let Some((budget, total)) = job.budget.zip(self.autoscaler.total)
                && budget > total
            {
                let told = format!(
                    "is {budget}, more than `autoscaler.total`, {total}: the job can't cost so much"
                );
                return fault(&key("budget"), told);
            }
        }
        if self.others.fixed.is_empty() || self.others.merging.is_empty() {
            return fault("others", "needs at least one size of `fixed` and one of `merging`");
        }
        Ok(())
    }

    fn check_market(&self) -> Result<(), Fault> {
        let Market { zones, step, price, interruptions, .. } = &self.market;
        ratio("market.interruptions.noticed", interruptions.noticed)?;
        for (key, value) in [("spread", price.spread), ("deviation", price.deviation)] {
            if value < 0.0 {
                return fault(
                    &format!("market.price.{key}"),
                    format!("is {value}: 0 or more is wanted"),
                );
            }
        }
        if price.least > price.most {
            let told = format!("is {}, more than `most`, {}", price.least, price.most);
            return fault("market.price.least", told);
        }
        if zones.is_empty() {
            return fault("market.zones", "is empty: at least one zone is wanted");
        }
        if step.0 < 1_000_000 {
            return fault("market.step", "is too short: a second or more is wanted");
        }
        Ok(())
    }
}

const fn one() -> u64 {
    1
}

const fn once() -> f64 {
    1.0
}

fn text<'de, T: std::str::FromStr<Err = &'static str>, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

fn some_text<'de, T: std::str::FromStr<Err = &'static str>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    text(from).map(Some)
}
