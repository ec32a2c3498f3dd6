//! `sojourn jobs --cost`: what jobs have cost on bought machines, and what each machine has.

use crate::cli::{
    render::{
        tables::{Column, Grid},
        text,
    },
    terminal::{connection::Connection, exit::Failure, simple::simple},
};
use sojourn_api::endpoints;
use sojourn_protocol::{
    machines::{CostsView, JobCost, MachineEnd, MachineView},
    money::MicroUsd,
    quantity::to_u64,
};

/// Ended machines that are shown, the last ones.
const ENDED_SHOWN: usize = 20;

pub(super) async fn run(connection: &Connection, json: bool) -> Result<(), Failure> {
    simple(connection, json, async |client| client.call(endpoints::Costs::request()).await, text)
        .await
}

fn text(costs: &CostsView) -> String {
    if costs.cost == MicroUsd(0) && costs.machines.is_empty() {
        return "no machines were bought: hosts that were lent cost nothing".to_owned();
    }
    let mut parts = vec![jobs(costs)];
    if !costs.machines.is_empty() {
        parts.push(machines(&costs.machines));
    }
    let saved = saved(costs.cost, costs.on_demand_cost);
    let rest = [("unused machines", costs.unused), ("deleted jobs", costs.deleted)];
    let rest: String = rest
        .into_iter()
        .filter(|(_, cost)| *cost > MicroUsd(0))
        .map(|(what, cost)| format!("; {what}: {cost}"))
        .collect();
    parts.push(format!(
        "{} in all, where on demand it would have been {}{saved}{rest}",
        costs.cost, costs.on_demand_cost
    ));
    parts.join("\n\n")
}

fn jobs(costs: &CostsView) -> String {
    let mut grid = Grid::new(&[
        ("JOB", Column::Number),
        ("NAME", Column::Name),
        ("TRIALS", Column::Number),
        ("COST", Column::Number),
        ("A TRIAL", Column::Number),
        ("ON DEMAND", Column::Number),
        ("SAVED", Column::Number),
        ("BUDGET", Column::Number),
    ]);
    for job in &costs.jobs {
        let JobCost { job: id, name, cost, on_demand_cost, budget, trials } = job;
        let each = MicroUsd(cost.0 / to_u64(trials.len()).max(1));
        grid.row([
            id.to_string(),
            name.clone(),
            trials.len().to_string(),
            cost.to_string(),
            each.to_string(),
            on_demand_cost.to_string(),
            percent_saved(*cost, *on_demand_cost),
            budget.map_or_else(|| "-".to_owned(), |budget| budget.to_string()),
        ]);
    }
    grid.text()
}

fn machines(all: &[MachineView]) -> String {
    let mut grid = Grid::new(&[
        ("MACHINE", Column::Name),
        ("INSTANCE", Column::Text),
        ("TYPE", Column::Text),
        ("ZONE", Column::Text),
        ("BOUGHT", Column::Text),
        ("AN HOUR", Column::Number),
        ("RAN", Column::Number),
        ("COST", Column::Number),
        ("HOST", Column::Text),
        ("STATE", Column::Text),
    ]);
    let (mut live, mut ended): (Vec<_>, Vec<_>) =
        all.iter().partition(|view| view.machine.ended_at.is_none());
    ended.sort_by_key(|view| view.machine.ended_at);
    let hidden = ended.len().saturating_sub(ENDED_SHOWN);
    live.extend(ended.into_iter().skip(hidden));
    for view in live {
        let machine = &view.machine;
        grid.row([
            machine.name.to_string(),
            machine.instance.clone(),
            machine.instance_type.clone(),
            machine.zone.clone(),
            machine.market.name().to_owned(),
            machine.price.to_string(),
            text::duration(view.run_time.0),
            view.cost.to_string(),
            view.host.map_or_else(|| "-".to_owned(), |host| host.to_string()),
            state(view).to_owned(),
        ]);
    }
    match hidden {
        0 => grid.text(),
        hidden => format!("{}\nand {hidden} that ended before: `--json` has them", grid.text()),
    }
}

fn state(view: &MachineView) -> &'static str {
    match (view.machine.ended_at, view.machine.end) {
        (None, _) if view.draining => "given back",
        (None, _) if view.host.is_none() => "starts",
        (None, _) => "runs",
        (Some(_), Some(MachineEnd::Interrupted)) => "interrupted",
        (Some(_), Some(MachineEnd::Failed)) => "failed",
        (Some(_), Some(MachineEnd::Released | MachineEnd::Itself) | None) => "ended",
    }
}

fn percent_saved(cost: MicroUsd, on_demand: MicroUsd) -> String {
    match on_demand.saturating_sub(cost).0.saturating_mul(100).checked_div(on_demand.0) {
        Some(percent) => format!("{percent} %"),
        None => "-".to_owned(),
    }
}

fn saved(cost: MicroUsd, on_demand: MicroUsd) -> String {
    match on_demand.0 {
        0 => String::new(),
        _ => format!(" ({} saved)", percent_saved(cost, on_demand)),
    }
}
