//! `sojourn hosts`: the machines, a line each; and taking those off the list that are gone.

mod forget;

use crate::cli::{
    render::{
        owners::{self, ONE_OWNER},
        tables::{Column, Grid},
        text,
    },
    terminal::{connection::Connection, exit::Failure, simple::show},
};
use sojourn_api::endpoints;
use sojourn_protocol::{
    figures,
    trainer::TRAINER_PROGRAM,
    view::{DeviceView, HostView},
};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print a JSON array.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Take machines off the list that are gone: as if the server had not heard of them for long. One that comes back has to enrol
    /// again.
    Forget(forget::Args),
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    if let Some(Action::Forget(args)) = &args.action {
        return forget::run(args).await;
    }
    let client = args.connection.client()?;
    let hosts = client.call(endpoints::Hosts::request()).await?;
    show(&hosts, args.json, |hosts| match hosts.is_empty() {
        true => no_hosts(&client.server()),
        false => table(hosts),
    })
}

/// The way to a first host.
fn no_hosts(server: &str) -> String {
    format!(
        "no hosts yet: a machine is one once it runs `sojourn client --server {server} --token-file FILE`, where FILE has a token of \
         `sojourn token new`; the server's own machine needs only `sojourn client --server {server}`"
    )
}

fn table(hosts: &[HostView]) -> String {
    let mut grid = Grid::new(&[
        ("HOST", Column::Number),
        ("NAME", Column::Name),
        ("OWNER", Column::Name),
        ("STATE", Column::Text),
        ("SEEN", Column::Text),
        ("SLOTS", Column::Number),
        ("DEVICES", Column::Text),
        ("LEASES", Column::Number),
        ("USED", Column::Number),
        ("RAN OUT", Column::Number),
        ("RELIABLE", Column::Number),
        ("TRUST", Column::Text),
        ("TRAINED", Column::Text),
        ("ESTIMATES", Column::Text),
        ("LAST ERROR", Column::Text),
    ]);
    for host in hosts {
        let running = host.leases.iter().filter(|lease| lease.running).count();
        grid.row([
            host.host.to_string(),
            host.name.clone(),
            text::owner(&host.owner),
            host.status().to_owned(),
            host.seen_at.map_or_else(|| "-".to_owned(), text::ago),
            format!("{running}/{}", host.slots),
            devices(host),
            host.leases.len().to_string(),
            host.used.to_string(),
            host.expired.to_string(),
            reliable(host),
            trust(host),
            text::duration(host.train_micros / 1000),
            estimates(host),
            text::first_line(host.last_error.as_deref().unwrap_or_default()),
        ]);
    }
    let mut lines = vec![grid.text()];
    if owners::are_of_one_owner(hosts) {
        lines.push(ONE_OWNER.to_owned());
    }
    lines.extend(alone(hosts));
    lines.extend(hosts.iter().filter_map(|host| {
        let reason = host.waiting.as_ref()?;
        Some(format!("host {} is given nothing: {reason}", host.host))
    }));
    lines.extend(hosts.iter().filter_map(copies));
    lines.join("\n")
}

/// A line about hosts whose numeric classes no other party offers, where a running job verifies results and there are other hosts.
fn alone(hosts: &[HostView]) -> Option<String> {
    let alone = hosts.iter().filter(|host| host.alone).map(|host| host.host.to_string());
    let alone: Vec<String> = alone.collect();
    let named = match &alone[..] {
        [] => return None,
        [_] if hosts.len() == 1 => return None,
        [host] => format!("host {host}"),
        several => format!("hosts {}", several.join(", ")),
    };
    Some(format!(
        "{named}: no other party offers the same numeric class, so no trial of a running job that verifies its results begins there"
    ))
}

/// Other machines were found with the identity of a host.
fn copies(host: &HostView) -> Option<String> {
    let found_at = host.copy_found_at?;
    let machines = figures::counted(host.copies, "other machine");
    let (host, ago) = (host.host, text::ago(found_at));
    Some(format!(
        "host {host}: {machines} had a copy of its identity, last {ago}, and had to enrol anew; an image of a machine must not have the \
         client's data folder"
    ))
}

