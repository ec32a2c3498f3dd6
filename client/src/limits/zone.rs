//! The machine's time zone: as `client.toml` names it, else as the system has it. A zone that can't be found out is never taken
//! for another one.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use sojourn_protocol::{figures::timestamp, time::UnixMillis};
use std::{env, fmt, str::FromStr};

/// Names of the zone that needs no database, beside `UTC`.
const UTC_NAMES: &[&str] = &["Etc/UTC", "GMT", "Etc/GMT", "Zulu"];

/// A time zone that the owner names: `Europe/Berlin`, `UTC`, or a rule such as `CET-1CEST,M3.5.0,M10.5.0/3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneName {
    name: String,
    zone: TimeZone,
}

impl FromStr for ZoneName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.trim();
        named(name).map(|zone| Self { name: name.to_owned(), zone }).ok_or_else(|| {
            "this machine knows no such time zone; `UTC` and rules such as `CET-1CEST,M3.5.0,M10.5.0/3` are known everywhere, and \
             `Europe/Berlin` where the system has its time zones (the package `tzdata`)"
                .to_owned()
        })
    }
}

impl fmt::Display for ZoneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn named(name: &str) -> Option<TimeZone> {
    if UTC_NAMES.iter().any(|utc| utc.eq_ignore_ascii_case(name)) {
        return Some(TimeZone::UTC);
    }
    let zone = TimeZone::get(name).or_else(|_| TimeZone::posix(name)).ok()?;
    (!zone.is_unknown()).then_some(zone)
}

/// The zone that the owner names, or the system's; none where neither is known.
pub(super) fn zone(owners: Option<&ZoneName>) -> Option<TimeZone> {
    if let Some(owners) = owners {
        return Some(owners.zone.clone());
    }
    let by_name = || env::var("TZ").ok().and_then(|name| named(name.trim_start_matches(':')));
    let zone = TimeZone::try_system().ok().or_else(by_name)?;
    (!zone.is_unknown()).then_some(zone)
}

/// The present local time; none where the zone isn't known.
pub(super) fn local(owners: Option<&ZoneName>) -> Option<DateTime> {
    Some(Timestamp::now().to_zoned(zone(owners)?).datetime())
}

/// When it is that local time, the first time after a gap in it.
pub(super) fn instant(zone: &TimeZone, local: DateTime) -> Option<UnixMillis> {
    let millis = zone.to_timestamp(local).ok()?.as_millisecond();
    u64::try_from(millis).ok().map(UnixMillis)
}

/// A time for people: by the zone, with its name; by UTC where the zone isn't known.
pub(crate) fn shown(owners: Option<&ZoneName>, at: UnixMillis) -> String {
    let zone = zone(owners).unwrap_or(TimeZone::UTC);
    let time = i64::try_from(at.0).ok().and_then(|at| Timestamp::from_millisecond(at).ok());
    let shown = |time: Timestamp| time.to_zoned(zone).strftime("%Y-%m-%d %H:%M %Z").to_string();
    time.map_or_else(|| timestamp(at), shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    #[test]
    fn utc_and_rules_are_known_everywhere_and_a_misspelt_name_nowhere() {
        for name in ["UTC", "utc", "Etc/UTC", "CET-1CEST,M3.5.0,M10.5.0/3", "EST5"] {
            let zone: ZoneName = name.parse().unwrap();
            assert_eq!(zone.to_string(), name);
        }
        for wrong in ["", "Europe/Berlim", "CEST", "Etc/Unknown", "UTC+25:99", "Mars/Olympus"] {
            let why = wrong.parse::<ZoneName>().unwrap_err();
            assert!(why.contains("knows no such time zone"), "{wrong}: {why}");
        }
    }

    #[test]
    fn a_local_time_is_an_instant_and_is_shown_with_its_zone() {
        let berlin: ZoneName = "CET-1CEST,M3.5.0,M10.5.0/3".parse().unwrap();
        let zone = zone(Some(&berlin)).unwrap();
        let winter = instant(&zone, date(2026, 1, 5).at(22, 0, 0, 0)).unwrap();
        assert_eq!(winter, UnixMillis(1_767_646_800_000));
        assert_eq!(shown(Some(&berlin), winter), "2026-01-05 22:00 CET");
        let summer = instant(&zone, date(2026, 7, 5).at(22, 0, 0, 0)).unwrap();
        assert_eq!(shown(Some(&berlin), summer), "2026-07-05 22:00 CEST");
        // The night in which an hour is left out.
        let gap = instant(&zone, date(2026, 3, 29).at(2, 30, 0, 0)).unwrap();
        assert_eq!(shown(Some(&berlin), gap), "2026-03-29 03:30 CEST");
    }
}
