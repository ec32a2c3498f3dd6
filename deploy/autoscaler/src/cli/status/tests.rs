//! The lines that `status` prints of machines and prices.

use super::*;
use sojourn_fleet::{
    cloud::{InstanceType, Pool, Quote},
    limits::Limits,
};
use sojourn_protocol::{
    machines::{MachineEnd, MachineReport, Market},
    money::MicroUsd,
    time::UnixMillis,
};

fn view(name: &str) -> MachineView {
    MachineView {
        machine: MachineReport {
            name: name.parse().unwrap(),
            instance: "i-1".into(),
            instance_type: "c.large".into(),
            zone: "eu-1a".into(),
            market: Market::Spot,
            price: MicroUsd(30_000),
            on_demand_price: MicroUsd(100_000),
            launched_at: UnixMillis(0),
            ended_at: None,
            end: None,
        },
        host: None,
        run_time: Millis::from_secs(3600),
        cost: MicroUsd(30_000),
        draining: false,
    }
}

fn costs() -> CostsView {
    let mut ended = view("m-2");
    ended.machine.ended_at = Some(UnixMillis(1));
    ended.machine.end = Some(MachineEnd::Interrupted);
    CostsView {
        at: UnixMillis(0),
        cost: MicroUsd(60_000),
        on_demand_cost: MicroUsd(200_000),
        unused: MicroUsd(10_000),
        deleted: MicroUsd(0),
        jobs: Vec::new(),
        machines: vec![view("m-1"), ended],
    }
}

#[test]
fn the_summary_says_what_is_saved() {
    let lines = summary(&costs(), &DemandView::default());
    assert_eq!(lines[0], "0 units run and 0 wait; machines cost $0.03 an hour.");
    assert!(
        lines[1].starts_with("In all $0.06 were spent, 70 % less than the $0.20 "),
        "{lines:?}"
    );
}

#[test]
fn machines_are_listed_with_their_state() {
    let table = machines(&costs()).to_string();
    let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(
        rows[1],
        ["m-1", "c.large", "eu-1a", "spot", "$0.03", "60", "min", "$0.03", "starts"]
    );
    assert_eq!(rows[2].last(), Some(&"back"));
}

#[test]
fn the_cheapest_pools_come_first() {
    let mut offers = Offers::default();
    for (name, spot) in [("a.large", None), ("b.large", Some(40_000)), ("c.large", Some(30_000))] {
        let kind =
            InstanceType { name: name.into(), vcpus: 2, memory: 4 << 30, gpus: 0, gpu_memory: 0 };
        offers.types.insert(name.into(), kind);
        let pool = Pool { region: "eu-1".into(), zone: "eu-1a".into(), instance_type: name.into() };
        let quote = Quote { spot: spot.map(MicroUsd), on_demand: MicroUsd(100_000) };
        offers.quotes.insert(pool, quote);
    }
    let limits = Limits { machines: 1, vcpus: None, hourly: None, total: None, job: None };
    let text = prices(&offers, &Settings::new(limits), 2);
    let rows: Vec<&str> = text.lines().collect();
    assert!(
        rows[1].trim_start().starts_with("c.large") && rows[1].trim_end().ends_with("30 %"),
        "{text}"
    );
    assert_eq!(rows.last(), Some(&"Pools that --all shows too: 1"));
}
