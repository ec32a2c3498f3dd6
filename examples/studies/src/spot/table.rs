//! Outcomes as a table, and what was to be reached.

use super::{
    number::float,
    outcome::{Outcome, Way},
};
use serde::Serialize;
use sojourn_protocol::{figures::count, quantity::to_u64};
use std::fmt::Write as _;

/// All ways at one rate and with one seed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct World {
    /// The rate of interruptions.
    pub(super) rate: f64,
    /// The seed.
    pub(super) seed: u64,
    /// The outcomes.
    pub(super) outcomes: Vec<Outcome>,
}

impl World {
    fn cost(&self, way: Way) -> Option<f64> {
        self.ended(way).map(|of| of.cost_per_trial)
    }

    fn makespan(&self, way: Way) -> Option<f64> {
        self.ended(way).map(|of| of.makespan)
    }

    /// The outcome of a way that has trained everything.
    fn ended(&self, way: Way) -> Option<&Outcome> {
        self.outcomes.iter().find(|of| of.way == way && of.out_of_money.is_none())
    }

    /// Sentences about money that was used up, and about deadlines that were missed.
    fn shortfalls(&self) -> impl Iterator<Item = String> {
        self.outcomes.iter().flat_map(|of| {
            let way = format!("{}, seed {}", of.way.name(), self.seed);
            let spent = of.out_of_money.map(|(done, all)| {
                let (done, all, cost) = (count(done), count(all), of.cost);
                format!("{way}: the budget was spent after {done} of {all} hops, ${cost:.2}")
            });
            let late = of.hours_late.iter().map(move |(job, late)| {
                format!("{way}: job `{job}` missed its deadline by {late:.1} h")
            });
            spent.into_iter().chain(late).collect::<Vec<_>>()
        })
    }

    /// The cost per trial over the clairvoyant's.
    pub(super) fn to_clairvoyant(&self) -> Option<f64> {
        Some(self.cost(Way::Autoscaler)? / self.cost(Way::Clairvoyant)?)
    }

    /// The cost per trial over the least of the others'.
    pub(super) fn to_best_other(&self) -> Option<f64> {
        // On demand alone is no other way: it is what spot machines save of.
        self.cost(Way::FixedSpot)?;
        let others = [Way::OnDemand, Way::FixedSpot, Way::PerTrial, Way::VcAsgd];
        let least = others.iter().filter_map(|way| self.cost(*way)).reduce(f64::min)?;
        Some(self.cost(Way::Autoscaler)? / least)
    }

    /// The makespan over that on demand.
    pub(super) fn to_on_demand(&self) -> Option<f64> {
        Some(self.makespan(Way::Autoscaler)? / self.makespan(Way::OnDemand)?)
    }
}

/// The ways in the order of the table.
const WAYS: [Way; 6] =
    [Way::Autoscaler, Way::OnDemand, Way::FixedSpot, Way::PerTrial, Way::VcAsgd, Way::Clairvoyant];

fn mean(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let values: Vec<f64> = values.collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (values.iter().sum::<f64>() / float(to_u64(values.len()).max(1)), least, most)
}

/// The worlds of one rate as a table in Markdown: means over the seeds, and ratios with the least and the most.
pub(super) fn table(rate: f64, worlds: &[World]) -> String {
    let mut text = format!(
        "{:.0} % of spot machines are taken back within an hour, {} seeds\n\n",
        rate * 100.0,
        worlds.len()
    );
    text.push_str(
        "| | cost per trial | cost | makespan | interruptions | machine hours | lost | saving |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    let has_run = |way: &Way| worlds.iter().any(|world| world.cost(*way).is_some());
    for way in WAYS.into_iter().filter(has_run) {
        let of = |value: fn(&Outcome) -> f64| {
            let all = worlds.iter().flat_map(|world| &world.outcomes);
            let ended = all.filter(|outcome| outcome.way == way && outcome.out_of_money.is_none());
            mean(ended.map(value)).0
        };
        let saving = mean(
            worlds
                .iter()
                .filter_map(|world| Some(1.0 - world.cost(way)? / world.cost(Way::OnDemand)?)),
        );
        let _infallible = writeln!(
            text,
            "| {} | ${:.2} | ${:.0} | {:.1} h | {:.0} | {:.0} | {:.1} % | {:.1} % |",
            way.name(),
            of(|of| of.cost_per_trial),
            of(|of| of.cost),
            of(|of| of.makespan),
            of(|of| float(of.interruptions)),
            of(|of| of.machine_hours),
            of(|of| of.lost) * 100.0,
            saving.0 * 100.0,
        );
    }
    for sentence in worlds.iter().flat_map(World::shortfalls) {
        let _infallible = write!(text, "\n{sentence}");
    }
    text.push('\n');
    type Ratio = fn(&World) -> Option<f64>;
    let ratios: [(&str, Ratio, f64); 3] = [
        ("cost over the clairvoyant's", World::to_clairvoyant, 1.15),
        ("cost over the best of the others'", World::to_best_other, 0.8),
        ("makespan over that on demand", World::to_on_demand, 1.25),
    ];
    for (name, ratio, wanted) in ratios {
        let known: Vec<f64> = worlds.iter().filter_map(ratio).collect();
        if known.is_empty() {
            continue;
        }
        let (mean, least, most) = mean(known.into_iter());
        let _infallible =
            writeln!(text, "{name}: {mean:.3} ({least:.3} to {most:.3}); wanted: at most {wanted}");
    }
    text
}
