//! A scenario file's text to the scenarios that it asks for: itself, or one for each case and each
//! combination of what varies.
//!
//! ```text
//!   [[case]] x [vary]      each row of the table is one scenario: the file with these keys set
//!   [drawn]  x [vary]      likewise, with the keys of each drawn fleet
//! ```
//!
//! No I/O: files that a scenario names are opened by the caller ([`super::Files`]).

use super::{
    check,
    drawn::{DrawnFleet, FleetKind, of_drawn},
    error::{ScenarioError, wrong},
    lines::meet,
    policy::Policy,
    scenario::Scenario,
    vary::{check_rows, combinations, of_cases, of_setting, of_vary, set},
    words::{hint, unknown},
};
use serde::{Deserialize, de::DeserializeOwned};
use sojourn_forms::{line_at, line_of};
use std::fmt;
use toml::{Table, Value};

/// The scenarios that a file asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// The scenarios, in the order of the table's rows.
    pub rows: Vec<Row>,
    /// The standard that makespans are compared with.
    pub normalise: Normalise,
}

/// One scenario of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The name of the row's case and the values that vary in it: empty where the file is but one scenario.
    pub label: String,
    /// The kind of a drawn fleet.
    pub kind: Option<FleetKind>,
    /// The row's scenario.
    pub scenario: Scenario,
}

/// The standard that makespans are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Normalise {
    /// The lower bound.
    #[default]
    Bound,
    /// The same row under this policy.
    Policy(Policy),
    /// The first row under the same policy.
    First,
}

impl fmt::Display for Normalise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Normalise::Bound => f.write_str("bound"),
            Normalise::First => f.write_str("first row"),
            Normalise::Policy(policy) => policy.fmt(f),
        }
    }
}

/// Reads a file's text.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn read(text: &str) -> Result<Study, ScenarioError> {
    read_with(text, &[])
}

/// Reads a text in TOML, with complaints in the words of scenario files.
///
/// # Errors
/// The first thing that is wrong with it, with its line.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, ScenarioError> {
    toml::from_str(text).map_err(|error| said(text, error.span(), error.message()))
}

/// A complaint about a key of a text, with the line on which it stands.
#[must_use]
pub fn at_key(text: &str, path: &str, complaint: &str) -> ScenarioError {
    let line = line_of(text, path).map(|line| format!("line {line}: ")).unwrap_or_default();
    ScenarioError::Wrong(format!("{line}`{path}` {complaint}"))
}

/// As [`read`], with keys that every row has otherwise: `job.epochs=2`.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn read_with(text: &str, settings: &[String]) -> Result<Study, ScenarioError> {
    let overrides = settings.iter().map(|setting| of_setting(setting));
    let overrides = overrides.collect::<Result<Vec<_>, _>>()?;
    let (of_drawing, overrides): (Vec<_>, Vec<_>) =
        overrides.into_iter().partition(|(key, _)| key.starts_with("drawn."));
    let mut base: Table = parse(text)?;
    for (key, value) in &of_drawing {
        set(&mut base, key, value)?;
    }
    let varied = take(&mut base, "vary").map(of_vary).transpose()?.unwrap_or_default();
    let cases = take(&mut base, "case").map(of_cases).transpose()?.unwrap_or_default();
    let drawn = take(&mut base, "drawn").map(of_drawn).transpose()?.unwrap_or_default();
    check_rows(&varied, cases.len() + drawn.len())?;
    let normalise =
        take(&mut base, "normalise").as_ref().map(of_normalise).transpose()?.unwrap_or_default();
    // Once from the text, for the lines of what is wrong whatever varies.
    parse::<Scenario>(text)?;
    let no_case = cases.is_empty() && drawn.is_empty();
    let no_case = no_case.then(|| (String::new(), Table::new()));
    let cases = cases.into_iter().chain(no_case).map(|(name, keys)| (None, name, keys));
    let drawn = drawn.into_iter().map(|DrawnFleet { kind, name, keys }| (Some(kind), name, keys));
    let mut rows = Vec::new();
    for (kind, name, case) in cases.chain(drawn) {
        for combination in combinations(&varied) {
            let mut table = base.clone();
            let mut label = Vec::from_iter((!name.is_empty()).then(|| name.clone()));
            for (key, value) in &case {
                set(&mut table, key, value)?;
            }
            for (key, value) in &combination {
                set(&mut table, key, value)?;
                label.push(format!("{} {}", short(key), shown(value)));
            }
            for (key, value) in &overrides {
                set(&mut table, key, value)?;
            }
            let label = label.join(", ");
            let scenario = Scenario::deserialize(table)
                .map_err(|error| of_row(&label, &hint(error.message())))?;
            check::scenario(&scenario).map_err(|fault| {
                let set = combination.iter().map(|(key, _)| *key);
                let set = set.chain(case.keys().map(String::as_str));
                let mut set = set.chain(overrides.iter().map(|(key, _)| key.as_str()));
                // What the row says stands elsewhere in the file.
                let line = match set.any(|key| meet(key, &fault.path)) {
                    true => None,
                    false => line_of(text, &fault.path),
                };
                let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
                of_row(&label, &format!("{line}{}", fault.said))
            })?;
            rows.push(Row { label, kind, scenario });
        }
    }
    Ok(Study { rows, normalise })
}

