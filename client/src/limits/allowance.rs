//! The limits that hold at the moment: those of the file, and those given by hand, which take precedence.

use super::{Limits, Settings, SettingsError, replaced::Replaced, settings::SETTINGS_FILE};
use crate::storage::folder::write_lasting;
use std::{
    fs,
    path::{Path, PathBuf},
};
use toml_edit::{DocumentMut, Item, Table, Value};

/// A limit as it is given by hand: `cpu=50`, or `cpu=` for none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    key: String,
    /// None takes the limit away.
    value: Option<String>,
}

impl std::str::FromStr for Change {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or("`KEY=VALUE` is wanted, e.g. `cpu=50`")?;
        let value = Some(value.trim()).filter(|value| !value.is_empty());
        Ok(Self { key: key.trim().to_owned(), value: value.map(str::to_owned) })
    }
}

impl Change {
    /// The change that sets `key` to `value`.
    #[must_use]
    pub fn new(key: &str, value: &str) -> Self {
        Self { key: key.to_owned(), value: Some(value.to_owned()) }
    }

    fn text(&self) -> String {
        format!("{}={}", self.key, self.value_text())
    }

    /// The value as it is given; empty where it takes the limit away.
    fn value_text(&self) -> &str {
        self.value.as_deref().unwrap_or_default()
    }
}

/// Limits, and where they come from.
#[derive(Debug, Clone, Default)]
pub struct Allowance {
    /// Where changes are written; nowhere for a client without a file.
    path: Option<PathBuf>,
    /// Limits from flags and the environment. They hold until the owner changes them.
    overrides: Vec<Change>,
    /// Limits of flags that the owner has changed.
    replaced: Replaced,
    settings: Settings,
}

impl Allowance {
    /// Reads the file `config`, which must be there, or the one of the data folder, which may; `overrides` go over
    /// its limits, unless the owner has replaced the same ones while the client ran.
    ///
    /// # Errors
    /// A file that can't be read, or a limit that is none.
    pub fn read(
        config: Option<&Path>,
        data: &Path,
        mut overrides: Vec<Change>,
    ) -> Result<Self, SettingsError> {
        let path = config.map_or_else(|| data.join(SETTINGS_FILE), Path::to_owned);
        let text = Settings::text(&path)?;
        if let (None, Some(path)) = (&text, config) {
            let source = std::io::ErrorKind::NotFound.into();
            return Err(SettingsError::Read { path: path.to_owned(), source });
        }
        let text = text.unwrap_or_default();
        // Faults of the file are reported before those of limits given by hand.
        Settings::parse(&path, &text)?;
        let mut replaced = Replaced::read(data)
            .map_err(|source| SettingsError::Read { path: Replaced::path_in(data), source })?;
        replaced.retain(|limit, value| {
            let mut given = overrides.iter().filter(|given| given.key == limit);
            given.next_back().is_some_and(|last| last.value_text() == value)
        });
        let holds = |given: &Change| !replaced.has(&given.key, given.value_text());
        overrides.retain(holds);
        let settings = Settings::parse(&path, &changed(&path, &text, &overrides)?)?;
        Ok(Self { path: Some(path), overrides, replaced, settings })
    }

    /// The settings that hold.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The limits that hold.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    /// Where changes are kept.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Limits of flags that don't hold, since the owner has replaced them, with the flags' values.
    pub(crate) fn replaced(&self) -> impl Iterator<Item = (&str, &str)> {
        self.replaced.iter()
    }

    /// Forgets replaced limits whose flags say something else by now.
    pub(crate) fn forget_replaced(&mut self) -> std::io::Result<()> {
        self.replaced.write()
    }

