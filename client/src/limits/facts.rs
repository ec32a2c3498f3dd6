//! The facts about the machine that limits need, and which of them aren't known.

use super::Limits;
use jiff::civil::DateTime;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The facts about the machine at one time. Where a limit needs a fact that isn't known, nothing computes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The local time.
    pub local: Option<DateTime>,
    /// For how long nobody has used keyboard, mouse or terminal.
    pub idle: Option<Duration>,
    /// Does the machine run on its battery?
    pub on_battery: Option<bool>,
    /// Whether a program runs for which the owner wants a pause.
    pub program: Program,
}

/// Whether a program runs for which the owner wants a pause.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Program {
    /// Unknown: the running programs can't be found out.
    #[default]
    Unknown,
    /// None of them runs.
    None,
    /// This one runs.
    Runs(String),
}

/// A fact that a limit needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// The local time, which `hours` needs, and each value by the hour.
    TimeZone,
    /// Whether the machine runs on its battery, which `not_on_battery` needs.
    Battery,
    /// When somebody last used the machine, which `idle_minutes` needs.
    LastUse,
    /// Which programs run, which `pause_while` needs.
    Programs,
    /// The free room of the disk, which `disk_reserve` needs.
    FreeDisk,
    /// The bytes that have come and gone in the month, which `monthly` needs.
    MonthBytes,
}

impl Fact {
    /// The fact is unknown, with the way to make it known.
    #[must_use]
    pub const fn unknown(self) -> &'static str {
        match self {
            Self::TimeZone => {
                "the machine's time zone isn't known (`TZ`, `/etc/localtime`): `timezone = \"Europe/Berlin\"`, or `\"UTC\"`, in \
                 client.toml says it"
            }
            Self::Battery => {
                "it isn't known if the machine runs on its battery, which `not_on_battery` needs"
            }
            Self::LastUse => {
                "it isn't known when somebody last used the machine, which `idle_minutes` needs: there is no terminal and no PS/2 \
                 controller to see it by"
            }
            Self::Programs => {
                "it isn't known which programs run, which `pause_while` needs: `/proc` doesn't show those of all users"
            }
            Self::FreeDisk => "the free room of the disk isn't known, which `disk_reserve` needs",
            Self::MonthBytes => {
                "the bytes of this month aren't known, which `monthly` needs, since `volume.json` is damaged: nothing new is taken in it; \
                 without that file they are counted from 0 at the next start"
            }
        }
    }
}

/// The facts that these limits need and that aren't known.
#[must_use]
pub fn unknown_facts(limits: &Limits, facts: &Facts) -> Vec<Fact> {
    let needs = [
        (Fact::TimeZone, limits.depends_on_hour() && facts.local.is_none()),
        (Fact::Battery, limits.not_on_battery == Some(true) && facts.on_battery.is_none()),
        (Fact::LastUse, limits.idle_minutes.is_some() && facts.idle.is_none()),
        (Fact::Programs, limits.pause_while.is_some() && facts.program == Program::Unknown),
    ];
    needs.into_iter().filter(|(_, unknown)| *unknown).map(|(fact, _)| fact).collect()
}
