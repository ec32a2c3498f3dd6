//! Why leases come back unfinished, and why work waits: decisions are made on these types, people read their text.

use crate::{
    digest::Digest,
    figures::{count, counted},
    ids::{HostId, ShardId},
    money::MicroUsd,
    spec::SearchBudget,
    storage::Storage,
    time::Millis,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, fmt};

/// Bytes in which people are told of room.
const MB: u64 = 1_000_000;
/// Hosts that a reason names at most.
const MAX_NAMED: usize = 3;
/// Milliseconds of a minute.
const MINUTE: u64 = 60_000;

/// Why a host gives leases back. It travels as one string; texts that aren't in [`ReleaseReason::SENTENCES`] are
/// faults.
///
/// ```
/// use sojourn_protocol::reason::ReleaseReason;
///
/// assert_eq!(ReleaseReason::from("the client is stopping"), ReleaseReason::Stopping);
/// assert!(ReleaseReason::from("no space left on device").is_fault());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ReleaseReason {
    /// The client stops in good order.
    Stopping,
    /// The machine's owner has paused the client for long.
    Paused,
    /// The machine has used up its month's budget of bytes.
    MonthlyBudget,
    /// The machine's disk has less room left than its owner keeps free.
    DiskReserve,
    /// The host has ended the lease already, and the server granted it again.
    Closed,
    /// The host can't do the unit.
    Fault(String),
}

impl ReleaseReason {
    /// The sentences that stand for reasons without a text of their own.
    pub const SENTENCES: [(Self, &str); 5] = [
        (Self::Stopping, "the client is stopping"),
        (Self::Paused, "the machine's owner has paused the client"),
        (Self::MonthlyBudget, "the machine has moved as many bytes this month as its owner allows"),
        (Self::DiskReserve, "the machine's disk has less room left than its owner keeps free"),
        (Self::Closed, "the host has ended this lease"),
    ];

    /// Did something go wrong? False where the host's owner or its cloud provider wants the leases back.
    #[must_use]
    pub const fn is_fault(&self) -> bool {
        match self {
            Self::Stopping | Self::Paused | Self::MonthlyBudget | Self::DiskReserve => false,
            Self::Closed | Self::Fault(_) => true,
        }
    }

    /// The text of it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        if let Self::Fault(text) = self {
            return text;
        }
        Self::SENTENCES.iter().find(|(reason, _)| reason == self).map_or("", |(_, text)| text)
    }
}

impl fmt::Display for ReleaseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<String> for ReleaseReason {
    fn from(text: String) -> Self {
        match Self::SENTENCES.into_iter().find(|(_, sentence)| *sentence == text) {
            Some((reason, _)) => reason,
            None => Self::Fault(text),
        }
    }
}

impl From<&str> for ReleaseReason {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<ReleaseReason> for String {
    fn from(reason: ReleaseReason) -> Self {
        match reason {
            ReleaseReason::Fault(text) => text,
            other => other.as_str().to_owned(),
        }
    }
}

/// Why a job, a trial or an evaluation doesn't go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitReason {
    /// The job is paused.
    Paused {
        /// Leases of it that hosts still hold.
        leases_live: u64,
    },
    /// The trial's job is paused.
    JobPaused,
    /// The job's time is up: nothing more is trained, and what is trained is evaluated for so long at most.
    TimeUp(Millis),
    /// A budget of all trials together is used up: nothing more is trained, and what is trained is evaluated for so long at most.
    UsedUp {
        /// The budget.
        budget: SearchBudget,
        /// So long.
        left: Millis,
    },
    /// The search has ended; the best trial is being evaluated on the test data.
    Testing,
    /// The store has lost a blob of the job's data.
    LostBlob(Digest),
    /// The store has lost the trial's checkpoint.
    LostCheckpoint(Digest),
    /// The server's disk has too little room for new work.
    Storage(Storage),
    /// No host is in contact.
    NoHosts,
    /// All hosts in contact are blocked.
    BlockedHosts,
    /// The disks of all hosts in contact have less room left than their owners keep free.
    FullHosts,
    /// A host is in its cool-down, and gets no work until it ends.
    Cooldown {
        /// The host.
        host: HostId,
        /// The host's name.
        name: String,
        /// The cause of the cool-down.
        cause: CooldownCause,
    },
    /// No host has an engine for the trial.
    NoEngine {
        /// The word of its model (`arch`).
        model: String,
        /// Hosts whose client is one of before, which may train it once it is updated.
        outdated: u64,
        /// Hosts whose engine has refused its units as unsupported.
        refused: u64,
    },
    /// No host has the memory for the trial.
    NoMemory,
    /// No host lends the disk for its next unit.
    NoDisk,
    /// No host has the cache space for another replica of the shard.
    NoReplicaSpace(ShardId),
    /// No host that keeps a shard which it may visit next can train it now.
    NoKeeper {
        /// The shard, or the first of them.
        shard: ShardId,
        /// The hosts that keep any of them.
        hosts: Vec<HostId>,
    },
    /// No host of the trial's numeric class is in contact.
    NoClass(Digest),
    /// Results of strangers' hosts wait for another party's host that could confirm them, and none is in contact.
    Strangers,
    /// The job's results are verified, and too few parties offer any numeric class for a trial to begin there.
    Unproved {
        /// So many have to.
        quorum: u64,
        /// Hosts in contact whose classes no other party offers.
        alone: Vec<HostId>,
    },
    /// A result of it waits for a host of another party that repeats its unit, and none is in contact that could.
    Unconfirmed,
    /// Hosts came to different results, and none is in contact that could be asked as well.
    NoVerifier,
    /// The search compares it with others before it goes on.
    Search,
    /// The trial's generation isn't over: others of the population train or are evaluated.
    Generation,
    /// A program of the user's own decides after each epoch which trials go on.
    Program,
    /// The search begins it when fewer trials train.
    NotBegun,
    /// The job's budget is used up, and none but bought machines are in contact.
    Budget {
        /// The budget.
        budget: MicroUsd,
        /// Hops that are done, and hops of the whole job.
        hops: (u64, u64),
    },
    /// No host is in contact, and so much of the job's budget is left to buy some.
    NoPaidHosts {
        /// So much.
        left: MicroUsd,
        /// The budget.
        budget: MicroUsd,
        /// Hops that are done, and hops of the whole job.
        hops: (u64, u64),
    },
    /// Hosts have failed its workload, which is held back.
    HeldBack {
        /// How many hosts.
        hosts: u64,
        /// For how long it isn't tried.
        left: Millis,
        /// The last error.
        error: String,
    },
}

