//! From limits and facts to a pace: pure, and the same for the same.

use super::{ByHour, Fact, Facts, Limits, Program, cgroup::Quota};
use serde::{Deserialize, Serialize};
use sojourn_protocol::trainer::Pace;
use std::{fmt, time::Duration};

/// The kind of processor that a slot computes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The machine's cores.
    Cpu,
    /// The machine's GPUs.
    Gpu,
}

/// The decision that follows from the limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaceDecision {
    /// Compute for these shares of the time, above 0.
    Run(Paces),
    /// Don't compute.
    Pause {
        /// The reason for the pause.
        reason: Reason,
    },
}

/// The shares of the time in which slots compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paces {
    /// The pace of slots on the machine's cores.
    pub cpu: Pace,
    /// The pace of slots on GPUs.
    pub gpu: Pace,
}

impl Paces {
    /// Nothing computes.
    pub const PAUSED: Self = Self { cpu: Pace::PAUSED, gpu: Pace::PAUSED };

    /// The pace of slots of a kind.
    #[must_use]
    pub const fn of(self, kind: Kind) -> Pace {
        match kind {
            Kind::Cpu => self.cpu,
            Kind::Gpu => self.gpu,
        }
    }
}

/// Why a machine doesn't compute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The machine's owner has paused it.
    Owner,
    /// The hour isn't one of the machine's hours.
    Hours,
    /// The machine runs on its battery.
    Battery,
    /// The machine was used within so many minutes.
    InUse(u32),
    /// This program runs.
    Program(String),
    /// A fact isn't known that a limit needs.
    Unknown(Fact),
    /// The file with the owner's commands can't be read, so that the owner may have paused the machine.
    CommandsUnknown,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner => f.write_str("paused by hand"),
            Self::Hours => f.write_str("not one of its hours"),
            Self::Battery => f.write_str("the machine runs on its battery"),
            Self::InUse(minutes) => write!(f, "the machine was used within {minutes} minutes"),
            Self::Program(name) => write!(f, "`{name}` runs"),
            Self::Unknown(fact) => f.write_str(fact.unknown()),
            Self::CommandsUnknown => f.write_str(
                "the file `owner.json` can't be read, so that the owner may have paused this machine; `sojourn client ctl resume` \
                 says that it may compute",
            ),
        }
    }
}

/// The mechanism that enforces the share of processor time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeper {
    /// The trainers, by rests between their batches.
    Pace,
    /// The kernel, by a quota of all of them together.
    Quota,
}

/// Decides, by the limits, about a machine of which these facts are known.
#[must_use]
pub fn decide(limits: &Limits, facts: &Facts, keeper: Keeper) -> PaceDecision {
    let limits = &limits.at(facts.local);
    match against(limits, facts) {
        Some(reason) => PaceDecision::Pause { reason },
        None => PaceDecision::Run(Paces {
            cpu: pace(limits, Kind::Cpu, keeper),
            gpu: pace(limits, Kind::Gpu, keeper),
        }),
    }
}

/// The quota that the limits come to on a machine with so many cores: the share of those that the owner allows.
/// None where that is all there is.
pub(super) fn quota(limits: &Limits, cores: u32) -> Option<Quota> {
    let allowed = limits.threads.map_or(cores, |threads| threads.clamp(1, cores.max(1)));
    let ratio = limits.cpu.as_ref().map_or(100, |ratio| u64::from(ratio.lowest().get()));
    (ratio < 100 || allowed < cores).then(|| Quota(u64::from(allowed).saturating_mul(ratio)))
}

/// The cores of a machine that the owner allows.
pub(super) fn allowed(limits: &Limits, cores: u32) -> u32 {
    limits.threads.map_or(cores, |allowed| allowed.min(cores))
}

/// Threads of a unit that pins none: the slots share the cores, or what the owner allows of them.
pub(super) fn free_threads(slots: u32, limits: &Limits, cores: u32) -> u32 {
    let cores = allowed(limits, cores);
    cores.checked_div(slots).unwrap_or(1).max(1)
}

