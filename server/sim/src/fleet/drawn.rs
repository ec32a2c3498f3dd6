//! `[drawn]`: fleets and jobs by chance, each a row of the table, so that policies are compared where nobody chose the case.
//!
//! A fleet is of one kind, which says what makes it hard. Everything else is drawn: how many hosts of which speeds, lines where
//! bytes take time, trials of which costs, what is known of speeds beforehand. The same seed draws the same fleets, and more of
//! them begin with those of fewer.

use super::{error::ScenarioError, words::hint};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    quantity::{SaturatingFrom as _, to_usize},
    seeds,
};
use std::fmt::{self, Write as _};
use toml::{Table, Value};

/// Kinds of drawn fleets, by the thing that makes them hard to plan for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FleetKind {
    /// Hosts of very different speeds; bytes are free.
    Speeds,
    /// Hosts on very different lines.
    Lines,
    /// Caches that hold a few shards.
    Caches,
    /// Machines that are taken away, with and without their caches.
    Losses,
    /// Hosts that come and go.
    Absences,
    /// Several jobs, some of them urgent.
    Jobs,
    /// Shards that are pinned to some hosts.
    Replicas,
    /// Nothing is known of speeds beforehand.
    Unknown,
}

impl FleetKind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Speeds,
        Self::Lines,
        Self::Caches,
        Self::Losses,
        Self::Absences,
        Self::Jobs,
        Self::Replicas,
        Self::Unknown,
    ];

    /// The kind's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Speeds => "speeds",
            Self::Lines => "lines",
            Self::Caches => "caches",
            Self::Losses => "losses",
            Self::Absences => "absences",
            Self::Jobs => "jobs",
            Self::Replicas => "replicas",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for FleetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// `[drawn]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Drawn {
    fleets: u32,
    seed: u64,
    kinds: Vec<FleetKind>,
}

impl Default for Drawn {
    fn default() -> Self {
        Self { fleets: 40, seed: 1, kinds: FleetKind::ALL.to_vec() }
    }
}

/// The most fleets of a file.
const MAX_FLEETS: u32 = 10_000;

/// One drawn row: its kind, its name, and its keys.
#[derive(Debug)]
pub(super) struct DrawnFleet {
    pub(super) kind: FleetKind,
    pub(super) name: String,
    pub(super) keys: Table,
}

/// The fleets that `[drawn]` asks for.
pub(super) fn of_drawn(value: Value) -> Result<Vec<DrawnFleet>, ScenarioError> {
    let wrong = |text: &str| ScenarioError::Wrong(format!("`drawn`: {text}"));
    let drawn = Drawn::deserialize(value).map_err(|error| wrong(&hint(error.message())))?;
    if !(1..=MAX_FLEETS).contains(&drawn.fleets) {
        return Err(wrong("`fleets` must be from 1 to 10,000"));
    }
    if drawn.kinds.is_empty() {
        return Err(wrong("`kinds` is empty; at least one is wanted"));
    }
    let kinds = drawn.kinds.iter().cycle().zip(1..=drawn.fleets);
    kinds
        .map(|(kind, n)| {
            let text = draw(*kind, drawn.seed, n);
            let keys = toml::from_str(&text).map_err(|error| wrong(error.message()))?;
            Ok(DrawnFleet { kind: *kind, name: format!("{kind} {n}"), keys })
        })
        .collect()
}

/// A drawn fleet and its jobs, as the file would say them.
fn draw(kind: FleetKind, seed: u64, n: u32) -> String {
    let mut chance = Chance(seeds::stream("drawn-fleet", &[seed, n.into()]));
    let moves = match kind {
        FleetKind::Speeds => false,
        FleetKind::Jobs | FleetKind::Replicas | FleetKind::Unknown => chance.in_ten(5),
        _ => true,
    };
    let estimates = match kind {
        FleetKind::Unknown => "nothing",
        _ => chance.one_of(&["known", "prior"]),
    };
    // Another seed of the file is another one of each fleet.
    let mut text = format!("seed = {}\nestimates = \"{estimates}\"\n", n.saturating_mul(1000));
    let data = Data {
        shards: chance.one_of(&[4, 6, 8, 12]),
        megabytes: chance.one_of(&[50, 200, 800]),
        checkpoint: chance.one_of(&[1, 10, 40, 100]),
    };
    let groups = chance.between(1, 3);
    for group in 0..groups {
        text += &hosts(&mut chance, kind, moves.then_some(&data), group == 0);
    }
    let jobs = if kind == FleetKind::Jobs { chance.between(2, 4) } else { 1 };
    for _ in 0..jobs {
        text += &job(&mut chance, kind, &data, moves);
    }
    text
}

/// Sizes of a job's data.
struct Data {
    shards: u32,
    /// Of all training data.
    megabytes: u32,
    /// Megabytes of a checkpoint.
    checkpoint: u32,
}