/// Why a host is given nothing, though there is work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdleReason {
    /// No other party offers any of its numeric classes, and the work that there is wants several.
    AloneInClass,
    /// The host's owner lends less disk than any unit takes.
    TooLittleDisk,
    /// The host has no engine for any unit.
    NoEngine {
        /// The words of the models that there are units of.
        models: BTreeSet<&'static str>,
        /// Whether the host's client is of an older version, which names no engine.
        is_outdated: bool,
    },
}

impl fmt::Display for IdleReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AloneInClass => f.write_str(
                "no other party's host in contact offers a numeric class of this host: results of the jobs that wait are verified, and \
                 nobody could repeat its own",
            ),
            Self::TooLittleDisk => f.write_str(
                "its owner lends too little disk for any unit: a hop takes a shard and a checkpoint, so a larger `--cache` or \
                 limit `disk` gives it work",
            ),
            Self::NoEngine { models, is_outdated } => {
                let models: Vec<String> = models.iter().map(|model| format!("`{model}`")).collect();
                write!(f, "its trainer can't do any unit: those that wait train {}", models.join(", "))?;
                if *is_outdated {
                    f.write_str("; its client is older than the server: update it")?;
                }
                Ok(())
            }
        }
    }
}

/// The first of some hosts, and whether there are more.
fn named(hosts: &[HostId]) -> String {
    let first: Vec<String> = hosts.iter().take(MAX_NAMED).map(HostId::to_string).collect();
    let noun = if hosts.len() == 1 { "host" } else { "hosts" };
    let more = if hosts.len() > MAX_NAMED { " and others" } else { "" };
    format!("{noun} {}{more}", first.join(", "))
}

