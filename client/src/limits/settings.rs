//! `client.toml`: what a client is told in its file. Errors name the file, the line and the key.

use super::{Limits, ZoneName};
use serde::Deserialize;
use sojourn_files::if_exists;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The name of the file in the data folder.
pub const SETTINGS_FILE: &str = "client.toml";

/// All that the file may say; what it doesn't, the environment or a flag may, and has the last word.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The server's address.
    pub server: Option<String>,
    /// A PEM file of authorities to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// The machine's name.
    pub name: Option<String>,
    /// Which GPUs to train on.
    pub gpus: Option<String>,
    /// Units that run at once on the cores, beside those on GPUs.
    pub cpu_slots: Option<u32>,
    /// The purpose of the cache of shards: `speed` or `room`.
    pub cache_for: Option<String>,
    /// How often to keep what a unit has trained, in seconds.
    pub keep_seconds: Option<u32>,
    /// The address of the metadata service, or `none`.
    pub metadata: Option<String>,
    /// Whether failures are reported with the end of the trainer's log.
    pub send_log: Option<bool>,
    /// `none`, for no files of the log.
    pub log: Option<String>,
    /// The trainer program.
    pub trainer: Option<PathBuf>,
    /// The machine's time zone, where the system doesn't know it or has another one.
    pub timezone: Option<ZoneName>,
    /// The limits.
    pub limits: Limits,
}

/// Why settings can't be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum SettingsError {
    #[error("can't read `{}`", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("can't write `{}`", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// A line of the file isn't TOML, names an unknown setting, or gives one a value that it can't have.
    #[error("`{}`, line {line}{}: {message}", path.display(), key.as_ref().map_or_else(String::new, |key| format!(", `{key}`")))]
    File { path: PathBuf, line: usize, key: Option<String>, message: String },
    #[error(
        "the limits hold and are in the file, but at the next start a flag goes over them: `replaced-limits.json` can't be written"
    )]
    Replaced { source: io::Error },
    /// A limit that was given by hand isn't one.
    #[error("limit `{given}`: {message}")]
    Given { given: String, message: String },
}

impl Settings {
    /// Reads the file's text; none where there is no file.
    pub(super) fn text(path: &Path) -> Result<Option<String>, SettingsError> {
        if_exists(fs::read_to_string(path))
            .map_err(|source| SettingsError::Read { path: path.to_owned(), source })
    }

    /// Takes the file's text apart.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, SettingsError> {
        toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let before = text.get(..start).unwrap_or(text);
            let line = before.matches('\n').count();
            let key = text.lines().nth(line).and_then(|line| line.split_once('='));
            SettingsError::File {
                path: path.to_owned(),
                line: line + 1,
                key: key.map(|(key, _)| key.trim().to_owned()),
                message: error.message().trim_end().replace('\n', " "),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Settings, String> {
        Settings::parse(Path::new("/etc/client.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn all_settings_of_the_file_are_read() {
        let settings =
            read("server = 'https://a'\nkeep_seconds = 5\n\n[limits]\ncpu = 50\n").unwrap();
        assert_eq!(settings.server.as_deref(), Some("https://a"));
        assert_eq!(settings.limits.cpu.map(|ratio| ratio.at(None).get()), Some(50));
        assert_eq!(read("").unwrap(), Settings::default());
    }

    #[test]
    fn errors_name_file_line_and_key() {
        for (text, wanted) in [
            ("# mine\nserver = 5", "`/etc/client.toml`, line 2, `server`: invalid type"),
            ("\n[limits]\ncpu = 50\nidle = 3", "line 4, `idle`: unknown field `idle`"),
            ("[limits]\n\nhours = '22-6'", "line 3, `hours`: `22-6`: hours are wanted"),
            ("[limits]\ncpu = 0.5", "line 2, `cpu`: a text or a whole number is wanted"),
            (
                "sever = 'https://a'",
                "line 1, `sever`: unknown field `sever`, expected one of `server`",
            ),
            ("server = 'https://a", "line 1, `server`: "),
            (
                "timezone = 'Europe/Berlim'",
                "line 1, `timezone`: `Europe/Berlim`: this machine knows no such time zone",
            ),
            ("[limit]", "line 1: unknown field `limit`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