    /// Has other limits hold, and keeps them in the file, whose other lines stay as they are.
    ///
    /// # Errors
    /// A limit that is none, or a file that can't be read or written; nothing has changed then.
    pub(crate) fn change(&mut self, changes: &[Change]) -> Result<(), SettingsError> {
        let Some(path) = &self.path else { return Ok(()) };
        let text = Settings::text(path)?.unwrap_or_default();
        let text = changed(path, &text, changes)?;
        let mut overrides = self.overrides.clone();
        let mut replaced = self.replaced.clone();
        overrides.retain(|own| {
            let is_changed = changes.iter().any(|change| change.key == own.key);
            if is_changed {
                replaced.insert(&own.key, own.value_text());
            }
            !is_changed
        });
        let settings = Settings::parse(path, &changed(path, &text, &overrides)?)?;
        let mode = fs::metadata(path).map(|meta| meta.permissions());
        write_lasting(path, text.as_bytes())
            .and_then(|()| mode.map_or(Ok(()), |mode| fs::set_permissions(path, mode)))
            .map_err(|source| SettingsError::Write { path: path.clone(), source })?;
        (self.overrides, self.settings) = (overrides, settings);
        let kept = replaced.write();
        self.replaced = replaced;
        kept.map_err(|source| SettingsError::Replaced { source })
    }
}

/// The text with other limits; its comments and its order are kept.
fn changed(path: &Path, text: &str, changes: &[Change]) -> Result<String, SettingsError> {
    if changes.is_empty() {
        return Ok(text.to_owned());
    }
    // Says it better than what follows.
    Settings::parse(path, text)?;
    let refused = |change: &Change, message: &str| SettingsError::Given {
        given: change.text(),
        message: message.trim_end().replace('\n', " "),
    };
    let mut document: DocumentMut = text.parse().unwrap_or_default();
    for change in changes {
        let limits = document.entry("limits").or_insert_with(|| Item::Table(Table::new()));
        let Some(limits) = limits.as_table_like_mut() else {
            return Err(refused(change, "`limits` is no table in the file"));
        };
        match &change.value {
            None => drop(limits.remove(&change.key)),
            Some(text) => {
                let mut value = value(text);
                match limits.get_mut(&change.key) {
                    Some(item) => {
                        if let Some(before) = item.as_value() {
                            // The comment behind it.
                            *value.decor_mut() = before.decor().clone();
                        }
                        *item = Item::Value(value);
                    }
                    None => drop(limits.insert(&change.key, Item::Value(value))),
                }
            }
        }
        // Each for itself, so that it is known which is wrong.
        let checked: Result<Settings, _> = toml::from_str(&document.to_string());
        if let Err(error) = checked {
            return Err(refused(change, error.message()));
        }
        if change.value.is_none() && !is_limit(&change.key) {
            return Err(refused(change, "there is no such limit"));
        }
    }
    Ok(document.to_string())
}

/// Numbers, truth and tables as such, everything else as text.
fn value(text: &str) -> Value {
    if let Ok(number) = text.parse::<i64>() {
        return number.into();
    }
    // Values by the hour.
    if text.starts_with('{')
        && let Ok(table) = text.parse::<Value>()
    {
        return table;
    }
    text.parse::<bool>().map_or_else(|_| text.into(), Value::from)
}