/// Why a host is in its cool-down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CooldownCause {
    /// The host has given back lease after lease, the last one for this reason.
    Releases(ReleaseReason),
    /// The host's trainers have failed again and again, the last time with this error, where it is known.
    Failures(Option<String>),
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget { budget, hops: (done, of) } => write!(
                f,
                "its budget of {budget} is used up after {} of {} hops: bought machines do nothing more for it; \
                 `sojourn set --budget` gives it more",
                count(*done),
                count(*of)
            ),
            Self::NoPaidHosts { left, budget, hops: (done, of) } => write!(
                f,
                "no host is in contact, and {left} of its budget of {budget} are left after {} of {} hops: `sojourn set --budget` \
                 gives it more, and `sojourn client` starts a host",
                count(*done),
                count(*of)
            ),
            Self::Paused { leases_live: 0 } => {
                f.write_str("it is paused: resume it, and it goes on")
            }
            Self::Paused { leases_live: 1 } => {
                f.write_str("it is paused; 1 unit is still with a machine")
            }
            Self::Paused { leases_live } => {
                write!(f, "it is paused; {leases_live} units are still with machines")
            }
            Self::TimeUp(left) => write!(
                f,
                "its time is up: nothing more is trained, and what is trained is evaluated for up to {} min",
                left.0.div_ceil(MINUTE)
            ),
            Self::UsedUp { budget, left } => {
                match budget {
                    SearchBudget::Epochs(_) => {
                        write!(f, "all trials together have trained {budget}, as many as they may")?;
                    }
                    SearchBudget::Cost(cost) => {
                        write!(f, "all trials together have cost {cost}, as much as they may")?;
                    }
                }
                let left = left.0.div_ceil(MINUTE);
                write!(
                    f,
                    ": nothing more is trained, and what is trained is evaluated for up to {left} min"
                )
            }
            Self::JobPaused => f.write_str("its job is paused"),
            Self::Search => f.write_str("the search compares it with others before it goes on"),
            Self::Program => f.write_str("it waits for the program that decides after each epoch"),
            Self::Generation => f.write_str("it waits for the others of its generation"),
            Self::NotBegun => f.write_str("the search begins it when fewer trials train"),
            Self::Testing => f.write_str("the best trial is being evaluated on the test data"),
            Self::LostBlob(blob) => write!(
                f,
                "the server's store has lost blob {blob} of the job's data: submit the job again to send it anew"
            ),
            Self::LostCheckpoint(blob) => {
                write!(f, "the server's store has lost its checkpoint {blob}")
            }
            Self::Storage(Storage { free, reserve, .. }) => write!(
                f,
                "the server's disk has {} MB free and keeps {} MB: new work is given out once there is room",
                free / MB,
                reserve / MB
            ),
            Self::NoHosts => {
                f.write_str("no host is in contact; start one with `sojourn client`")
            }
            Self::BlockedHosts => f.write_str(
                "every host in contact is blocked: `sojourn unblock` gives one work again",
            ),
            Self::FullHosts => f.write_str(
                "the disk of every host in contact has less room left than its owner keeps free",
            ),
            Self::Cooldown { host, name, cause } => {
                write!(f, "host {host} (`{name}`) is given no work for a while, as {cause}")
            }
            Self::NoEngine { model, outdated, refused } => {
                match refused {
                    0 => write!(f, "no host in contact trains `{model}` models")?,
                    _ => write!(f, "no host in contact supports its `{model}` model and settings")?,
                }
                let refused = Some(format!("{refused} refused it")).filter(|_| *refused > 0);
                let outdated = match outdated {
                    0 => None,
                    1 => Some("1 needs a newer client".to_owned()),
                    _ => Some(format!("{outdated} need a newer client")),
                };
                let counts: Vec<String> = refused.into_iter().chain(outdated).collect();
                if counts.is_empty() { Ok(()) } else { write!(f, " ({})", counts.join(", ")) }
            }
            Self::HeldBack { hosts, left, error } => {
                let hosts = counted(*hosts, "host");
                write!(f, "its model fails on this data ({hosts} so far), so it is tried on one at a time")?;
                if left.0 > 0 {
                    write!(f, ", next in {} s", left.0.div_ceil(1000))?;
                }
                write!(f, ": {error}")
            }
            Self::NoMemory => f.write_str("no host in contact has the memory for it"),
            Self::NoDisk => f.write_str(
                "no host in contact lends the disk for it: a hop takes a shard and a checkpoint, an evaluation all its data at once",
            ),
            Self::NoReplicaSpace(shard) => write!(
                f,
                "no host in contact has the room in its cache to keep shard {shard}: let an owner lend more, or \
                 start a client on another machine"
            ),
            Self::NoKeeper { shard, hosts } => write!(
                f,
                "no host that keeps shard {shard} can train it now ({}): others keep it once these are away",
                named(hosts)
            ),
            Self::Strangers => f.write_str(
                "results of strangers' hosts count once another party has come to the same, and no such host of their numeric class \
                 is in contact: start a client of your own there, or submit the job with `verify = \"none\"`",
            ),
            Self::Unproved { quorum, alone } => {
                write!(f, "no numeric class is offered by {quorum} parties")?;
                match &alone[..] {
                    [] => Ok(()),
                    [host] => write!(f, "; host {host} is alone in its class"),
                    hosts => write!(f, "; {} are alone in theirs", named(hosts)),
                }
            }
            Self::Unconfirmed => f.write_str(
                "a result of it waits to be verified: no other party's host in contact can repeat the unit in its numeric class",
            ),
            Self::NoVerifier => f.write_str(
                "hosts came to different results: one more host of their numeric class must repeat the unit, and none is in contact",
            ),
            Self::NoClass(class) => {
                write!(f, "no host of numeric class {} is in contact", class.short())
            }
        }
    }
}

