//! The client's answers, for people.

use serde_json::Value;
use sojourn_client::{
    control::{
        Answer, CacheState, Direction, HeldState, LimitsState, Paused, Status, Task, Transfer,
        UnitStatus, UnusedName, Work,
    },
    limits::{Keepers, Limits},
};
use sojourn_protocol::figures::{bytes, bytes_per_second, duration, shards};
use std::fmt::Write as _;

/// The text, without the end of its last line.
pub(super) fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Status(status) => self::status(status),
        Answer::Limits(limits) => self::limits(limits),
        Answer::Cache(cache) => format!("cache: {}", self::cache(*cache)),
        Answer::Log(log) => {
            log.lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        }
        Answer::Refused(why) => why.clone(),
    }
}

fn status(status: &Status) -> String {
    let away = if status.server_away { ", which doesn't answer" } else { "" };
    let mut text = format!("host {} of {}{away}\n{}", status.host, status.server, slots(status));
    if let Some(UnusedName { given, enrolled }) = &status.unused_name {
        let _ = write!(
            text,
            "\nthe name `{given}` isn't used: the machine enrolled as `{enrolled}`, and has another name once it enrols anew"
        );
    }
    if status.draining {
        let _ = write!(text, "\n{DRAINING}");
    }
    if let Some(resting) = &status.resting {
        let (seconds, reason) = (resting.seconds_left, &resting.reason);
        let _ = write!(text, "\ntakes no work for {seconds} s yet, after: {reason}");
    }
    if let Some(reason) = &status.waiting {
        let _ = write!(text, "\nis given no work: {reason}");
    }
    for unknown in unknown(status) {
        let _ = write!(text, "\n{unknown}");
    }
    if let Some(failure) = &status.last_failure {
        let _ = write!(text, "\nthe last unit failed: {failure}");
    }
    if status.units.is_empty() {
        text.push_str("\nno units");
    }
    for unit in &status.units {
        let _ = write!(text, "\n  unit {}", unit.lease);
        if let Some(work) = &unit.work {
            let _ = write!(text, " ({})", self::work(work));
        }
        let _ = write!(text, ": {}", state(unit));
        if let Some(pace) = pace(unit) {
            let _ = write!(text, ", {pace}");
        }
        if let Some(left) = unit_left(status, unit) {
            let _ = write!(text, ", {left} left");
        }
        if let Some(usage) = &unit.usage {
            let _ = write!(text, "; {usage}");
        }
        if let Some(cpu_share) = cpu_share(unit) {
            let _ = write!(text, "; {cpu_share}");
        }
    }
    if let Some(stores) = status.stores.as_ref().filter(|stores| !stores.is_empty()) {
        let _ = write!(text, "\nthe server may send this machine to: {}", stores.join(", "));
    }
    if let Some(store) = &status.refused_store {
        let _ = write!(
            text,
            "\nthe server names another store, {store}: `sojourn client ctl accept-store {store}` if that is right"
        );
    }
    for transfer in &status.transfers {
        let _ = write!(text, "\n  {} {}: {}", way(transfer), what(transfer), so_far(transfer));
        if let Some(rate) = transfer.bytes_per_second {
            let _ = write!(text, ", {}", bytes_per_second(rate));
        }
    }
    if let Some(disk) = status.disk.filter(|disk| disk.is_low) {
        let (free, kept) = (bytes(disk.free), bytes(disk.reserve));
        let _ = write!(text, "\nthe disk has {free} free, and {kept} are kept: no unit is begun");
    }
    let _ = write!(text, "\ncache: {}", cache(status.cache));
    if let Some(month) = &status.month {
        let _ =
            write!(text, "\n{}: {} of blobs have come and gone", month.month, bytes(month.bytes));
        if let Some(until) = month.closed_until {
            let _ = write!(text, ", as many as may: nothing new is taken until {until}");
        }
    }
    let limits = pairs(&status.limits);
    let limits = if limits.is_empty() { "none".to_owned() } else { limits.join("; ") };
    let _ = write!(text, "\nlimits: {limits}");
    if let Some(keepers) = keepers(&status.keepers) {
        let _ = write!(text, "\n{keepers}");
    }
    text
}

