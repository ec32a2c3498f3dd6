//! The outcome of each way to run the search.

use super::{
    buyer::{Buyer, Trouble},
    clairvoyant,
    fixed::FixedFleet,
    ground::{Ground, Habits},
    number::{float, whole},
    per_trial,
    setting::Setting,
};
use serde::Serialize;
use sojourn_fake_cloud::FakeCloud;
use sojourn_protocol::{
    machines::{MachineEnd, Market},
    quantity::to_u64,
    time::{Millis, UnixMillis},
};
use sojourn_sim::fleet::{self, Policy, RunResult, Watch};
use std::collections::BTreeMap;

/// A way to run the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// The planner, spot and on demand.
    Autoscaler,
    /// The planner, on demand only.
    OnDemand,
    /// A fixed spot fleet, in hop order.
    FixedSpot,
    /// A machine for each trial.
    PerTrial,
    /// A fixed spot fleet that merges results, with a time-out of five minutes.
    VcAsgd,
    /// The bound.
    Clairvoyant,
}

impl Way {
    /// The way's name, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Autoscaler => "autoscaler",
            Self::OnDemand => "on demand only",
            Self::FixedSpot => "fixed spot fleet",
            Self::PerTrial => "a machine for each trial",
            Self::VcAsgd => "VC-ASGD's fixed fleet",
            Self::Clairvoyant => "clairvoyant (bound)",
        }
    }
}

/// The outcome of a way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Which way.
    pub way: Way,
    /// Dollars in all.
    pub cost: f64,
    /// Dollars for a trial.
    pub cost_per_trial: f64,
    /// Hours from the submission to the job's end.
    pub makespan: f64,
    /// Machines that were taken back.
    pub interruptions: u64,
    /// Machines that were bought.
    pub machines: u64,
    /// Of these, on demand.
    pub on_demand: u64,
    /// Hours that all machines ran.
    pub machine_hours: f64,
    /// The same by type.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hours_by_type: BTreeMap<String, f64>,
    /// The share of the list price of the same hours that was paid.
    #[serde(rename = "price_share")]
    pub price_ratio: f64,
    /// The share of training that came to nothing.
    pub lost: f64,
    /// The hops that were done when the money was used up, and all of them; left out where all were done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_money: Option<(u64, u64)>,
    /// By how many hours each job that has missed its deadline has missed it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hours_late: BTreeMap<String, f64>,
    /// The size that was chosen, where there was a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
}

fn nothing(way: Way) -> Outcome {
    Outcome {
        way,
        cost: 0.0,
        cost_per_trial: 0.0,
        makespan: 0.0,
        interruptions: 0,
        machines: 0,
        on_demand: 0,
        machine_hours: 0.0,
        hours_by_type: BTreeMap::new(),
        price_ratio: 0.0,
        lost: 0.0,
        out_of_money: None,
        hours_late: BTreeMap::new(),
        slots: None,
    }
}

/// By how many hours each job of a run that has missed its deadline has missed it.
fn hours_late(setting: &Setting, result: &RunResult) -> BTreeMap<String, f64> {
    let jobs = setting.file.all_jobs().zip(&result.jobs);
    let late = jobs.filter_map(|(entry, job)| {
        let deadline = float(entry.deadline?.0) / 1e6;
        let late = job.ended - job.submitted - deadline;
        (late > 0.0).then(|| (job.name.clone(), late / 3600.0))
    });
    late.collect()
}

impl Outcome {
    fn new(way: Way, setting: &Setting, cloud: &FakeCloud, makespan: f64, lost: f64) -> Self {
        let now = UnixMillis(u64::MAX / 2);
        let bill = cloud.bill();
        let dollars = float(cloud.cost(now).0) / 1e6;
        let taken = bill.iter().filter(|of| of.end == Some(MachineEnd::Interrupted)).count();
        let hours = bill.iter().map(|of| float(of.run_time(now).0) / 3_600_000.0).sum();
        let mut hours_by_type: BTreeMap<String, f64> = BTreeMap::new();
        let mut list = 0.0;
        for of in &bill {
            let run = float(of.run_time(now).0) / 3_600_000.0;
            *hours_by_type.entry(of.instance_type.clone()).or_default() += run;
            list += float(of.on_demand_cost(now).0) / 1e6;
        }
        let on_demand = bill.iter().filter(|of| of.market == Market::OnDemand).count();
        Self {
            cost: dollars,
            cost_per_trial: dollars / setting.trials_float(),
            makespan,
            interruptions: to_u64(taken),
            machines: to_u64(bill.len()),
            on_demand: to_u64(on_demand),
            machine_hours: hours,
            hours_by_type,
            price_ratio: if list > 0.0 { dollars / list } else { 0.0 },
            lost,
            ..nothing(way)
        }
    }
}