fn of_row(label: &str, message: &str) -> ScenarioError {
    let place = if label.is_empty() { String::new() } else { format!("in the row `{label}`: ") };
    ScenarioError::Wrong(format!("{place}{message}"))
}

fn take(table: &mut Table, key: &str) -> Option<Value> {
    table.remove(key)
}

fn of_normalise(value: &Value) -> Result<Normalise, ScenarioError> {
    match value.as_str() {
        Some("bound") => Ok(Normalise::Bound),
        Some("first") => Ok(Normalise::First),
        Some(name) => {
            let known = ["bound", "first"].into_iter().chain(Policy::ALL.map(Policy::name));
            let policy = Policy::ALL.into_iter().find(|policy| policy.name() == name);
            policy.map(Normalise::Policy).ok_or_else(|| {
                let error = unknown("value", name, known);
                ScenarioError::Wrong(format!("`normalise`: {error}"))
            })
        }
        None => wrong("`normalise` must be `\"bound\"`, `\"first\"` or the name of a policy"),
    }
}

/// The last word of a key says enough, mostly.
fn short(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) if values.len() > 4 => format!("{} values", values.len()),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join("/"),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(value) => value.to_string(),
        Value::Datetime(_) | Value::Table(_) => "...".to_owned(),
    }
}

/// A message with its line.
fn said(text: &str, span: Option<std::ops::Range<usize>>, message: &str) -> ScenarioError {
    let message = hint(message);
    let Some(span) = span else { return ScenarioError::Wrong(message) };
    ScenarioError::Wrong(format!("line {}: {message}", line_at(text, span.start)))
}

#[cfg(test)]
mod tests {
    use super::{super::vary::MAX_ROWS, *};

    const SMALLEST: &str = "[[hosts]]\ncount = 2\n[job]\ntrials = 3\n";

    #[test]
    fn a_file_without_variation_is_one_row() {
        let study = read(SMALLEST).unwrap();
        assert_eq!(study.rows.len(), 1);
        assert_eq!(study.rows[0].scenario.host_count(), 2);
        assert_eq!(study.normalise, Normalise::Bound);
    }

    #[test]
    fn cases_and_what_varies_are_multiplied() {
        let text = format!(
            "normalise = \"randomized\"\n{SMALLEST}[vary]\n\"job.trials\" = [1, 2]\nhosts.0.slots = [1, 2, 3]\n\
             [[case]]\nname = \"small\"\njob.shards = 4\n[[case]]\njob.shards = 8\n"
        );
        let study = read(&text).unwrap();
        assert_eq!(study.normalise, Normalise::Policy(Policy::Randomized));
        let labels: Vec<&str> = study.rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!(labels.len(), 12);
        assert_eq!(labels[0], "small, slots 1, trials 1");
        assert_eq!(labels[11], "case 2, slots 3, trials 2");
        let job = study.rows[11].scenario.job.as_ref().unwrap();
        assert_eq!((job.trials, job.shards.or(0)), (Some(2), 8));
    }

