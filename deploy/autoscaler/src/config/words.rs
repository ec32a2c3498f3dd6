//! The meaning of a file in sentences, for `sojourn-autoscaler check`.

use super::Config;
use sojourn_fleet::settings::{Markets, Types};
use std::fmt::Display;

/// The sentences, one a line.
#[must_use]
pub fn words(config: &Config) -> Vec<String> {
    let settings = &config.settings;
    let limits = &settings.limits;
    let times = &settings.times;
    let mut lines = vec![format!(
        "Fleet `{}` works for {}, and is planned anew every {}.",
        config.fleet, config.server, times.interval
    )];
    let mut most = vec![format!("{} machines", limits.machines)];
    most.extend(limits.vcpus.map(|vcpus| format!("{vcpus} virtual processors")));
    most.extend(limits.hourly.map(|price| format!("{price} an hour")));
    lines.push(format!("At a time it has at most {}.", list(&most)));
    lines.push(match (limits.total, limits.job) {
        (None, None) => "What it spends in all isn't limited, but for budgets of jobs.".to_owned(),
        (Some(total), None) => format!("In all it spends at most {total}."),
        (None, Some(job)) => format!("A job costs at most {job}, or its budget."),
        (Some(total), Some(job)) => {
            format!("In all it spends at most {total}, and at most {job} for a job, or its budget.")
        }
    });
    lines.push(types(&settings.types));
    lines.extend(markets(&settings.markets));
    if settings.markets.spot {
        lines.push(format!(
            "{} % of spot machines are expected to be taken back in an hour, until more is known.",
            settings.interruptions / 10
        ));
    }
    lines.push(format!(
        "A machine that hasn't enrolled {} after its launch is ended; one without work ends itself after {}.",
        times.enrol, config.machine.idle
    ));
    lines.push(format!(
        "A machine that is given back has {} to hand over what it has trained.",
        times.drain
    ));
    lines.push(config.metrics.map_or_else(
        || "Metrics aren't served.".to_owned(),
        |address| format!("Metrics are served at http://{address}/metrics."),
    ));
    lines
}

fn list<T: Display>(parts: &[T]) -> String {
    let mut text = String::new();
    for (index, part) in parts.iter().enumerate() {
        let separator = match index {
            0 => "",
            last if last + 1 == parts.len() => " and ",
            _ => ", ",
        };
        text = format!("{text}{separator}{part}");
    }
    text
}

fn types(types: &Types) -> String {
    let mut which = if types.names.is_empty() {
        "Types that the cloud offers".to_owned()
    } else {
        format!("The types {}", list(&types.names))
    };
    if !types.except.is_empty() {
        which = format!("{which} but {}", list(&types.except));
    }
    let mut ranges = Vec::new();
    let open = |end: u64, most: u64| if end == most { "more".to_owned() } else { end.to_string() };
    if types.vcpus != (1, u32::MAX) {
        let (least, most) = types.vcpus;
        let most = open(most.into(), u32::MAX.into());
        ranges.push(format!("{least} to {most} virtual processors"));
    }
    if types.memory != (0, u64::MAX) {
        let (least, most) = types.memory;
        ranges.push(format!(
            "{} to {} MiB of memory",
            least >> 20,
            open(most >> 20, u64::MAX >> 20)
        ));
    }
    match types.gpus {
        (0, u32::MAX) => {}
        (_, 0) => ranges.push("no GPU".to_owned()),
        (least, most) => {
            ranges.push(format!("{least} to {} GPUs", open(most.into(), u32::MAX.into())));
        }
    }
    if !ranges.is_empty() {
        which = format!("{which} with {}", list(&ranges));
    }
    let slots = types.vcpus_per_slot.map_or_else(
        || "a machine has one slot, or one for each GPU".to_owned(),
        |vcpus| {
            format!("a machine has a slot for every {vcpus} virtual processors, or for each GPU")
        },
    );
    format!("{which} are bought; {slots}.")
}

fn markets(markets: &Markets) -> Vec<String> {
    if !markets.spot {
        return vec!["All machines are bought on demand.".to_owned()];
    }
    let mut lines = vec![format!(
        "Spot machines are bought, at no more than {} % of the price on demand.",
        markets.max_spot_percent
    )];
    if markets.floor > 0 {
        lines.push(format!(
            "While there is work, so many machines are on demand instead: {}.",
            markets.floor
        ));
    }
    lines.push(if markets.fallback {
        format!(
            "Where none can be had for {}, machines are bought on demand, and replaced once spot machines can be had for {}.",
            markets.fallback_after, markets.return_after
        )
    } else {
        "Where none can be had, work waits.".to_owned()
    });
    lines.push(if markets.replace_percent == 0 {
        "No machine is replaced by a cheaper one.".to_owned()
    } else {
        format!(
            "Up to {} % of the machines are replaced at a time where cheaper ones pay for their start.",
            markets.replace_percent
        )
    });
    lines
}