/// A status in few words, for whom a line has to do.
pub(super) fn in_a_line(status: &Status) -> String {
    let away = if status.server_away { "; the server doesn't answer" } else { "" };
    let draining = if status.draining { "; ends soon" } else { "" };
    let units = status.units.iter().map(|unit| format!("; unit {}: {}", unit.lease, state(unit)));
    format!("{}{away}{draining}{}", slots(status), units.collect::<String>())
}

pub(super) const DRAINING: &str = "ends once what runs has ended";

/// `2 slots on cpu, computing 50 % of the time`.
pub(super) fn slots(status: &Status) -> String {
    let word = if status.slots == 1 { "slot" } else { "slots" };
    let now = match &status.paused {
        Some(paused) => self::paused(paused),
        None if !status.units.iter().any(is_running) => "nothing to compute".to_owned(),
        None if status.pace == 100 => "computing".to_owned(),
        None => format!("computing {} % of the time", status.pace),
    };
    let out = match status.out_of_use {
        0 => String::new(),
        out => format!(" ({out} out of use, after failures)"),
    };
    format!("{} {word} on {}{out}, {now}", status.slots, status.device)
}

/// Facts that the limits need and that aren't known, but the one for which it pauses, which the state says.
pub(super) fn unknown(status: &Status) -> impl Iterator<Item = String> {
    let said = status.paused.as_ref().map(|paused| paused.why.as_str());
    let others = status.unknown.iter().filter(move |unknown| Some(unknown.why.as_str()) != said);
    others.map(|unknown| format!("unknown, so that the safe side is taken: {}", unknown.why))
}

fn is_running(unit: &UnitStatus) -> bool {
    unit.state.progress().is_some()
}

fn paused(paused: &Paused) -> String {
    let mut text = format!("paused: {}", paused.why);
    match (&paused.until_local, paused.seconds_left) {
        (Some(until), Some(seconds)) => {
            let left = duration(seconds.saturating_mul(1000));
            let _ = write!(text, ", until {until} ({left})");
        }
        (_, Some(seconds)) => {
            let _ = write!(text, ", for {seconds} s yet");
        }
        (_, None) => {}
    }
    if paused.given_back {
        text.push_str("; its units are given back");
    }
    text
}

/// `job 1, trial 3`.
pub(super) fn trial(work: &Work) -> String {
    format!("job {}, trial {}", work.job, work.trial)
}

/// `job 1, trial 3, epoch 2, shard 1`: epochs count from 1 in texts.
pub(super) fn work(work: &Work) -> String {
    let task = match &work.task {
        Task::Train { epoch, shard, then } => {
            format!("epoch {}, {}", epoch.0 + 1, shards(*shard, then))
        }
        Task::Evaluate { epoch } => format!("evaluates epoch {}", epoch.0 + 1),
    };
    format!("{}, {task}", trial(work))
}

/// How far a unit is.
pub(super) fn state(unit: &UnitStatus) -> String {
    match unit.state {
        HeldState::Waiting => "waits for a slot".to_owned(),
        HeldState::Fetching { fetched } => match &unit.work {
            Some(work) => format!("{} of {} here", bytes(fetched), bytes(work.download)),
            None => format!("{} here", bytes(fetched)),
        },
        HeldState::Running { done, of } => format!("batch {done} of {of}"),
        HeldState::Awaiting { done, of, .. } => {
            format!("batch {done} of {of}, waits for a shard")
        }
        HeldState::Sending { sent } => format!("done, {} sent", bytes(sent)),
        HeldState::Finished => "done, to be reported".to_owned(),
    }
}

/// How many batches a unit does: `12.3/s`.
pub(super) fn pace(unit: &UnitStatus) -> Option<String> {
    let rate = unit.batches_per_second?;
    Some(if rate < 99.5 { format!("{rate:.1}/s") } else { format!("{rate:.0}/s") })
}

