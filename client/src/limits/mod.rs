//! The limits that the owner of a machine sets: how much of it may be used, and when. The rules are pure. The facts that
//! they need are read from the machine, and a loop enforces them.
//!
//! | file | holds |
//! |---|---|
//! | `units.rs` | sizes, rates, spans and percentages as people write them |
//! | `amounts.rs` | memory, likewise |
//! | `hours.rs` | hours of the day by weekday |
//! | `by_hour.rs` | values that differ by the hour |
//! | `zone.rs` | the machine's time zone |
//! | `facts.rs` | the facts about the machine that limits need |
//! | `rules.rs` | from limits and facts to a pace |
//! | `settings.rs` | `client.toml` |
//! | `allowance.rs` | the file's limits and those that override them; changes keep the file's comments |
//! | `replaced.rs` | limits of flags that the owner has replaced |
//! | `machine.rs` | the facts, from Linux |
//! | `commands.rs` | the owner's commands that outlive the daemon: pause and drain |
//! | `owner.rs` | the owner's current limits and commands |
//! | `unknowns.rs` | facts that limits need and that aren't known |
//! | `nice.rs` | nice levels |
//! | `cgroup/` | the kernel's own limits, where they can be used |
//! | `enforcement.rs` | enforces the limits of processor time and memory |
//! | `memory.rs` | watches memory where the kernel doesn't limit it |
//! | `disk.rs` | the loop that looks whether the disk has the room left that stays free |
//! | `month.rs`, `data_usage.rs` | the bytes of a month |
//! | `monthly.rs` | the loop that counts them |
//! | `enforce.rs` | the loop that enforces the limits |

mod allowance;
mod amounts;
mod by_hour;
mod cgroup;
mod commands;
mod data_usage;
mod disk;
mod enforce;
mod enforcement;
mod facts;
mod hours;
mod machine;
mod memory;
mod month;
mod monthly;
mod nice;
mod owner;
mod replaced;
mod rules;
mod settings;
mod units;
mod unknowns;
mod zone;

pub use allowance::{Allowance, Change};
pub use amounts::{GpuMemory, Memory};
pub use by_hour::ByHour;
pub(crate) use commands::Commands;
pub(crate) use data_usage::DataUsage;
pub use data_usage::MonthState;
pub(crate) use disk::{DiskWatch, watch_disk};
pub(crate) use enforce::enforce;
pub use enforcement::Keepers;
pub(crate) use enforcement::LimitEnforcement;
pub use facts::{Fact, Facts, Program, unknown_facts};
pub use hours::Hours;
use machine::Machine;
pub(crate) use machine::cores;
pub(crate) use memory::watch;
pub use month::Month;
pub(crate) use monthly::{count, this_month};
pub(crate) use owner::Owner;
pub use rules::{Keeper, Kind, PaceDecision, Paces, Reason, decide};
pub use settings::{SETTINGS_FILE, Settings, SettingsError};
pub use units::{Nice, Percent, Programs, Rate, Size, Span};
pub use unknowns::UnknownFact;
pub(crate) use unknowns::Unknowns;
pub use zone::ZoneName;

use jiff::civil::DateTime;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

/// The owner's limits; `None` is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Units that run at once; counts from the next start.
    #[serde(deserialize_with = "some_slots", skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Threads of all slots together: of units that don't pin them, and where control groups can be used of all.
    #[serde(deserialize_with = "some_threads", skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// The share of the time in which slots compute; with control groups, of the threads that are allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<ByHour<Percent>>,
    /// The same of slots on a GPU; the lower of both holds there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<ByHour<Percent>>,
    /// Most bytes of memory of all trainers together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// How much of each GPU's memory trainers may take; counts for those that start later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_memory: Option<GpuMemory>,
    /// May control groups keep what they can? Counts from the next start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<bool>,
    /// Most bytes of cached blobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<Size>,
    /// Bytes of the data folder's disk that stay free, or no unit is begun; 2 GB where nothing is said, or 5 % of the disk
    /// where that is less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_reserve: Option<Size>,
    /// How fast blobs may come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub download: Option<ByHour<Rate>>,
    /// How fast blobs may go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload: Option<ByHour<Rate>>,
    /// Most bytes of blobs that may come and go in a calendar month, both together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monthly: Option<Size>,
    /// When to compute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hours: Option<Hours>,
    /// Only once nobody has used the machine for so many minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_minutes: Option<u32>,
    /// Not while the machine runs on its battery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_on_battery: Option<bool>,
    /// Not while one of these programs runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_while: Option<Programs>,
    /// The nice level of the trainers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nice: Option<Nice>,
    /// How long hops stand still before what they have trained is sent and the rest given back; two minutes
    /// where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub give_back_after: Option<Span>,
}

impl Limits {
    /// Does any of them depend on the hour?
    #[must_use]
    pub fn depends_on_hour(&self) -> bool {
        let ratios = [&self.cpu, &self.gpu].into_iter().flatten();
        let rates = [&self.download, &self.upload].into_iter().flatten();
        self.hours.is_some()
            || ratios
                .map(ByHour::depends_on_hour)
                .chain(rates.map(ByHour::depends_on_hour))
                .any(|depends| depends)
    }

    /// The limits at a local time. Where that isn't known, the lowest value of each day holds.
    #[must_use]
    pub fn at(&self, local: Option<DateTime>) -> Self {
        let ratio = |by_hour: &ByHour<Percent>| ByHour::always(by_hour.at(local));
        let rate = |by_hour: &ByHour<Rate>| ByHour::always(by_hour.at(local));
        Self {
            cpu: self.cpu.as_ref().map(ratio),
            gpu: self.gpu.as_ref().map(ratio),
            download: self.download.as_ref().map(rate),
            upload: self.upload.as_ref().map(rate),
            ..self.clone()
        }
    }
}

/// Slots that one client may have.
const MAX_SLOTS: u32 = 1024;
/// Threads that an owner may allow, more than any machine has.
const MAX_THREADS: u32 = 65_536;

fn some_slots<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u32>, D::Error> {
    some(value, MAX_SLOTS)
}

fn some_threads<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u32>, D::Error> {
    some(value, MAX_THREADS)
}

/// A number from 1 on.
fn some<'de, D: Deserializer<'de>>(value: D, most: u32) -> Result<Option<u32>, D::Error> {
    let number = Option::<u32>::deserialize(value)?;
    match number {
        Some(number) if number == 0 || number > most => {
            Err(D::Error::custom(format!("`{number}`: 1 to {most} is wanted")))
        }
        number => Ok(number),
    }
}
