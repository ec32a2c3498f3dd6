//! The durability that Redis is set up for, verified against the chosen one.

use super::connection::RedisConnection;
use crate::journal::{Disk, Durability, JournalError};
use redis::{Value, cmd};
use std::collections::BTreeMap;

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