/// A unit's CPU share, where its job has a policy for that: `share 25 %, completing`.
pub(super) fn cpu_share(unit: &UnitStatus) -> Option<String> {
    let cpu_share = unit.cpu_share.as_ref()?;
    Some(format!("share {:.0} %, {}", cpu_share.cpu_share * 100.0, cpu_share.carried.list.name()))
}

/// How long a unit takes yet, where it moves.
pub(super) fn unit_left(status: &Status, unit: &UnitStatus) -> Option<String> {
    match unit.state {
        HeldState::Running { done, of } if status.paused.is_none() => {
            left(u64::from(of.saturating_sub(done)), unit.batches_per_second)
        }
        _ => None,
    }
}

/// How long a transfer takes yet, where it moves.
pub(super) fn transfer_left(transfer: &Transfer) -> Option<String> {
    left(transfer.of.saturating_sub(transfer.bytes), transfer.bytes_per_second)
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "two digits are shown, and nothing is left of less than none"
)]
fn left(count: u64, rate: Option<f64>) -> Option<String> {
    // Slower than one in a quarter of an hour stands still.
    let rate = rate.filter(|rate| *rate > 1e-3)?;
    Some(duration((count as f64 / rate * 1000.0) as u64))
}

pub(super) fn way(transfer: &Transfer) -> &'static str {
    match transfer.direction {
        Direction::Down => "down",
        Direction::Up => "up",
    }
}

/// The name of a transferred file.
pub(super) fn what(transfer: &Transfer) -> String {
    match transfer.lease {
        Some(lease) => format!("checkpoint of unit {lease}"),
        None => format!("blob {}", transfer.blob.short()),
    }
}

pub(super) fn so_far(transfer: &Transfer) -> String {
    format!("{} of {}", bytes(transfer.bytes), bytes(transfer.of))
}

fn limits(limits: &LimitsState) -> String {
    let mut text = pairs(&limits.limits).join("\n");
    if text.is_empty() {
        "no limits".clone_into(&mut text);
    }
    text
}

/// As they are given: `cpu=50`.
pub(super) fn pairs(limits: &Limits) -> Vec<String> {
    let Ok(serde_json::Value::Object(limits)) = serde_json::to_value(limits) else {
        return Vec::new();
    };
    let pairs = limits.into_iter().map(|(key, value)| match value {
        Value::String(text) => format!("{key}={text}"),
        Value::Object(by_hour) => format!("{key}={}", self::by_hour(&by_hour)),
        value => format!("{key}={value}"),
    });
    pairs.collect()
}

/// Values by the hour, as they are given: `{ "09:00-17:00" = 25, else = 100 }`.
fn by_hour(values: &serde_json::Map<String, Value>) -> String {
    let (other, hours): (Vec<_>, Vec<_>) = values.iter().partition(|(hours, _)| *hours == "else");
    let quote = |text: &str| match text.parse::<u64>() {
        Ok(_) => text.to_owned(),
        Err(_) => format!("\"{text}\""),
    };
    let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), quote);
    let hours = hours.into_iter().map(|(hours, ratio)| format!("\"{hours}\" = {}", value(ratio)));
    let other = other.into_iter().map(|(key, ratio)| format!("{key} = {}", value(ratio)));
    format!("{{ {} }}", hours.chain(other).collect::<Vec<_>>().join(", "))
}

/// By what processor time and memory are kept.
fn keepers(keepers: &Keepers) -> Option<String> {
    match (&keepers.groups, &keepers.why_none) {
        (Some(groups), _) => Some(format!("kept by control groups of {groups}")),
        (None, Some(why)) => Some(format!(
            "kept by the client itself, by rests between batches (the kernel's control groups aren't used: {why})"
        )),
        (None, None) => None,
    }
}

