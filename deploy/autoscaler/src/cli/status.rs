//! `sojourn-autoscaler status`: machines, costs, prices.

use super::{read, run};
use crate::server::{HttpServer, Server as _};
use comfy_table::{CellAlignment, Table, presets::NOTHING};
use serde_json::json;
use sojourn_clouds::Providers;
use sojourn_fleet::{
    cloud::{Cloud as _, Offers},
    settings::Settings,
};
use sojourn_programs::{exit::Failure, output::line};
use sojourn_protocol::{
    demand::DemandView,
    error::error_chain,
    machines::{CostsView, MachineView},
    time::Millis,
};
use std::path::PathBuf;

/// Pools that are shown, unless all are asked for.
const SHOWN: usize = 20;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The fleet's file.
    file: PathBuf,
    /// Print JSON: machines, costs, demand, prices.
    #[arg(long)]
    json: bool,
    /// Show all pools, not the 20 cheapest.
    #[arg(long)]
    all: bool,
}

pub(super) async fn run(args: &Args, providers: Providers<'_>) -> Result<(), Failure> {
    let config = read(&args.file, providers)?;
    let server = HttpServer::new(&config).map_err(|error| Failure::call(error_chain(&error)))?;
    let costs = server.costs().await?;
    let demand = server.demand().await?;
    // Machines and costs are worth showing where the cloud can't be asked.
    let offers = match run::connect(&config, &server, true, providers).await {
        Ok(cloud) => cloud.offers().await.map_err(|error| error_chain(&error)),
        Err(failure) => Err(failure.messages().join("; ")),
    };
    if args.json {
        let prices = offers.as_ref().ok().map(|offers| pools(offers, &config.settings));
        let prices = prices.map(|pools| {
            let each = pools.into_iter().map(|(pool, quote)| {
                json!({
                    "pool": pool, "spot": quote.spot, "on_demand": quote.on_demand,
                })
            });
            each.collect::<Vec<_>>()
        });
        return line(&json!({ "costs": costs, "demand": demand, "prices": prices }).to_string());
    }
    for text in summary(&costs, &demand) {
        line(&text)?;
    }
    line(&machines(&costs).to_string())?;
    match offers {
        Ok(offers) => {
            let shown = if args.all { usize::MAX } else { SHOWN };
            line(&format!("\n{}", prices(&offers, &config.settings, shown)))
        }
        Err(error) => line(&format!("\nNo prices: {error}.")),
    }
}

/// The sums of costs and work, and the cost of each job.
fn summary(costs: &CostsView, demand: &DemandView) -> Vec<String> {
    let saved = costs.on_demand_cost.saturating_sub(costs.cost);
    let percent = saved.0.saturating_mul(100).checked_div(costs.on_demand_cost.0).unwrap_or(0);
    let runnable: u32 =
        demand.jobs.iter().flat_map(|job| &job.workloads).map(|workload| workload.runnable).sum();
    let running: u32 =
        demand.jobs.iter().flat_map(|job| &job.workloads).map(|workload| workload.running).sum();
    let hourly = costs.machines.iter().filter(|view| view.machine.ended_at.is_none());
    let hourly = hourly.map(|view| view.machine.price).sum::<sojourn_protocol::money::MicroUsd>();
    let mut lines = vec![
        format!("{running} units run and {runnable} wait; machines cost {hourly} an hour."),
        format!(
            "In all {} were spent, {percent} % less than the {} of the same machines on demand; {} of it on machines without a unit.",
            costs.cost, costs.on_demand_cost, costs.unused
        ),
    ];
    for job in &costs.jobs {
        let budget = job.budget.map(|budget| format!(" of {budget}")).unwrap_or_default();
        let name = if job.name.is_empty() { "(deleted)" } else { &job.name };
        lines.push(format!("Job {} `{name}`: {}{budget}.", job.job, job.cost));
    }
    lines
}

fn machines(costs: &CostsView) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(["MACHINE", "TYPE", "ZONE", "MARKET", "PRICE", "RUNS", "COST", "STATE"]);
    for view in &costs.machines {
        let machine = &view.machine;
        table.add_row([
            machine.name.to_string(),
            machine.instance_type.clone(),
            machine.zone.clone(),
            machine.market.name().to_owned(),
            machine.price.to_string(),
            minutes(view.run_time),
            view.cost.to_string(),
            state(view),
        ]);
    }
    for column in 4..=6 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn state(view: &MachineView) -> String {
    let end = view.machine.end.map(|end| match end {
        sojourn_protocol::machines::MachineEnd::Interrupted => "taken back",
        sojourn_protocol::machines::MachineEnd::Released => "given back",
        sojourn_protocol::machines::MachineEnd::Itself => "ended by itself",
        sojourn_protocol::machines::MachineEnd::Failed => "failed",
    });
    let state = match (end, view.machine.ended_at, view.host) {
        (Some(end), Some(_), _) => end,
        (None, Some(_), _) => "ended",
        _ if view.draining => "drains",
        (_, None, Some(_)) => "works",
        (_, None, None) => "starts",
    };
    state.to_owned()
}

fn minutes(time: Millis) -> String {
    let minutes = time.0 / 60_000;
    if minutes < 120 { format!("{minutes} min") } else { format!("{} h", minutes / 60) }
}

/// The pools of types that may be bought, the cheapest first.
fn pools(
    offers: &Offers,
    settings: &Settings,
) -> Vec<(sojourn_fleet::cloud::Pool, sojourn_fleet::cloud::Quote)> {
    let admitted = offers.quotes.iter().filter(|(pool, _)| {
        offers.types.get(&pool.instance_type).is_some_and(|kind| settings.types.admit(kind))
    });
    let mut pools: Vec<_> = admitted.map(|(pool, quote)| (pool.clone(), *quote)).collect();
    pools.sort_by(|(a, one), (b, other)| {
        let price = |quote: &sojourn_fleet::cloud::Quote| quote.spot.unwrap_or(quote.on_demand);
        price(one).cmp(&price(other)).then_with(|| a.cmp(b))
    });
    pools
}

fn prices(offers: &Offers, settings: &Settings, shown: usize) -> String {
    let pools = pools(offers, settings);
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(["TYPE", "ZONE", "VCPUS", "MEMORY", "SLOTS", "SPOT", "ON DEMAND", "SHARE"]);
    for (pool, quote) in pools.iter().take(shown) {
        let Some(kind) = offers.types.get(&pool.instance_type) else { continue };
        let ratio = quote.spot.and_then(|spot| {
            spot.0
                .saturating_mul(100)
                .checked_div(quote.on_demand.0)
                .map(|ratio| format!("{ratio} %"))
        });
        table.add_row([
            pool.instance_type.clone(),
            pool.zone.clone(),
            kind.vcpus.to_string(),
            format!("{} GiB", kind.memory >> 30),
            settings.types.slots(kind).to_string(),
            quote.spot.map_or_else(|| "-".to_owned(), |spot| spot.to_string()),
            quote.on_demand.to_string(),
            ratio.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    for column in 2..=7 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let left = pools.len().saturating_sub(shown);
    let more =
        if left == 0 { String::new() } else { format!("\nPools that --all shows too: {left}") };
    format!("{table}{more}")
}

#[cfg(test)]
mod tests;
