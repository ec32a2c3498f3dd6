//! The durability of events in Redis: chosen by the operator, and verified against the settings that Redis reports.

use super::connection::RedisConnection;
use crate::journal::JournalError;
use redis::{Value, cmd};
use std::{collections::BTreeMap, fmt, str::FromStr};

/// When Redis' own disk must have an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disk {
    /// Never: it is in memory, and perhaps in a dump that is made at times.
    Nothing,
    /// Within about a second (`appendfsync everysec`).
    Everysec,
    /// Before it is acknowledged (`appendfsync always`).
    Always,
}

/// The conditions for an event to count as durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durability {
    /// When Redis' own disk must have the event.
    pub disk: Disk,
    /// Replicas that must have the event (`WAIT`).
    pub replicas: u32,
}

impl Default for Durability {
    fn default() -> Self {
        Self { disk: Disk::Always, replicas: 0 }
    }
}

/// A word that names no durability.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of always, everysec, none, wait:N (e.g. `always` or `everysec,wait:1`)")]
pub struct DurabilityError(String);

impl FromStr for Durability {
    type Err = DurabilityError;

    fn from_str(text: &str) -> Result<Self, DurabilityError> {
        let (mut disk, mut replicas) = (None, None);
        for word in text.split(',').map(str::trim) {
            let refuse = || DurabilityError(word.to_owned());
            let found = match word {
                "always" => Some(Disk::Always),
                "everysec" => Some(Disk::Everysec),
                "none" => Some(Disk::Nothing),
                _ => None,
            };
            let twice = if let Some(found) = found {
                disk.replace(found).is_some()
            } else {
                let count = word.strip_prefix("wait:").and_then(|count| count.parse().ok());
                replicas.replace(count.ok_or_else(refuse)?).is_some()
            };
            if twice {
                return Err(refuse());
            }
        }
        let default = Self::default();
        Ok(Self {
            disk: disk.unwrap_or(default.disk),
            replicas: replicas.unwrap_or(default.replicas),
        })
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.disk {
            Disk::Nothing => "none",
            Disk::Everysec => "everysec",
            Disk::Always => "always",
        })?;
        if self.replicas > 0 { write!(f, ",wait:{}", self.replicas) } else { Ok(()) }
    }
}

/// The settings that a Redis reports; `None` where it doesn't report one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Configured {
    disk: Option<Disk>,
    policy: Option<String>,
    replicas: Option<u32>,
}

impl Configured {
    /// Asks Redis. Many hosted ones don't report their settings.
    pub(super) fn read(connection: &mut RedisConnection) -> Result<Self, JournalError> {
        let mut settings = BTreeMap::new();
        for name in ["appendonly", "appendfsync", "maxmemory-policy"] {
            // A command that isn't allowed leaves the connection open.
            let found =
                connection.query::<Vec<(String, String)>>(cmd("CONFIG").arg("GET").arg(name));
            match found {
                Ok(found) => settings.extend(found),
                Err(_) if connection.is_open() => {}
                Err(error) => return Err(error),
            }
        }
        let role: Option<Vec<Value>> = match connection.query(&cmd("ROLE")) {
            Ok(role) => Some(role),
            Err(_) if connection.is_open() => None,
            Err(error) => return Err(error),
        };
        let replicas = role.and_then(|role| match role.get(2) {
            Some(Value::Array(replicas)) => u32::try_from(replicas.len()).ok(),
            _ => None,
        });
        let fsync = settings.get("appendfsync").map(String::as_str);
        let disk = settings.get("appendonly").map(|appends| match (appends.as_str(), fsync) {
            ("yes", Some("always")) => Disk::Always,
            ("yes", Some("everysec")) => Disk::Everysec,
            _ => Disk::Nothing,
        });
        Ok(Self { disk, policy: settings.remove("maxmemory-policy"), replicas })
    }