fn against(limits: &Limits, facts: &Facts) -> Option<Reason> {
    if let Some(hours) = &limits.hours {
        match facts.local {
            None => return Some(Reason::Unknown(Fact::TimeZone)),
            Some(local) if !hours.contain(local) => return Some(Reason::Hours),
            Some(_) => {}
        }
    }
    if limits.not_on_battery == Some(true) {
        match facts.on_battery {
            None => return Some(Reason::Unknown(Fact::Battery)),
            Some(true) => return Some(Reason::Battery),
            Some(false) => {}
        }
    }
    if let Some(minutes) = limits.idle_minutes {
        match facts.idle {
            None => return Some(Reason::Unknown(Fact::LastUse)),
            Some(idle) if idle < Duration::from_secs(60).saturating_mul(minutes) => {
                return Some(Reason::InUse(minutes));
            }
            Some(_) => {}
        }
    }
    let programs = limits.pause_while.as_ref()?;
    match &facts.program {
        Program::Unknown => Some(Reason::Unknown(Fact::Programs)),
        Program::Runs(name) if programs.names(name) => Some(Reason::Program(name.clone())),
        Program::Runs(_) | Program::None => None,
    }
}

fn pace(limits: &Limits, kind: Kind, keeper: Keeper) -> Pace {
    let gpu = limits.gpu.as_ref().filter(|_| kind == Kind::Gpu);
    // A quota counts processor time, which says nothing of a GPU's.
    let cpu = limits.cpu.as_ref().filter(|_| keeper == Keeper::Pace || kind == Kind::Gpu);
    let ratios = cpu.into_iter().chain(gpu).map(ByHour::lowest);
    let ratio = ratios.min().and_then(|ratio| Pace::percent(ratio.get()));
    ratio.unwrap_or(Pace::FULL)
}

#[cfg(test)]
mod tests {
    use super::{super::unknown_facts, *};
    use jiff::civil::date;

    fn limits(text: &str) -> Limits {
        toml::from_str(text).unwrap()
    }

    fn paused(limits: &Limits, facts: &Facts) -> Option<Reason> {
        match decide(limits, facts, Keeper::Pace) {
            PaceDecision::Run(_) => None,
            PaceDecision::Pause { reason } => Some(reason),
        }
    }

    fn run(cpu: u8, gpu: u8) -> PaceDecision {
        let pace = |percent| Pace::percent(percent).unwrap();
        PaceDecision::Run(Paces { cpu: pace(cpu), gpu: pace(gpu) })
    }

    /// A machine against which everything speaks.
    fn worst() -> Facts {
        Facts {
            local: Some(date(2026, 1, 5).at(12, 0, 0, 0)),
            idle: Some(Duration::ZERO),
            on_battery: Some(true),
            program: Program::Runs("steam".to_owned()),
        }
    }

    #[test]
    fn without_limits_units_run_whatever_the_machine_does() {
        let decision = decide(&Limits::default(), &worst(), Keeper::Pace);
        assert_eq!(decision, PaceDecision::Run(Paces { cpu: Pace::FULL, gpu: Pace::FULL }));
    }

    #[test]
    fn a_fact_that_a_limit_needs_and_that_is_not_known_causes_a_pause() {
        for (text, fact) in [
            ("hours = '00:00-24:00'", Fact::TimeZone),
            ("not_on_battery = true", Fact::Battery),
            ("idle_minutes = 5", Fact::LastUse),
            ("pause_while = ['steam']", Fact::Programs),
        ] {
            let needs = limits(text);
            assert_eq!(paused(&needs, &Facts::default()), Some(Reason::Unknown(fact)), "{text}");
            assert_eq!(unknown_facts(&needs, &Facts::default()), [fact], "{text}");
            assert_eq!(unknown_facts(&needs, &worst()), [], "{text}");
        }
        let none = limits("cpu = 50\nnot_on_battery = false");
        assert_eq!(unknown_facts(&none, &Facts::default()), []);
        assert_eq!(paused(&none, &Facts::default()), None);
    }

    #[test]
    fn percentages_by_the_hour_follow_the_clock_and_without_one_the_lowest_holds() {
        let by_hour = limits(
            "cpu = { '09:00-17:00' = 25, else = 80 }\ngpu = { '12:00-13:00' = 10, else = 100 }",
        );
        let at = |hour| {
            let local = Some(date(2026, 1, 5).at(hour, 0, 0, 0));
            decide(&by_hour, &Facts { local, ..Facts::default() }, Keeper::Pace)
        };
        assert_eq!(at(8), run(80, 80));
        assert_eq!(at(9), run(25, 25));
        assert_eq!(at(12), run(25, 10));
        assert_eq!(decide(&by_hour, &Facts::default(), Keeper::Pace), run(25, 10));
        assert_eq!(unknown_facts(&by_hour, &Facts::default()), [Fact::TimeZone]);
    }

