//! Where a server keeps its journal, by URL.

use crate::cli::{
    serve::{open_error::OpenError, redis},
    terminal::{exit::Failure, secrets},
};
use sojourn_http::Backoff;
use sojourn_protocol::error::error_chain;
use sojourn_server::journal::{Durability, Journal, JournalError, OpenJournal, SqliteJournal};
use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

/// The journal of a server.
#[derive(Debug, clap::Args)]
pub(crate) struct JournalArgs {
    /// Where the journal is: `sqlite:FILE`, or a Redis, `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`; `rediss://` over
    /// TLS, `redis+sentinel://[USER:PASSWORD@]HOST[:PORT],.../SERVICE[/DB]` by Sentinel, `redis+unix:///SOCKET`. With
    /// `?name=NAME` one Redis holds several deployments. Of several servers with one Redis one is active and the
    /// others stand by [default: a file in the data folder].
    #[arg(long, env = "SOJOURN_JOURNAL", hide_env_values = true, value_name = "URL")]
    journal: Option<Place>,
    /// A file with that URL, for one with a password: others can read a command line.
    #[arg(long, env = "SOJOURN_JOURNAL_FILE", value_name = "FILE", conflicts_with = "journal")]
    journal_file: Option<PathBuf>,
    /// When an event counts as durable in Redis: once it is in its append-only file (always), which is synced once a
    /// second (everysec), or at once (none); with wait:N, once N replicas have it. E.g. `always` or
    /// `everysec,wait:1`. Redis must be set up for what is chosen.
    #[arg(long, env = "SOJOURN_REDIS_DURABILITY", value_name = "WORDS", default_value_t)]
    redis_durability: Durability,
}

/// The place that a journal's URL names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// An SQLite file.
    Sqlite(PathBuf),
    /// A URL of Redis.
    Redis(String),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(file) = text.strip_prefix("sqlite:") {
            // `sqlite:///a/b` and `sqlite:a/b`.
            let file = file.strip_prefix("//").unwrap_or(file);
            return if file.is_empty() {
                Err("`sqlite:` must be followed by a file's path".to_owned())
            } else {
                Ok(Self::Sqlite(file.into()))
            };
        }
        redis::check(text).map(|()| Self::Redis(text.to_owned()))
    }
}

impl Place {
    /// The place whose URL is in a file.
    pub(crate) fn in_file(file: &Path) -> Result<Self, Failure> {
        let wrong = |error| Failure::call(format!("`{}`: {error}", file.display()));
        secrets::read(file)?.parse().map_err(wrong)
    }

    /// The journal there; `folder` is for notes about it.
    pub(crate) fn journals(
        &self,
        durability: Durability,
        folder: &Path,
    ) -> Result<Arc<dyn OpenJournal>, Failure> {
        Ok(self.connect(durability, folder)?)
    }

    fn connect(
        &self,
        durability: Durability,
        folder: &Path,
    ) -> Result<Arc<dyn OpenJournal>, OpenError> {
        match self {
            Self::Sqlite(file) => {
                let file = file.clone();
                let open = move || -> Result<Box<dyn Journal>, JournalError> {
                    Ok(Box::new(SqliteJournal::open(&file)?))
                };
                Ok(Arc::new(open))
            }
            Self::Redis(url) => {
                std::fs::create_dir_all(folder).map_err(|error| {
                    OpenError::Other(format!("can't use `{}`: {error}", folder.display()))
                })?;
                redis::connect(url, durability, folder)
            }
        }
    }
}

/// Pauses between attempts to reach a journal's storage.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// See [`FIRST_PAUSE`].
const MAX_PAUSE: Duration = Duration::from_secs(10);

impl JournalArgs {
    /// The journal that was asked for; none where it is to be in the data folder. A Redis that can't be reached is waited for: a
    /// machine may start before it.
    pub(crate) async fn journals(
        &self,
        data: &Path,
    ) -> Result<Option<Arc<dyn OpenJournal>>, Failure> {
        let in_file = self.journal_file.as_deref().map(Place::in_file).transpose()?;
        let Some(place) = self.journal.as_ref().or(in_file.as_ref()) else { return Ok(None) };
        let mut backoff = Backoff::from(FIRST_PAUSE, MAX_PAUSE);
        loop {
            match place.connect(self.redis_durability, data) {
                Ok(journals) => return Ok(Some(journals)),
                Err(OpenError::Unreachable(error)) => {
                    let error = error_chain(&error);
                    tracing::warn!(error, "waiting for the journal");
                    tokio::time::sleep(backoff.next(None)).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journals_are_named_by_url() {
        assert_eq!("sqlite:a/b".parse(), Ok(Place::Sqlite("a/b".into())));
        assert_eq!("sqlite:///a/b".parse(), Ok(Place::Sqlite("/a/b".into())));
        let redis = "redis://127.0.0.1/2";
        assert_eq!(redis.parse(), Ok(Place::Redis(redis.into())));
        for bad in ["sqlite:", "postgres://a", "journal.sqlite", ""] {
            assert!(bad.parse::<Place>().is_err(), "{bad}");
        }
    }
}
