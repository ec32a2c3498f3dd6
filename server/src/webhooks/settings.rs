//! The addresses that are told of what happens, as the operator's file has them.

use super::{
    notice::{Kind, Thresholds},
    signature::Secret,
};
use serde::Deserialize;
use sojourn_http::{Receiver, ReceiverError};
use sojourn_protocol::time::Millis;
use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

/// For one attempt, from its first byte to the answer's head.
const TIMEOUT: Duration = Duration::from_secs(15);
const MAX_WEBHOOKS: usize = 32;
const MAX_NAME_CHARS: usize = 64;

/// Why the file can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum WebhooksError {
    #[error("can't read `{}`", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("`{}` isn't a file of webhooks", path.display())]
    Toml { path: PathBuf, source: Box<toml::de::Error> },
    #[error("`{}` names no webhook: a table `[[webhook]]` is wanted for each, {MAX_WEBHOOKS} at most", .0.display())]
    Count(PathBuf),
    #[error(
        "webhook `{0}`: names are 1 to {MAX_NAME_CHARS} letters, digits, `-` and `_`, and each is there once"
    )]
    Name(String),
    #[error("webhook `{name}`: `url` can't be used")]
    Url { name: String, source: ReceiverError },
    #[error("webhook `{name}`: `events` is empty")]
    NoEvents { name: String },
    #[error(
        "webhook `{name}`: `{}` holds no secret: one line with `whsec_` and 24 to 64 bytes in base64 is wanted, as \
         `echo \"whsec_$(openssl rand -base64 32)\"` makes it", path.display()
    )]
    Secret { name: String, path: PathBuf },
    #[error("{0}")]
    Threshold(&'static str),
}

/// All addresses, and when they are told.
#[derive(Debug)]
pub(crate) struct WebhookSettings {
    pub(super) webhooks: Vec<Webhook>,
    pub(super) thresholds: Thresholds,
}

/// An address.
#[derive(Debug)]
pub(super) struct Webhook {
    /// The webhook's name: deliveries that wait are kept under it.
    pub(super) name: String,
    pub(super) receiver: Receiver,
    pub(super) secret: Secret,
    /// The kinds of notifications that the webhook is told of.
    pub(super) kinds: BTreeSet<Kind>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    webhook: Vec<Table>,
    /// The percentage of a job's budget from which on it is near.
    budget_near: Option<u8>,
    /// After so long without progress a job counts as stalled.
    stalled_after: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    name: String,
    url: String,
    secret_file: PathBuf,
    events: Option<BTreeSet<Kind>>,
}

impl WebhookSettings {
    /// Reads the file, and the secrets that it names. Paths are relative to its folder.
    ///
    /// # Errors
    /// [`WebhooksError`].
    pub(crate) fn read(path: &Path) -> Result<Self, WebhooksError> {
        let text = fs::read_to_string(path)
            .map_err(|source| WebhooksError::File { path: path.to_owned(), source })?;
        let file: File = toml::from_str(&text).map_err(|source| WebhooksError::Toml {
            path: path.to_owned(),
            source: source.into(),
        })?;
        if file.webhook.is_empty() || file.webhook.len() > MAX_WEBHOOKS {
            return Err(WebhooksError::Count(path.to_owned()));
        }
        let thresholds = thresholds(file.budget_near, file.stalled_after.as_deref());
        let thresholds = thresholds.map_err(WebhooksError::Threshold)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut names = BTreeSet::new();
        let mut webhooks = Vec::new();
        for table in file.webhook {
            if !is_name(&table.name) || !names.insert(table.name.clone()) {
                return Err(WebhooksError::Name(table.name));
            }
            webhooks.push(Webhook::of(table, folder)?);
        }
        Ok(Self { webhooks, thresholds })
    }
}

