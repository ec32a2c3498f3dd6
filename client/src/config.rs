//! The daemon's configuration, and its validation. It reads neither the environment nor files.

use crate::{
    error::ClientError, limits::Allowance, log::LogChoice, trainers::gpus::GpuChoice,
    transfer::Rates,
};
use reqwest::Url;
use sojourn_http::Servers;
use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

/// How a daemon runs.
#[derive(Clone)]
pub struct ClientConfig {
    /// The server's address, e.g. `https://sojourn.example:7070`; a path is kept as a prefix. Of several servers, one
    /// active and others that stand by, all of them with commas between.
    pub server: String,
    /// A PEM file of authorities to trust instead of the system's; only for `https`.
    pub ca: Option<PathBuf>,
    /// The enrolment token; needed only until the machine has an identity.
    pub token: Option<String>,
    /// The machine's name, for people.
    pub name: String,
    /// Where identity, cache and finished results lie; belongs to one daemon at a time.
    pub data: PathBuf,
    /// Units that run at once, on GPUs where there are some; one per GPU, or one without GPUs, where left out.
    pub slots: Option<u32>,
    /// Units that run at once on the cores beside those on GPUs.
    pub cpu_slots: u32,
    /// Which GPUs the slots may use.
    pub gpus: GpuChoice,
    /// Most bytes that cached blobs may take where the owner's limits say nothing.
    pub cache_bytes: u64,
    /// Whether the cache keeps shards as they are or packed.
    pub cache_for: CacheFor,
    /// How fast blobs may come and go where the owner's limits say nothing.
    pub rates: Rates,
    /// The owner's present wishes.
    pub allowance: Allowance,
    /// Whether the log is written into files in `data`; the program's logger puts its lines there by
    /// [`crate::log::keep`].
    pub log: LogChoice,
    /// The trainer program; looked for beside this program where none is given.
    pub trainer: Option<PathBuf>,
    /// The address of the cloud's metadata service, whose notices are heeded; none for no cloud.
    pub metadata: Option<String>,
    /// Failures are reported with the end of the trainer's log.
    pub send_log: bool,
    /// Time limits.
    pub timing: Timing,
}

/// The purpose of the cache of shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheFor {
    /// Speed: shards lie there as trainers read them.
    #[default]
    Speed,
    /// Room: shards lie there packed where that saves a tenth, and are unpacked for units that use them.
    Room,
}

impl FromStr for CacheFor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "speed" => Ok(Self::Speed),
            "room" => Ok(Self::Room),
            _ => Err("`speed` or `room` is wanted".to_owned()),
        }
    }
}

/// Where the metadata service of AWS, GCP and Azure is.
pub const METADATA: &str = "http://169.254.169.254";

/// The daemon's time limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How long the server may hold a request for work.
    pub wait: Duration,
    /// How long making a connection may take.
    pub connect: Duration,
    /// How long an answer may take (beside `wait`), and how long a transfer may stand still.
    pub answer: Duration,
    /// How often what a hop has trained is kept on disk, and more rarely where that is dear; never where none
    /// is given.
    pub keep_every: Option<Duration>,
    /// A unit without progress for so long has come to a standstill, if it was quick before.
    pub standstill: Duration,
    /// How often the metadata service is asked.
    pub poll: Duration,
    /// At the end, how long it may take until hops have stopped and results have arrived.
    pub farewell: Duration,
    /// The longest pause between two attempts while the server is away.
    pub longest_pause: Duration,
    /// The shortest rest after trouble that the next unit would meet too; rests grow while it lasts.
    pub rest: Duration,
    /// The daemon ends once no unit has run for so long; `None`: it waits for work for ever.
    pub exit_when_idle: Option<Duration>,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(20),
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            keep_every: Some(Duration::from_secs(60)),
            standstill: Duration::from_secs(60),
            poll: Duration::from_secs(5),
            farewell: Duration::from_secs(10),
            longest_pause: Duration::from_secs(30),
            rest: Duration::from_secs(5),
            exit_when_idle: None,
        }
    }
}