    #[test]
    fn more_combinations_than_a_table_has_rows_are_refused_before_they_are_made() {
        let values = (1..=100).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
        let keys = ["job.trials", "job.epochs", "job.shards", "hosts.count", "hosts.slots"];
        let vary: String = keys.iter().map(|key| format!("{key} = [{values}]\n")).collect();
        let text = format!("{SMALLEST}[vary]\n{vary}");
        let error = read(&text).unwrap_err().to_string();
        assert_eq!(error, "`vary` and `case` have over 10,000 combinations");
        let allowed =
            format!("{SMALLEST}[vary]\njob.trials = [{values}]\njob.epochs = [{values}]\n");
        assert_eq!(read(&allowed).unwrap().rows.len(), MAX_ROWS);
        let cases = "[[case]]\njob.shards = 2\n[[case]]\njob.shards = 3\n";
        assert!(read(&format!("{allowed}{cases}")).is_err());
    }

    #[test]
    fn settings_go_over_cases_and_what_varies() {
        let text = format!("{SMALLEST}[[case]]\njob.shards = 4\n[vary]\njob.epochs = [1, 2]\n");
        let settings =
            ["job.epochs=7", "job.shards = 8", "server.policy=ltrp", "job.spread=\"depth\""];
        let study = read_with(&text, &settings.map(str::to_owned)).unwrap();
        assert_eq!(study.rows.len(), 2);
        for row in &study.rows {
            let job = row.scenario.job.as_ref().unwrap();
            assert_eq!((job.epochs, job.shards.or(0)), (Some(7), 8));
            assert_eq!(row.scenario.server.policy.0, [Policy::Ltrp]);
        }
        for (setting, wanted) in [
            ("job.epochs", "`job.epochs` is no setting: `key=value` is wanted"),
            ("job.epoch=3", "`epoch` is no known key; did you mean `epochs`?"),
            ("job.epochs=0", "in the row `case 1, epochs 1`: `job.epochs` must be from 1"),
            ("hosts.3.count=1", "`hosts` has only 1"),
        ] {
            let error = read_with(&text, &[setting.to_owned()]).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn what_is_unknown_or_wrong_is_named_with_its_line() {
        for (text, wanted) in [
            ("[[hosts]]\ncont = 2\n", "line 2: `cont` is no known key; did you mean `count`?"),
            (
                "[server]\npolicy = \"ltpr\"\n",
                "line 2: `ltpr` is no known value; did you mean `ltrp`?",
            ),
            ("seed = x\n", "line 1: "),
            (
                "[vary]\n\"job.trials\" = 3\n",
                "`vary.job.trials` must be a list of at least one value",
            ),
            ("[[hosts]]\ntflops = true\n", "line 2: a number of TFLOP/s, a list of them"),
            (
                "[server]\nassimilators = 0\n[[hosts]]\n[job]\n",
                "line 2: `server.assimilators` must be at least 1",
            ),
            ("[job]\ntrials = 2\n", "no hosts"),
            (
                "[[hosts]]\n[[hosts]]\nname = \"old\"\ntflops = [1, 1e-300]\n[job]\n",
                "line 4: `hosts.tflops` of group 2 (`old`) is 1e-300: from 1e-9 to 1000000000 is wanted",
            ),
            (
                "[[hosts]]\ntflops = 1e300\n[job]\n",
                "line 2: `hosts.tflops` is 1e300: from 1e-9 to 1000000000 is wanted",
            ),
            ("[[hosts]]\ndownload = 1e-9\n[job]\n", "line 2: `hosts.download` is 1e-9: from"),
            (
                "[[hosts]]\nspot.losses_per_hour = 1.5\n[job]\n",
                "line 2: `hosts.spot.losses_per_hour` is 1.5: a share from 0 to below 1",
            ),
            (
                "[[hosts]]\nhours = \"22:00-07:00 08:00\"\n[job]\n",
                "line 2: `hosts.hours` is \"22:00-07:00 08:00\"; hours are wanted",
            ),
            (
                "[[hosts]]\nexponential = { up = \"1us\", down = 5 }\n[job]\n",
                "line 2: `hosts.exponential` needs mean times",
            ),
            (
                "[[hosts]]\ncount = 2\ntrace = [[2, 0, 5]]\n[job]\n",
                "line 3: `hosts.trace` names host 2, and the group has the hosts 0 to 1",
            ),
            ("[[hosts]]\nnotice = \"1e3d\"\n[job]\n", "line 2: \"1e3d\" is no length of time"),
            ("[[hosts]]\nnotice = \"400_000d\"\n[job]\n", "line 2: \"400_000d\" is too large"),
            (
                "[[hosts]]\nspot = { losses_per_hour = 0.2 back = 5 }\n[job]\n",
                "line 2: a `,` is missing between two values, or between two keys",
            ),
            ("[[hosts]]\ntrace = [[0, 1 2]]\n[job]\n", "line 2: texts stand in quotes, and values"),
            ("[[hosts]]\nspot = 0.5\n[job]\n", "a table of keys is wanted, like `{ key = value }`"),
            ("[[hosts]]\ncount = -1\n[job]\n", "`-1`, a whole number from 0 to 4,294,967,295"),
            (
                "normalise = \"frist\"\n[[hosts]]\n[job]\n",
                "`normalise`: `frist` is no known value; did you mean `first`?",
            ),
            (
                "normalise = \"none\"\n[[hosts]]\n[job]\n",
                "known here: `bound`, `first`, `ltrp`, `milp`, `randomized`, `rollout`, `vector",
            ),
            (
                "[server]\npolicy = [\"ltrp\", \"rollout\", \"ltrp\"]\n[[hosts]]\n[job]\n",
                "line 2: `ltrp` is named twice: each policy is run once",
            ),
            ("[[hosts]]\n[job]\nreplicas = 1\n", "line 3: `job.replicas` goes with `placement"),
            (
                "[[hosts]]\ncount = 2\n[[jobs]]\n[[jobs]]\nplacement = \"pinned\"\nreplicas = 3\n",
                "line 6: `jobs.replicas` of job 2 is 3, and there are 2 hosts",
            ),
            ("[[hosts]]\n[job]\ntrials = 60_000\nepochs = 9999\n", "line 3: `job.trials` times"),
            (
                "[server]\nheartbeat = 1e-9\n[[hosts]]\n[job]\n",
                "line 2: `server.heartbeat` must be",
            ),
            (
                "[[hosts]]\npreempted.share = 0.95\n[job]\n",
                "line 2: `hosts.preempted.share` is 0.95: a share from 0 to 0.9 is wanted",
            ),
            (
                "[[hosts]]\nliar = \"old\"\n[job]\n",
                "line 2: `hosts.liar` goes with a job of `train = true`",
            ),
            (
                "[[hosts]]\npreempted.share = 0.1\nhours = \"22:00-07:00\"\n[job]\n",
                "line 2: `hosts.preempted` and `hosts.hours` can't be together",
            ),
            ("[[hosts]]\ncores = 0\n[job]\n", "line 2: `hosts.cores` must be at least 1"),
            ("[[hosts]]\ngpus = 2\ncores = 1\n[job]\n", "line 3: `hosts.cores` goes with `slots`"),
            (
                "[[hosts]]\ncontention = 0.5\n[job]\n",
                "line 2: `hosts.contention` goes with `cores`",
            ),
            (
                "[[hosts]]\ncores = 1\ncontention = -1\n[job]\n",
                "line 3: `hosts.contention` is -1: from 0 to 100 is wanted",
            ),
            ("[[hosts]]\nlate = 2\n[job]\n", "line 2: `hosts.late` is 2: from 0 to 1 is wanted"),
            ("[[hosts]]\n[job]\ncurve = 10\n", "line 3: `job.curve` goes with `train = true`"),
            ("[[hosts]]\n[job]\nskew = 0.3\n", "line 3: `job.skew` goes with `train = true`"),
            (
                "[[hosts]]\n[job]\nfile = \"f\"\ntrain = true\nskew = 0\n",
                "line 5: `job.skew` is 0: from 0.001 to 1000 is wanted",
            ),
            ("[[hosts]]\n[job]\nskew = \"nnoe\"\n", "line 3: a number is wanted, or \"none\""),
            (
                "[[hosts]]\n[job]\nset.seed = 3\n",
                "line 3: `job.set` needs a `file`, whose keys it sets",
            ),
            ("[[hosts]]\n", "no job"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
        let text = format!("{SMALLEST}[vary]\n\"job.trails\" = [3]\n");
        let error = read(&text).unwrap_err().to_string();
        assert!(error.starts_with("in the row `trails 3`: `trails` is no known key"), "{error}");
        let text = format!("{SMALLEST}[vary]\nhosts.tflops = [1, 0]\n");
        let error = read(&text).unwrap_err().to_string();
        assert!(error.starts_with("in the row `tflops 0`: `hosts.tflops` is 0: from"), "{error}");
    }
}