/// Machines of the setting's cloud.
#[must_use]
pub fn ground(setting: &Setting, hears_notices: bool, exit_when_idle: Millis) -> Ground {
    let habits = Habits { exit_when_idle, enrol_within: Millis::from_secs(600), hears_notices };
    let groups = setting.file.types.iter().map(|of| of.name.clone()).zip(0..);
    Ground::new(setting.cloud(), habits, groups.collect::<BTreeMap<_, _>>())
}

/// The planner's outcome. `spot`: may it buy spot machines?
///
/// # Errors
/// Why the run doesn't end.
pub(super) fn bought(
    setting: &Setting,
    spot: bool,
    watch: &mut dyn Watch,
) -> Result<Outcome, String> {
    let mut settings = setting.settings();
    settings.markets.spot = spot;
    let ground = ground(setting, true, setting.file.autoscaler.exit_when_idle);
    let buyer = Buyer::new(ground, settings, Trouble::default(), setting.seed);
    let mut buyer = buyer.map_err(|error| error.to_string())?;
    let result = run(setting, false, &mut buyer, watch)?;
    let way = if spot { Way::Autoscaler } else { Way::OnDemand };
    let cloud = &*buyer.ground.lock();
    let ledger = buyer.ledger.as_ref().map(|costs| costs.cost);
    let billed = cloud.cost(UnixMillis(u64::MAX / 2));
    if ledger != Some(billed) {
        return Err(format!("the server's ledger says {ledger:?}, and the cloud's bill {billed}"));
    }
    let outcome = Outcome::new(way, setting, cloud, result.makespan / 3600.0, result.lost_ratio);
    let hours_late = hours_late(setting, &result);
    Ok(Outcome { out_of_money: buyer.out_of_money, hours_late, ..outcome })
}

/// A fixed fleet of so many slots.
///
/// # Errors
/// Why the run doesn't end.
pub(super) fn fixed(
    setting: &Setting,
    merges: bool,
    slots: u32,
    watch: &mut dyn Watch,
) -> Result<Outcome, String> {
    let never = Millis(u64::MAX / 4);
    let mut fleet = FixedFleet::new(ground(setting, !merges, never), setting, slots)?;
    let result = run(setting, merges, &mut fleet, watch)?;
    let way = if merges { Way::VcAsgd } else { Way::FixedSpot };
    let cloud = &*fleet.ground.lock();
    let outcome = Outcome::new(way, setting, cloud, result.makespan / 3600.0, result.lost_ratio);
    Ok(Outcome { slots: Some(slots), hours_late: hours_late(setting, &result), ..outcome })
}

/// A machine for each trial.
///
/// # Errors
/// Why not all trials end.
pub(super) fn per_trial(setting: &Setting) -> Result<Outcome, String> {
    let (cloud, ended_at) = per_trial::run(setting)?;
    let mut outcome =
        Outcome::new(Way::PerTrial, setting, &cloud, float(ended_at.0) / 3_600_000.0, 0.0);
    let useful: f64 = setting.work();
    let done: f64 = cloud
        .bill()
        .iter()
        .filter_map(|of| {
            let tflops = setting.type_of(&of.instance_type)?.tflops;
            Some(float(of.run_time(ended_at).0) / 1000.0 * tflops * 1e12)
        })
        .sum();
    outcome.lost = (1.0 - useful / done.max(1.0)).max(0.0);
    Ok(outcome)
}

/// The clairvoyant's bound, done within so many hours.
#[must_use]
pub(super) fn clairvoyant(setting: &Setting, hours: f64) -> Outcome {
    let cost = clairvoyant::bound(setting, Millis(whole(hours * 3_600_000.0)));
    let cost_per_trial = cost / setting.trials_float();
    Outcome { cost, cost_per_trial, makespan: hours, ..nothing(Way::Clairvoyant) }
}

/// Runs the job to its end on what somebody buys, in hop order. All invariants of the core are checked at its end.
///
/// # Errors
/// Why it doesn't end.
pub fn play(setting: &Setting, machines: &mut dyn fleet::Machines) -> Result<RunResult, String> {
    run(setting, false, machines, &mut ())
}

fn run(
    setting: &Setting,
    merges: bool,
    machines: &mut dyn fleet::Machines,
    watch: &mut dyn Watch,
) -> Result<RunResult, String> {
    let scenario = setting.scenario(merges);
    let policy = scenario.server.policy.0.first().copied().unwrap_or(Policy::default());
    fleet::run_buying(&scenario, policy, setting.seed, None, machines, watch)
        .map_err(|error| error.to_string())
}