impl fmt::Display for CooldownCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Releases(reason) => {
                write!(f, "it has given back unit after unit: {reason}")
            }
            Self::Failures(error) => {
                let error = error.as_deref().unwrap_or("not told");
                write!(f, "its trainers have failed again and again: {error}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::StorageLevel;

    #[test]
    fn each_release_reason_travels_as_its_sentence() {
        let fault = (ReleaseReason::Fault("no room left".into()), "no room left");
        for (reason, sentence) in ReleaseReason::SENTENCES.into_iter().chain([fault]) {
            let json = serde_json::to_string(&reason).unwrap();
            assert_eq!(json, format!("\"{sentence}\""));
            assert_eq!(serde_json::from_str::<ReleaseReason>(&json).unwrap(), reason);
            assert_eq!((reason.to_string(), reason.as_str()), (sentence.to_owned(), sentence));
        }
    }

    #[test]
    fn only_what_nobody_wanted_is_a_fault() {
        let faults = ReleaseReason::SENTENCES.map(|(reason, _)| reason.is_fault());
        assert_eq!(faults, [false, false, false, false, true]);
        assert!(ReleaseReason::Fault(String::new()).is_fault());
    }

    #[test]
    fn reasons_to_wait_are_sentences() {
        let name = "gpu-1".to_owned();
        let cause = CooldownCause::Releases(ReleaseReason::Fault("no room".into()));
        let waits = WaitReason::Cooldown { host: HostId(3), name, cause };
        assert_eq!(
            waits.to_string(),
            "host 3 (`gpu-1`) is given no work for a while, as it has given back unit after unit: no room"
        );
        let unknown = CooldownCause::Failures(None).to_string();
        assert_eq!(unknown, "its trainers have failed again and again: not told");
        let (level, free, reserve) = (StorageLevel::Low, 1_900_000_000, 2_000_000_000);
        let full = WaitReason::Storage(Storage { level, free, reserve }).to_string();
        assert!(full.contains("1900 MB free and keeps 2000 MB"), "{full}");
        let models = BTreeSet::from(["graph", "mlp"]);
        let idle = IdleReason::NoEngine { models: models.clone(), is_outdated: false };
        assert_eq!(
            idle.to_string(),
            "its trainer can't do any unit: those that wait train `graph`, `mlp`"
        );
        let idle = IdleReason::NoEngine { models, is_outdated: true };
        assert!(idle.to_string().ends_with("; its client is older than the server: update it"));
        let engine = |outdated, refused| {
            WaitReason::NoEngine { model: "cnn".into(), outdated, refused }.to_string()
        };
        assert_eq!(engine(0, 0), "no host in contact trains `cnn` models");
        assert_eq!(engine(1, 0), "no host in contact trains `cnn` models (1 needs a newer client)");
        assert_eq!(
            engine(3, 2),
            "no host in contact supports its `cnn` model and settings (2 refused it, 3 need a newer client)"
        );
        let paused = |leases_live| WaitReason::Paused { leases_live }.to_string();
        let held = |hosts, left| WaitReason::HeldBack {
            hosts,
            left: Millis(left),
            error: "no such node".into(),
        };
        assert_eq!(
            held(2, 1_500).to_string(),
            "its model fails on this data (2 hosts so far), so it is tried on one at a time, next in 2 s: no such node"
        );
        assert!(
            held(1, 0).to_string().contains("(1 host so far), so it is tried on one at a time: no")
        );
        assert!(paused(0).contains("resume it") && paused(1).contains("1 unit is"));
        assert!(paused(2).contains("2 units are"));
        let unproved = |alone: &[u64]| {
            let alone = alone.iter().copied().map(HostId).collect();
            WaitReason::Unproved { quorum: 2, alone }.to_string()
        };
        assert_eq!(unproved(&[]), "no numeric class is offered by 2 parties");
        assert!(unproved(&[3]).ends_with("; host 3 is alone in its class"));
        assert!(unproved(&[3, 5]).ends_with("; hosts 3, 5 are alone in theirs"));
        let keepers = |hosts: &[u64]| {
            let hosts = hosts.iter().copied().map(HostId).collect();
            WaitReason::NoKeeper { shard: ShardId(2), hosts }.to_string()
        };
        assert_eq!(
            keepers(&[3]),
            "no host that keeps shard 2 can train it now (host 3): others keep it once these are away"
        );
        assert!(keepers(&[3, 5]).contains("(hosts 3, 5)"));
        assert!(
            unproved(&[3, 5, 7, 9]).ends_with("; hosts 3, 5, 7 and others are alone in theirs")
        );
    }
}