    #[test]
    fn hours_hold_at_once_after_the_clock_has_jumped_either_way() {
        let nights = limits("hours = 'mon-fri 22:00-06:00'");
        let at = |day, hour| Facts { local: Some(date(2026, 1, day).at(hour, 0, 0, 0)), ..worst() };
        // Monday is the 5th.
        for (day, hour, runs) in [
            (5, 22, true),
            (5, 12, false),
            (6, 5, true),
            (6, 6, false),
            (5, 23, true),
            (11, 23, false),
            (10, 5, true),
        ] {
            assert_eq!(paused(&nights, &at(day, hour)).is_none(), runs, "{day} {hour}");
        }
    }

    #[test]
    fn batteries_users_and_programs_pause_where_the_owner_says_so() {
        let battery = limits("not_on_battery = true");
        assert_eq!(paused(&battery, &worst()), Some(Reason::Battery));
        assert_eq!(paused(&battery, &Facts { on_battery: Some(false), ..worst() }), None);
        assert_eq!(paused(&limits("not_on_battery = false"), &worst()), None);

        let idle = limits("idle_minutes = 5");
        let since = |seconds| Facts { idle: Some(Duration::from_secs(seconds)), ..worst() };
        assert_eq!(paused(&idle, &since(299)), Some(Reason::InUse(5)));
        assert_eq!(paused(&idle, &since(300)), None);

        let steam = limits("pause_while = 'blender, steam'");
        assert_eq!(paused(&steam, &worst()), Some(Reason::Program("steam".to_owned())));
        assert_eq!(paused(&limits("pause_while = 'blender'"), &worst()), None);
    }

    #[test]
    fn percentages_are_of_what_slots_compute_on_and_the_lower_holds_on_a_gpu() {
        let decide = |text: &str| decide(&limits(text), &Facts::default(), Keeper::Pace);
        assert_eq!(decide("cpu = 50\ngpu = 30"), run(50, 30));
        assert_eq!(decide("cpu = 50\ngpu = 80"), run(50, 50));
        assert_eq!(decide("gpu = 80"), run(100, 80));
    }

    #[test]
    fn a_cpu_quota_replaces_the_pace_except_for_pauses_and_gpus() {
        let decide = |text: &str| decide(&limits(text), &worst(), Keeper::Quota);
        assert_eq!(decide("cpu = 50\ngpu = 80"), run(100, 50));
        let paused = decide("cpu = 50\nnot_on_battery = true");
        assert_eq!(paused, PaceDecision::Pause { reason: Reason::Battery });
    }

    #[test]
    fn a_quota_is_a_ratio_of_the_cores_that_the_owner_allows() {
        for (text, cores, wanted) in [
            ("", 8, None),
            ("cpu = 100", 8, None),
            ("threads = 8", 8, None),
            ("threads = 99", 8, None),
            ("cpu = 50", 8, Some(400)),
            ("threads = 3", 8, Some(300)),
            ("threads = 3\ncpu = 10", 8, Some(30)),
            ("cpu = 1", 1, Some(1)),
        ] {
            assert_eq!(quota(&limits(text), cores), wanted.map(Quota), "{text}");
        }
    }

    #[test]
    fn slots_share_what_the_owner_allows_of_the_cores() {
        for (slots, text, threads) in [
            (1, "threads = 1", 1),
            (64, "threads = 2", 1),
            (1, "threads = 65536", 8),
            (1, "", 8),
            (3, "", 2),
            (2, "threads = 6", 3),
        ] {
            assert_eq!(free_threads(slots, &limits(text), 8), threads, "{slots} {text}");
        }
    }

    #[test]
    fn every_limit_is_read_shown_and_refused_by_name() {
        let text = "slots = 2\nthreads = 4\ncpu = \"50\"\ngpu = \"30\"\ndisk = \"20GiB\"\ndisk_reserve = \"5GB\"\ndownload = \"2MB/s\"\n\
            upload = \"1MB/s\"\nhours = \"22:00-06:00\"\nidle_minutes = 5\nnot_on_battery = true\n\
            pause_while = \"steam, blender\"\nnice = \"19\"\ngive_back_after = \"5min\"\nmemory = \"8GiB\"\n\
            gpu_memory = \"50%\"\nmonthly = \"100GB\"\ncgroup = false\n";
        let all = limits(text);
        let shown = serde_json::to_value(&all).unwrap();
        assert_eq!(shown.as_object().unwrap().len(), 18);
        assert_eq!(serde_json::from_value::<Limits>(shown).unwrap(), all);
        let error = toml::from_str::<Limits>("cpus = 50").unwrap_err().to_string();
        assert!(error.contains("cpus"), "{error}");
        let error = toml::from_str::<Limits>("cpu = 0").unwrap_err().to_string();
        assert!(error.contains("1 to 100 percent"), "{error}");
    }
}