impl fmt::Debug for ClientConfig {
    /// Everything but the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig")
            .field("server", &self.server)
            .field("ca", &self.ca)
            .field("name", &self.name)
            .field("data", &self.data)
            .field("slots", &self.slots)
            .field("cpu_slots", &self.cpu_slots)
            .field("gpus", &self.gpus)
            .field("cache_bytes", &self.cache_bytes)
            .field("cache_for", &self.cache_for)
            .field("rates", &self.rates)
            .field("limits", self.allowance.limits())
            .field("log", &self.log)
            .field("trainer", &self.trainer)
            .field("metadata", &self.metadata)
            .field("send_log", &self.send_log)
            .field("timing", &self.timing)
            .finish_non_exhaustive()
    }
}

impl ClientConfig {
    /// Checks everything that can be checked without I/O, and gives the servers' addresses.
    ///
    /// # Errors
    /// An address that isn't `http` or `https` (or isn't `https`, with authorities to trust), that of a metadata
    /// service that isn't `http`, no slots, or a data folder whose path isn't UTF-8.
    pub fn validate(&self) -> Result<Servers, ClientError> {
        if self.slots == Some(0) {
            return Err(ClientError::NoSlots);
        }
        // Trainers are told paths in JSON.
        if self.data.to_str().is_none() {
            return Err(ClientError::FolderName { path: self.data.clone() });
        }
        self.metadata_url()?;
        Ok(Servers::parse(&self.server, self.ca.is_some())?)
    }

    /// The metadata service's address, checked.
    pub(crate) fn metadata_url(&self) -> Result<Option<Url>, ClientError> {
        let Some(text) = &self.metadata else { return Ok(None) };
        let refuse = |reason: String| ClientError::Metadata { url: text.clone(), reason };
        if !begins_with(text, &["http"]) {
            return Err(refuse("it must start with `http://`".to_owned()));
        }
        Url::parse(text).map(Some).map_err(|error| refuse(error.to_string()))
    }
}

/// Is it an address with one of these schemes?
fn begins_with(address: &str, schemes: &[&str]) -> bool {
    let scheme = address.trim_start().split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|given| schemes.iter().any(|scheme| scheme.eq_ignore_ascii_case(given)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(server: &str, slots: u32) -> ClientConfig {
        ClientConfig {
            server: server.into(),
            ca: None,
            token: None,
            name: "m".into(),
            data: PathBuf::new(),
            slots: Some(slots),
            cpu_slots: 0,
            gpus: GpuChoice::Off,
            cache_bytes: 0,
            cache_for: CacheFor::default(),
            rates: Rates::default(),
            allowance: Allowance::default(),
            log: LogChoice::Off,
            trainer: None,
            metadata: None,
            send_log: true,
            timing: Timing::default(),
        }
    }

    #[test]
    fn the_token_is_never_shown() {
        let config = ClientConfig { token: Some("secret".into()), ..config("http://a", 1) };
        assert!(!format!("{config:?}").contains("secret"));
    }

    #[test]
    fn addresses_are_checked_and_keep_their_prefix() {
        let servers = config("https://example.org/sojourn", 1).validate().unwrap();
        assert_eq!(servers.path("v1/work"), "https://example.org/sojourn/v1/work");
        for bad in ["", "example.org", "ftp://example.org", "http://", "http://a/?x=1"] {
            let error = config(bad, 1).validate().unwrap_err();
            assert!(
                error.to_string().contains(&format!("`{bad}` is no server address")),
                "{error}"
            );
        }
        let trusting = |server| ClientConfig { ca: Some("ca.pem".into()), ..config(server, 1) };
        trusting("https://example.org").validate().unwrap();
        let error = trusting("http://example.org").validate().unwrap_err();
        assert!(error.to_string().contains("must start with `https://` where"), "{error}");
        assert!(matches!(config("http://a", 0).validate(), Err(ClientError::NoSlots)));
        let asking = |address: &str| {
            ClientConfig { metadata: Some(address.into()), ..config("http://a", 1) }.validate()
        };
        asking("http://127.0.0.1:1/").unwrap();
        for bad in ["/foo", "a.example", "https://a.example"] {
            let error = asking(bad).unwrap_err();
            let said = format!(
                "`{bad}` is no address of a metadata service: it must start with `http://`"
            );
            assert_eq!(error.to_string(), said);
        }
    }
}