/// The share of its deadlines that a host is expected to keep.
fn reliable(host: &HostView) -> String {
    host.reliability.map_or_else(|| "-".to_owned(), |ratio| format!("{} %", ratio / 10))
}

/// How many of a host's results were confirmed by other hosts, how many refuted, and how many hops taken in unverified.
fn trust(host: &HostView) -> String {
    let record = record(host);
    match host.verified_rate {
        // All, or one in so many.
        Some(1000..) => format!("{record}, all verified"),
        Some(rate) => format!("{record}, 1 in {} verified", 1000 / rate.max(1)),
        None => record,
    }
}

fn record(host: &HostView) -> String {
    let unverified = match host.unverified {
        0 => String::new(),
        hops => format!(", {hops} unverified"),
    };
    let verified = match (host.confirmed, host.refuted) {
        (0, 0) if host.stranger => "none confirmed".to_owned(),
        (0, 0) if host.unverified == 0 => "-".to_owned(),
        (confirmed, 0) => format!("{confirmed} confirmed"),
        (confirmed, refuted) => {
            let doubtful = match host.suspects.len() {
                0 => String::new(),
                doubtful => format!(", {doubtful} in doubt"),
            };
            format!("{confirmed} confirmed, {refuted} refuted{doubtful}")
        }
    };
    format!("{verified}{unverified}")
}

/// The error of the time estimates, on the device where it is largest.
fn estimates(host: &HostView) -> String {
    let worst = host.devices.iter().filter_map(|device| device.estimate_error).max();
    worst.map_or_else(|| "-".to_owned(), |off| format!("±{} %", off.div_ceil(10)))
}

/// A host's devices, with the instruction sets that reproducible units may be computed in, and engines that aren't our own
/// trainer; where it has several devices,
/// with the slots of each.
fn devices(host: &HostView) -> String {
    match &host.devices[..] {
        [] => "-".to_owned(),
        [device] => named(device),
        devices => {
            let each = |device: &DeviceView| format!("{} x {}", device.slots, named(device));
            devices.iter().map(each).collect::<Vec<_>>().join(", ")
        }
    }
}

fn named(device: &DeviceView) -> String {
    let sets: Vec<&str> = device.classes.iter().map(|of| of.instructions.as_str()).collect();
    let name = match sets[..] {
        [] => device.name.clone(),
        _ => format!("{} ({})", device.name, sets.join(", ")),
    };
    let engines = device.engines.iter().map(|engine| engine.name.as_str());
    let others: Vec<&str> = engines.filter(|engine| *engine != TRAINER_PROGRAM).collect();
    if others.is_empty() { name } else { format!("{name} by {}", others.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command_line::command;
    use serde_json::json;
    use sojourn_protocol::digest::Digest;

    #[test]
    fn the_way_to_a_first_host_is_one_that_the_program_accepts() {
        let said = no_hosts("http://10.0.0.7:8642");
        let commands: Vec<&str> = said.split('`').skip(1).step_by(2).collect();
        assert_eq!(commands.len(), 3, "{said}");
        for line in commands {
            let parsed = command().try_get_matches_from(line.split(' '));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn an_engine_that_is_not_the_own_trainer_stands_beside_its_device() {
        let named = |engines: &[&str]| {
            let engine = |name: &&str| json!({"name": name, "framework": "x 1", "models": ["mlp"]});
            let engines: Vec<_> = engines.iter().map(engine).collect();
            let class = Digest::of(b"class");
            let device = json!({
                "name": "cpu", "slots": 1, "numeric_class": class, "flops": 1e9,
                "engines": engines,
            });
            named(&serde_json::from_value(device).unwrap())
        };
        assert_eq!(named(&[]), "cpu");
        assert_eq!(named(&[TRAINER_PROGRAM]), "cpu");
        assert_eq!(named(&[TRAINER_PROGRAM, "numpy"]), "cpu by numpy");
    }
}