/// `5.0 GB of 21 GB, 12 shards`.
pub(super) fn cache(cache: CacheState) -> String {
    let shards = if cache.shards == 1 { "shard" } else { "shards" };
    let CacheState { used, limit, shards: count } = cache;
    format!("{} of {}, {count} {shards}", bytes(used), bytes(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> String {
        answer(&serde_json::from_str(line).unwrap())
    }

    #[test]
    fn a_status_says_what_runs_and_why_nothing_does() {
        let line = r#"{"status":{"host":"3","server":"http://a","server_away":false,"device":"cpu","slots":2,
            "pace":50,"draining":false,"units":[{"lease":7,"state":{"running":{"done":3,"of":9}}},
            {"lease":8,"state":{"fetching":{"fetched":10}}}],"limits":{"cpu":"50","not_on_battery":true},"disk":{"free":5,"reserve":9,"is_low":true},
            "keepers":{"groups":"version 1: cpu, memory"},
            "month":{"month":"2026-01","bytes":7,"closed_until":"2026-02-01"},"cache":{"used":5,"limit":100,"shards":1}}}"#;
        let text = "host 3 of http://a\n2 slots on cpu, computing 50 % of the time\n  unit 7: batch 3 of 9\n  \
            unit 8: 10 B here\nthe disk has 5 B free, and 9 B are kept: no unit is begun\ncache: 5 B of 100 B, 1 shard\n2026-01: 7 B of \
            blobs have come and gone, as many as may: nothing new is taken until 2026-02-01\nlimits: cpu=50; not_on_battery=true\n\
            kept by control groups of version 1: cpu, memory";
        assert_eq!(said(line), text);
        let Answer::Status(status) = serde_json::from_str(line).unwrap() else { panic!() };
        let short =
            "2 slots on cpu, computing 50 % of the time; unit 7: batch 3 of 9; unit 8: 10 B here";
        assert_eq!(in_a_line(&status), short);
        let line = r#"{"status":{"host":"3","server":"http://a","server_away":true,"device":"cpu","slots":1,
            "pace":0,"paused":{"reason":"owner","why":"paused by hand","seconds_left":60,"given_back":true},
            "draining":true,"units":[],"limits":{},"keepers":{"why_none":"no rights"},"cache":{"used":0,"limit":100,"shards":0}}}"#;
        let text = "host 3 of http://a, which doesn't answer\n1 slot on cpu, paused: paused by hand, for 60 s yet; \
            its units are given back\nends once what runs has ended\nno units\ncache: 0 B of 100 B, 0 shards\n\
            limits: none\nkept by the client itself, by rests between batches (the kernel's control groups aren't used: no rights)";
        assert_eq!(said(line), text);
    }

    #[test]
    fn the_stores_that_a_server_names_are_shown() {
        let with = |more: &str| {
            said(&format!(
                r#"{{"status":{{"host":"3","server":"http://a","server_away":false,"device":"cpu","slots":1,"pace":100,
                "draining":false,"units":[],"limits":{{}},"cache":{{"used":0,"limit":1,"shards":0}}{more}}}}}"#
            ))
        };
        assert!(!with("").contains("send this machine"));
        assert!(!with(r#","stores":[]"#).contains("send this machine"));
        let named = with(r#","stores":["https://a","https://b:9000"]"#);
        assert!(named.contains("may send this machine to: https://a, https://b:9000"), "{named}");
        let refused = with(r#","stores":["https://a"],"refused_store":"https://c""#);
        assert!(refused.contains("`sojourn client ctl accept-store https://c`"), "{refused}");
    }

    #[test]
    fn units_and_transfers_have_names_and_speeds() {
        let blob = "ab".repeat(32);
        let line = format!(
            r#"{{"status":{{"host":"3","server":"http://a","server_away":false,"device":"cpu","slots":2,"pace":100,
            "draining":false,"units":[{{"lease":7,"state":{{"running":{{"done":300,"of":900}}}},"work":{{"job":1,
            "trial":4,"task":{{"train":{{"epoch":1,"shard":3}}}},"download":5}},"batches_per_second":12.34,"usage":
            {{"cores":1.87,"memory":312000000,"read_per_second":1200000.0,"written_per_second":9.0,"loss":0.43125}},
            "share":{{"share":0.25,"carried":{{"list":"completing","attained":5}}}}}},
            {{"lease":9,"state":"waiting","work":{{"job":1,"trial":6,"task":{{"train":{{"epoch":0,"shard":3,
            "then":[0,2]}}}},"download":5}}}},{{"lease":8,"state":{{"fetching":{{"fetched":10}}}},"work":{{"job":1,"trial":5,"task":{{"evaluate":
            {{"epoch":0}}}},"download":4000}}}}],"transfers":[{{"direction":"down","blob":"{blob}","bytes":10,
            "of":4000,"bytes_per_second":1500.0}},{{"direction":"up","blob":"{blob}","lease":6,"bytes":1,"of":2}}],
            "limits":{{}},"cache":{{"used":5,"limit":100,"shards":1}}}}}}"#
        );
        let text = "host 3 of http://a\n2 slots on cpu, computing\n  \
            unit 7 (job 1, trial 4, epoch 2, shard 3): batch 300 of 900, 12.3/s, 49 s left; 1.9 cores, 312 MB of memory, reads 1.2 MB/s, loss 0.4313; share 25 %, completing\n  \
            unit 9 (job 1, trial 6, epoch 1, shards 3, 0 and 2): waits for a slot\n  \
            unit 8 (job 1, trial 5, evaluates epoch 1): 10 B of 4.0 kB here\n  \
            down blob abababababab: 10 B of 4.0 kB, 1.5 kB/s\n  up checkpoint of unit 6: 1 B of 2 B\n\
            cache: 5 B of 100 B, 1 shard\nlimits: none";
        assert_eq!(said(&line), text);
    }

    #[test]
    fn a_pause_says_until_when_and_what_is_unknown_is_said() {
        let with = |more: &str| {
            said(&format!(
                r#"{{"status":{{"host":"3","server":"http://a","server_away":false,"device":"cpu","slots":1,"pace":0,
                "draining":false,"units":[],"limits":{{}},"cache":{{"used":0,"limit":1,"shards":0}}{more}}}}}"#
            ))
        };
        let hours = with(
            r#","paused":{"reason":"hours","why":"not one of its hours","until":1767646800000,
            "until_local":"2026-01-05 22:00 CET","seconds_left":7200,"given_back":false}"#,
        );
        let text = "paused: not one of its hours, until 2026-01-05 22:00 CET (2.0 h)\n";
        assert!(hours.contains(text), "{hours}");
        let unknown = r#","unknown":[{"fact":"time_zone","why":"the zone isn't known"}]"#;
        let text = "\nunknown, so that the safe side is taken: the zone isn't known\n";
        assert!(with(unknown).contains(text), "{}", with(unknown));
        let paused = r#","paused":{"reason":{"unknown":"time_zone"},"why":"the zone isn't known","given_back":false}"#;
        let shown = with(&format!("{unknown}{paused}"));
        assert_eq!(shown.matches("the zone isn't known").count(), 1, "{shown}");
    }

    #[test]
    fn limits_are_shown_as_they_are_given() {
        assert_eq!(
            said(r#"{"limits":{"limits":{"hours":"22:00-06:00","slots":2}}}"#),
            "hours=22:00-06:00\nslots=2"
        );
        assert_eq!(
            said(
                r#"{"limits":{"limits":{"cpu":{"09:00-17:00":"25","else":"100"},"upload":{"else":"2MB/s","22:00-06:00":"9MB/s"}}}}"#
            ),
            "cpu={ \"09:00-17:00\" = 25, else = 100 }\nupload={ \"22:00-06:00\" = \"9MB/s\", else = \"2MB/s\" }"
        );
        assert_eq!(said(r#"{"limits":{"limits":{}}}"#), "no limits");
    }
}