impl Webhook {
    fn of(table: Table, folder: &Path) -> Result<Self, WebhooksError> {
        let Table { name, url, secret_file, events } = table;
        let kinds = events.unwrap_or_else(|| Kind::ALL.into());
        if kinds.is_empty() {
            return Err(WebhooksError::NoEvents { name });
        }
        let receiver = match Receiver::new(&url, TIMEOUT) {
            Ok(receiver) => receiver,
            Err(source) => return Err(WebhooksError::Url { name, source }),
        };
        let path = folder.join(secret_file);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(source) => return Err(WebhooksError::File { path, source }),
        };
        match Secret::parse(&text) {
            Some(secret) => Ok(Self { name, receiver, secret, kinds }),
            None => Err(WebhooksError::Secret { name, path }),
        }
    }
}

fn thresholds(budget_near: Option<u8>, stalled: Option<&str>) -> Result<Thresholds, &'static str> {
    let usual = Thresholds::default();
    let budget_near = budget_near.unwrap_or(usual.budget_near);
    if !(1..=100).contains(&budget_near) {
        return Err("`budget_near` is a percentage from 1 to 100");
    }
    let stalled_after: Millis = match stalled {
        Some(text) => {
            text.parse().map_err(|_| "`stalled_after` is a length of time such as `30min`")?
        }
        None => usual.stalled_after,
    };
    if stalled_after == Millis(0) {
        return Err("`stalled_after` is at least a second");
    }
    Ok(Thresholds { budget_near, stalled_after })
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=MAX_NAME_CHARS).contains(&name.len()) && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::error::error_chain;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n";

    fn read(text: &str) -> Result<WebhookSettings, String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("secret"), SECRET).unwrap();
        fs::write(folder.path().join("short"), "whsec_c2hvcnQ=").unwrap();
        let path = folder.path().join("webhooks.toml");
        fs::write(&path, text).unwrap();
        WebhookSettings::read(&path).map_err(|error| error_chain(&error))
    }

    const ONE: &str =
        "[[webhook]]\nname = \"chat\"\nurl = \"http://127.0.0.1:9/\"\nsecret_file = \"secret\"\n";

    #[test]
    fn a_file_names_addresses_with_their_secrets_and_events() {
        let usual = read(ONE).unwrap();
        assert_eq!(usual.webhooks[0].kinds, Kind::ALL.into());
        assert_eq!(usual.thresholds, Thresholds::default());
        let text = format!(
            "budget_near = 50\nstalled_after = \"1h\"\n{ONE}events = [\"job.done\", \"host.lost\"]\n"
        );
        let own = read(&text).unwrap();
        assert_eq!(own.webhooks[0].kinds, [Kind::JobDone, Kind::HostLost].into());
        assert_eq!(
            own.thresholds,
            Thresholds { budget_near: 50, stalled_after: Millis::from_secs(3600) }
        );
    }

    #[test]
    fn whatever_is_wrong_is_named() {
        for (text, said) in [
            ("", "names no webhook"),
            ("[[webhook]]\nname = 1", "isn't a file of webhooks"),
            (&ONE.replace("chat", "a b"), "webhook `a b`: names are"),
            (&format!("{ONE}{ONE}"), "each is there once"),
            (
                &ONE.replace("http:", "ftp:"),
                "webhook `chat`: `url` can't be used: it is no address",
            ),
            (&ONE.replace("\"secret\"", "\"short\""), "holds no secret"),
            (&ONE.replace("\"secret\"", "\"none\""), "can't read"),
            (&format!("{ONE}events = []"), "`events` is empty"),
            (&format!("{ONE}events = [\"job.begun\"]"), "unknown variant `job.begun`"),
            (&format!("budget_near = 101\n{ONE}"), "a percentage from 1 to 100"),
            (&format!("stalled_after = \"soon\"\n{ONE}"), "such as `30min`"),
            (&format!("stalled_after = \"0s\"\n{ONE}"), "at least a second"),
            (&format!("colour = 1\n{ONE}"), "unknown field `colour`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