/// A group of hosts. Of the first one some are always there.
fn hosts(chance: &mut Chance, kind: FleetKind, data: Option<&Data>, is_first: bool) -> String {
    let count = chance.between(2, 6);
    let tflops = chance.one_of(&["0.5", "0.75", "1", "1.5", "2", "3", "4", "6", "8", "12", "16"]);
    let mut text = format!("[[hosts]]\ncount = {count}\ntflops = {tflops}\nnoise = 0.1\n");
    if let Some(data) = data {
        let download = chance.one_of(&[5, 10, 20, 50, 100, 300, 1000]);
        let slower = chance.one_of(&[1, 2, 4, 8]);
        let upload = f64::from(download) / f64::from(slower);
        let _ = write!(text, "download = {download}\nupload = {upload}\nlatency = \"30ms\"\n");
        if kind == FleetKind::Caches {
            // Two or four shards, with two checkpoints.
            let shards = chance.one_of(&[2, 4]);
            let megabytes = shards * data.megabytes.div_ceil(data.shards) + 2 * data.checkpoint;
            let _ = writeln!(text, "cache = \"{megabytes}MB\"");
        }
    }
    let goes = match kind {
        FleetKind::Losses => true,
        FleetKind::Replicas | FleetKind::Unknown => chance.in_ten(3),
        _ => false,
    };
    if goes {
        text += match chance.between(1, 4) {
            1 => "spot = { losses_per_hour = 0.3, back = \"5min\" }\n",
            2 => "spot = { losses_per_hour = 0.8, back = \"2min\" }\n",
            3 => "exponential = { up = \"20min\", down = \"3min\" }\n",
            _ => "spot = { losses_per_hour = 0.5, back = \"3min\" }\nnotice = \"30s\"\n",
        };
    }
    if kind == FleetKind::Absences {
        text += match (is_first, chance.between(1, 3)) {
            (true, _) => "exponential = { up = \"20min\", down = \"2min\" }\n",
            (false, 1) => "hours = \"00:00-00:20\"\n",
            (false, 2) => "hours = \"00:10-23:00\"\n",
            (false, _) => "exponential = { up = \"10min\", down = \"10min\" }\nnotice = \"30s\"\n",
        };
    }
    text
}

fn job(chance: &mut Chance, kind: FleetKind, data: &Data, moves: bool) -> String {
    let table = if kind == FleetKind::Jobs { "[[jobs]]" } else { "[job]" };
    let trials = chance.between(6, 24);
    let costs =
        (0..trials).map(|_| chance.one_of(&["500", "1000", "2000", "4000", "8000", "16000"]));
    let costs = costs.collect::<Vec<_>>().join(", ");
    let (rows, epochs) = (chance.one_of(&[8000, 16_000, 32_000]), chance.between(2, 5));
    let Data { shards, megabytes, checkpoint } = data;
    let mut text = format!(
        "{table}\ncosts = [{costs}]\npick = \"cycle\"\nrows = {rows}\nepochs = {epochs}\nshards = {shards}\n"
    );
    if moves {
        let _ =
            write!(text, "data_bytes = \"{megabytes}MB\"\ncheckpoint_bytes = \"{checkpoint}MB\"\n");
    }
    if chance.in_ten(3) {
        let _ = writeln!(text, "valid_rows = {}", rows / 8);
    }
    match kind {
        FleetKind::Replicas => {
            text += "placement = \"pinned\"\n";
            let _ = writeln!(text, "replicas = {}", chance.between(1, 2));
        }
        FleetKind::Jobs => {
            let (priority, share) = (chance.one_of(&[0, 0, 1]), chance.one_of(&[1, 1, 3]));
            let at = chance.one_of(&["0s", "30s", "2min", "5min"]);
            let _ = write!(text, "priority = {priority}\nshare = {share}\nsubmitted = \"{at}\"\n");
        }
        _ => {}
    }
    text
}

struct Chance(ChaCha8Rng);

impl Chance {
    fn between(&mut self, least: u32, most: u32) -> u32 {
        least + seeds::below(&mut self.0, most - least + 1)
    }

    fn in_ten(&mut self, cases: u32) -> bool {
        seeds::below(&mut self.0, 10) < cases
    }

    /// One of several, of which there is at least one.
    fn one_of<T: Copy + Default>(&mut self, of: &[T]) -> T {
        let index = seeds::below(&mut self.0, u32::saturating_from(of.len()));
        of.get(to_usize(index)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let drawn = toml::from_str(text).unwrap();
        of_drawn(drawn).unwrap().into_iter().map(|fleet| fleet.name).collect()
    }

    #[test]
    fn kinds_take_turns_and_more_fleets_begin_with_those_of_fewer() {
        assert_eq!(names("fleets = 3"), ["speeds 1", "lines 2", "caches 3"]);
        let drawn = |fleets| {
            let value = toml::from_str(&format!("fleets = {fleets}\nkinds = [\"lines\"]")).unwrap();
            of_drawn(value).unwrap().into_iter().map(|fleet| fleet.keys).collect::<Vec<_>>()
        };
        let (few, many) = (drawn(3), drawn(5));
        assert_eq!(few, many[..3]);
        assert_ne!(few[0], few[1]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let said = |text: &str| of_drawn(toml::from_str(text).unwrap()).unwrap_err().to_string();
        assert_eq!(said("fleets = 0"), "`drawn`: `fleets` must be from 1 to 10,000");
        assert_eq!(said("kinds = []"), "`drawn`: `kinds` is empty; at least one is wanted");
        assert_eq!(said("fleet = 2"), "`drawn`: `fleet` is no known key; did you mean `fleets`?");
    }
}