/// Is there such a limit? Whatever its values are, their names are known.
fn is_limit(key: &str) -> bool {
    let unlikely: Result<Limits, _> = toml::from_str(&format!("{key:?} = []"));
    unlikely.map_or_else(|error| !error.message().contains("unknown field"), |_| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# my machine\nname = 'a' # lab 7\n\n[limits]\n# at night it may do more\ncpu = 50 # percent\nnice = 19\n";

    fn changes(texts: &[&str]) -> Vec<Change> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn changes_keep_what_they_do_not_touch() {
        let change = |texts: &[&str]| changed(Path::new("f"), FILE, &changes(texts));
        let made =
            change(&["cpu=30", "nice=", "hours=22:00-06:00", "not_on_battery = true"]).unwrap();
        assert_eq!(
            made,
            "# my machine\nname = 'a' # lab 7\n\n[limits]\n# at night it may do more\ncpu = 30 # percent\n\
             hours = \"22:00-06:00\"\nnot_on_battery = true\n"
        );
        assert_eq!(
            changed(Path::new("f"), "", &changes(&["cpu=30"])).unwrap(),
            "[limits]\ncpu = 30\n"
        );
        let by_hour = "cpu={ \"09:00-17:00\" = 25, else = 100 }";
        assert_eq!(
            changed(Path::new("f"), "", &changes(&[by_hour])).unwrap(),
            "[limits]\ncpu = { \"09:00-17:00\" = 25, else = 100 }\n"
        );
        for (wrong, wanted) in [
            ("cpu=0", "limit `cpu=0`: `0`: 1 to 100 percent are wanted"),
            ("cpus=5", "limit `cpus=5`: unknown field `cpus`"),
            ("cpus=", "limit `cpus=`: there is no such limit"),
            ("slots=many", "limit `slots=many`: invalid type"),
            ("slots=0", "limit `slots=0`: `0`: 1 to 1024 is wanted"),
            ("slots=100000", "limit `slots=100000`: `100000`: 1 to 1024 is wanted"),
            ("threads=0", "limit `threads=0`: `0`: 1 to 65536 is wanted"),
        ] {
            let error = change(&["nice=5", wrong]).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
        assert!("cpu".parse::<Change>().is_err());
    }

    #[test]
    fn limits_of_the_command_line_override_the_file_until_they_are_changed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("client.toml");
        fs::write(&file, FILE).unwrap();
        let mut allowance =
            Allowance::read(None, folder.path(), changes(&["cpu=20", "slots=2"])).unwrap();
        let cpu = |allowance: &Allowance| {
            allowance.limits().cpu.as_ref().map(|ratio| ratio.lowest().get())
        };
        assert_eq!((cpu(&allowance), allowance.limits().slots), (Some(20), Some(2)));
        allowance.change(&changes(&["nice=5"])).unwrap();
        assert_eq!(cpu(&allowance), Some(20));
        allowance.change(&changes(&["cpu=70"])).unwrap();
        assert_eq!((cpu(&allowance), allowance.limits().slots), (Some(70), Some(2)));
        let written = fs::read_to_string(&file).unwrap();
        assert_eq!(written, FILE.replace("50", "70").replace("19", "5"), "flags aren't written");
        assert!(allowance.change(&changes(&["cpu=700"])).is_err());
        assert_eq!(cpu(&allowance), Some(70));
        assert_eq!(fs::read_to_string(&file).unwrap(), written);
    }

    #[test]
    fn a_limit_that_the_owner_changed_holds_over_the_same_flag_until_the_flag_says_something_else()
    {
        let folder = tempfile::tempdir().unwrap();
        let read = |flags: &[&str]| Allowance::read(None, folder.path(), changes(flags)).unwrap();
        let cpu = |allowance: &Allowance| {
            allowance.limits().cpu.as_ref().map(|ratio| ratio.lowest().get())
        };
        let flags = ["cpu=50", "nice=5"];
        let mut allowance = read(&flags);
        allowance.change(&changes(&["cpu=30"])).unwrap();
        // A restart, an update, a reboot: the service gives its flags again.
        let again = read(&flags);
        assert_eq!((cpu(&again), again.limits().nice.map(|nice| nice.get())), (Some(30), Some(5)));
        assert_eq!(again.replaced().collect::<Vec<_>>(), [("cpu", "50")]);
        // Taken away by the owner, it stays away.
        read(&flags).change(&changes(&["cpu="])).unwrap();
        assert_eq!(cpu(&read(&flags)), None);
        // Another flag is a later word.
        let mut other = read(&["cpu=60"]);
        assert_eq!((cpu(&other), other.replaced().count()), (Some(60), 0));
        other.forget_replaced().unwrap();
        assert_eq!(cpu(&read(&flags)), Some(50));
        fs::write(folder.path().join("replaced-limits.json"), "{").unwrap();
        let error = Allowance::read(None, folder.path(), changes(&flags)).unwrap_err();
        assert!(error.to_string().contains("replaced-limits.json"), "{error}");
    }

    #[test]
    fn the_file_of_the_folder_may_be_missing_and_one_that_is_named_may_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut allowance = Allowance::read(None, folder.path(), Vec::new()).unwrap();
        assert_eq!(*allowance.limits(), Limits::default());
        allowance.change(&changes(&["cpu=70"])).unwrap();
        assert_eq!(
            fs::read_to_string(folder.path().join(SETTINGS_FILE)).unwrap(),
            "[limits]\ncpu = 70\n"
        );
        let named = folder.path().join("other.toml");
        let error = Allowance::read(Some(&named), folder.path(), Vec::new()).unwrap_err();
        assert!(error.to_string().contains("other.toml"), "{error}");
    }
}
