//! The expected cost of a search on the types of machines that a server has bought, and the time that it should take.

use crate::{
    api_client::ApiClient,
    cli::{render::text, submit::jobfile::Job, terminal::exit::Failure},
};
use serde::Serialize;
use sojourn_api::endpoints;
use sojourn_protocol::{money::MicroUsd, time::Millis};
use sojourn_workgen::{
    price::{PriceEstimate, SearchWork, prices},
    trade::trade,
};

/// An estimate, as JSON has it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Price {
    instance_type: String,
    machines: u64,
    time: Millis,
    cost: MicroUsd,
    on_demand_cost: MicroUsd,
}

impl From<PriceEstimate> for Price {
    fn from(of: PriceEstimate) -> Self {
        let PriceEstimate { instance_type, machines, time, cost, on_demand_cost } = of;
        Self { instance_type, machines, time, cost, on_demand_cost }
    }
}

/// A choice of machines that no other beats in both cost and time.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Choice {
    /// `cheapest`, `between`, or `fastest`.
    choice: &'static str,
    #[serde(flatten)]
    price: Price,
}

/// The prices of a search; empty where the server has bought no machines.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Prices {
    /// On each type with a slot for each trial, the cheapest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) prices: Vec<Price>,
    /// At most three choices of a type and how many machines of it, the cheapest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) trade: Vec<Choice>,
}

impl Prices {
    /// Has the server bought no machine so far?
    pub(crate) const fn are_unknown(&self) -> bool {
        self.prices.is_empty()
    }
}

/// The data of a job, as far as prices depend on it.
pub(crate) struct DataSize<'a> {
    pub(crate) shape: &'a [u32],
    pub(crate) outputs: u32,
    pub(crate) train_rows: u64,
    pub(crate) valid_rows: u64,
}

/// Does the job say anything of money or time, so that its user cares?
pub(crate) fn are_wanted(job: &Job) -> bool {
    let placement = &job.spec.placement;
    placement.budget.is_some() || placement.deadline.is_some()
}

/// The prices on the machines that the server has bought so far.
pub(crate) async fn of(
    client: &ApiClient,
    job: &Job,
    data: &DataSize<'_>,
) -> Result<Prices, Failure> {
    let types = client.call(endpoints::Speeds::request()).await?.types;
    let rows = match job.spec.search.folds {
        None => (data.train_rows, data.valid_rows),
        Some(folds) => {
            let held_out = data.train_rows / u64::from(folds);
            (data.train_rows.saturating_sub(held_out), held_out)
        }
    };
    let unbuilt = |error| Failure::call(format!("a model can't be built: {error}"));
    let mut work = SearchWork::of(&job.trials, data.shape, data.outputs, rows).map_err(unbuilt)?;
    if job.spec.search.refit {
        // The final model is one of these, on all rows, when the others have ended.
        let rows = (data.train_rows, 0);
        let each = SearchWork::of(&job.trials, data.shape, data.outputs, rows);
        work = work.then_largest_of(&each.map_err(unbuilt)?);
    }
    let trade = trade(&work, &types, job.spec.placement.deadline).into_iter();
    let trade = trade.map(|(choice, price)| Choice { choice: choice.name(), price: price.into() });
    let prices = prices(&work, &types).into_iter().map(Price::from);
    Ok(Prices { prices: prices.collect(), trade: trade.collect() })
}

/// The prices for people: a line for each choice; also where the budget or the deadline is too short.
pub(crate) fn lines(prices: &Prices, job: &Job) -> Vec<String> {
    let placement = &job.spec.placement;
    let Prices { prices, trade } = prices;
    let line = |Choice { choice, price }: &Choice| {
        format!(
            "{choice}: about {} on {} {}, in {}; on demand {}",
            price.cost,
            price.machines,
            price.instance_type,
            text::duration(price.time.0),
            price.on_demand_cost
        )
    };
    let mut lines: Vec<String> = trade.iter().map(line).collect();
    let Some(Choice { price: cheapest, .. }) = trade.first() else { return lines };
    if let Some(budget) = placement.budget.filter(|budget| *budget < cheapest.cost) {
        lines.push(format!("the budget of {budget} won't do for all of it"));
    }
    let fastest = prices.iter().map(|price| price.time).min();
    if let Some((deadline, time)) = placement.deadline.zip(fastest).filter(|(of, is)| of < is) {
        let time = text::duration(time.0);
        lines.push(format!(
            "the deadline of {deadline} is too soon: the longest trial takes {time} on the fastest"
        ));
    }
    lines
}
