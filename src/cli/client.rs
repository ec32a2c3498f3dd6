//! `sojourn client`: the daemon of this machine. Everything that it does is in `sojourn-client`.

use super::{
    failure::{Failure, with_sources},
    local::{self, DEFAULT_SERVER},
    shutdown,
    trust::Trust,
};
use sojourn_client::{ClientConfig, ClientError, GpuChoice, METADATA, Rates, Timing};
use std::{fs, path::PathBuf, str::FromStr, time::Duration};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The server's address.
    #[arg(long, env = "SOJOURN_SERVER", value_name = "URL", default_value = DEFAULT_SERVER)]
    server: String,
    #[command(flatten)]
    trust: Trust,
    /// The enrolment token (not the admin token, which SOJOURN_TOKEN is for), needed once. For a server
    /// on this machine, the one in its default data folder if left out.
    #[arg(long, env = "SOJOURN_ENROL_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
    /// The machine's name, for people; its host name if left out.
    #[arg(long, env = "SOJOURN_NAME")]
    name: Option<String>,
    /// Where identity, cache and finished results lie; for one client at a time.
    #[arg(long, env = "SOJOURN_CLIENT_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Units that run at once; if left out, one per GPU, or one where there is none.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    slots: Option<u32>,
    /// GPUs to train on: `auto` (all of the commonest kind that can be used, else the CPU), `none`, or
    /// numbers such as `0,1`. SOJOURN_TORCH names the folder of a full PyTorch's libraries, where
    /// `python3` doesn't know it.
    #[arg(long, env = "SOJOURN_GPUS", value_name = "GPUS", default_value = "auto")]
    gpus: GpuChoice,
    /// Most bytes that cached shards and checkpoints may take.
    #[arg(long, value_name = "SIZE", default_value = "20GiB")]
    cache: Size,
    /// Keep on disk so often, in seconds, what a unit has trained, so that a crash or a kill costs no more;
    /// more rarely where that would take over 2 % of the time; 0 for never.
    #[arg(long, env = "SOJOURN_KEEP_SECONDS", value_name = "N", default_value_t = 60)]
    keep_seconds: u32,
    /// Address of the metadata service that tells when AWS, GCP or Azure take this machine away; `none` for a
    /// machine that is in no cloud.
    #[arg(long, env = "SOJOURN_METADATA", value_name = "URL", default_value = METADATA)]
    metadata: String,
    /// The trainer program; looked for beside this program if left out.
    #[arg(long, env = "SOJOURN_TRAINER", value_name = "FILE")]
    trainer: Option<PathBuf>,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let given = args.token.clone().filter(|token| !token.is_empty());
    let config = ClientConfig {
        server: args.server.clone(),
        ca: args.trust.file(),
        token: given.or_else(|| local::local_token(&args.server, "enrol-token")),
        name: args.name.clone().unwrap_or_else(host_name),
        data: args.data.clone().unwrap_or_else(|| local::data_folder("client")),
        slots: args.slots,
        gpus: args.gpus.clone(),
        cache_bytes: args.cache.0,
        rates: Rates::default(),
        trainer: args.trainer.clone(),
        metadata: (args.metadata != "none").then(|| args.metadata.clone()),
        timing: Timing {
            keep_every: (args.keep_seconds > 0)
                .then(|| Duration::from_secs(u64::from(args.keep_seconds))),
            ..Timing::default()
        },
    };
    // On the runtime's own thread, beside everything that it starts.
    let daemon = tokio::spawn(sojourn_client::run(config, shutdown::requested()));
    match daemon.await {
        Ok(ended) => ended.map_err(|error| failure(&error)),
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Trouble that passes never ends the daemon; what does is the call's fault or this machine's.
fn failure(error: &ClientError) -> Failure {
    let message = with_sources(error);
    match error {
        ClientError::NoToken => Failure::call(format!(
            "{message}: pass the one that `sojourn serve` prints as --token or SOJOURN_ENROL_TOKEN"
        )),
        ClientError::Folder { .. }
        | ClientError::Trainer(_)
        | ClientError::Unlike(_)
        | ClientError::Http(_)
        | ClientError::Gpus(_) => Failure::work(message),
        _ => Failure::call(message),
    }
}

fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    if name.trim().is_empty() { "host".to_owned() } else { name.trim().to_owned() }
}

/// A number of bytes: `500MB`, `20GiB`, `1000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size(u64);

const UNITS: &[(&str, u64)] = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

impl FromStr for Size {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let end = |unit: &str| {
            let split = text.len().checked_sub(unit.len())?;
            let (number, end) = text.split_at_checked(split)?;
            end.eq_ignore_ascii_case(unit).then_some(number)
        };
        let unit = UNITS.iter().find_map(|(unit, bytes)| Some((end(unit)?, *bytes)));
        let (number, bytes) = unit.unwrap_or((text, 1));
        let number = number.trim().parse::<u64>().ok();
        number
            .and_then(|number| number.checked_mul(bytes))
            .map(Size)
            .ok_or_else(|| "a size is wanted, e.g. `20GiB` or `500MB`".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_with_units() {
        for (text, bytes) in [
            ("20GiB", 20 << 30),
            ("500 MB", 500_000_000),
            ("1gb", 1_000_000_000),
            ("7", 7),
            ("7B", 7),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "GiB", "-1GB", "1.5GB", "99999999TB", "é"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
