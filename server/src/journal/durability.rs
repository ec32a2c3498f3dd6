//! The durability of events in Redis, as an operator chooses it.

use std::{fmt, str::FromStr};

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
}