    /// Refuses a Redis that isn't set up for the chosen durability.
    pub(super) fn check(&self, chosen: Durability) -> Result<(), JournalError> {
        let refuse = |reason: String| Err(JournalError::Weak(reason));
        if let Some(disk) = self.disk.filter(|disk| *disk < chosen.disk) {
            let does = match disk {
                Disk::Nothing => "keeps no append-only file that is synced",
                Disk::Everysec | Disk::Always => "syncs its append-only file once a second",
            };
            let fsync = if chosen.disk == Disk::Always { "always" } else { "everysec" };
            return refuse(format!(
                "`{chosen}` was chosen, but this Redis {does}; set `appendonly yes` and `appendfsync {fsync}` there \
                 (CONFIG SET takes both), or choose less with --redis-durability"
            ));
        }
        if let Some(policy) = self.policy.as_ref().filter(|policy| policy.starts_with("allkeys")) {
            return refuse(format!(
                "its `maxmemory-policy` is `{policy}`: it would throw events away when its memory is full; set `noeviction`"
            ));
        }
        match self.replicas {
            Some(has) if has < chosen.replicas => refuse(format!(
                "`{chosen}` was chosen, but this Redis has {has} replicas that are connected"
            )),
            _ => Ok(()),
        }
    }

    /// The losses that a power cut or a failover could cause, for people.
    pub(super) fn losses(&self, chosen: Durability) -> String {
        let unsaid = match self.disk {
            None => {
                "; it doesn't say how it is configured, so this is as it was chosen, not as it was found"
            }
            Some(_) => "",
        };
        let power = match self.disk.unwrap_or(chosen.disk) {
            Disk::Always => {
                "a power cut loses nothing that was acknowledged (append-only file, synced for each group)"
            }
            Disk::Everysec => {
                "a power cut can lose about the last second of what was acknowledged (append-only file, synced once a second)"
            }
            Disk::Nothing => {
                "a power cut or a restart of Redis can lose EVERYTHING since its last dump, acknowledged or not (nothing is synced)"
            }
        };
        let failover = match chosen.replicas {
            0 => "a failover to a replica can lose what the replica hadn't got yet".to_owned(),
            n => format!(
                "a failover loses nothing that was acknowledged where it is to one of the {n} replicas that had it"
            ),
        };
        format!("{power}; {failover}{unsaid}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durabilities_are_parsed_and_displayed() {
        let of = |disk, replicas| Ok(Durability { disk, replicas });
        for (text, expected) in [
            ("always", of(Disk::Always, 0)),
            ("everysec", of(Disk::Everysec, 0)),
            ("none,wait:2", of(Disk::Nothing, 2)),
            ("wait:1", of(Disk::Always, 1)),
            ("wait:1, everysec", of(Disk::Everysec, 1)),
            ("sometimes", Err(DurabilityError("sometimes".to_owned()))),
            ("wait:x", Err(DurabilityError("wait:x".to_owned()))),
            ("always,none", Err(DurabilityError("none".to_owned()))),
            ("", Err(DurabilityError(String::new()))),
        ] {
            assert_eq!(text.parse(), expected, "{text}");
        }
        assert_eq!(Durability { disk: Disk::Everysec, replicas: 1 }.to_string(), "everysec,wait:1");
    }

    #[test]
    fn a_redis_that_is_less_durable_than_was_chosen_is_refused() {
        let redis = |disk, policy: &str, replicas| Configured {
            disk,
            policy: Some(policy.to_owned()),
            replicas: Some(replicas),
        };
        let wants = |text: &str| text.parse::<Durability>().unwrap();
        let everysec = redis(Some(Disk::Everysec), "noeviction", 0);
        assert!(everysec.check(wants("everysec")).is_ok());
        assert!(everysec.check(wants("none")).is_ok());
        let error = everysec.check(wants("always")).unwrap_err().to_string();
        assert!(error.contains("appendfsync always"), "{error}");
        let error = everysec.check(wants("everysec,wait:1")).unwrap_err().to_string();
        assert!(error.contains("0 replicas"), "{error}");
        let error = redis(Some(Disk::Always), "allkeys-lru", 0).check(wants("always")).unwrap_err();
        assert!(error.to_string().contains("noeviction"), "{error}");
        // One that doesn't say is taken at the word of whoever chose.
        let silent = Configured { disk: None, policy: None, replicas: None };
        assert!(silent.check(wants("always,wait:2")).is_ok());
        assert!(silent.losses(wants("always")).contains("doesn't say"));
    }
}
