//! The paths of a service's files.

use sojourn_programs::{
    exit::Failure,
    local::{absolute, data_folder},
};
use std::{
    env,
    path::{Path, PathBuf},
};

/// The unit's name.
pub(super) const NAME: &str = "sojourn-client.service";
/// The folder below systemd's folder for states in which the machine's client keeps its data.
pub(super) const STATE: &str = "sojourn-client";

/// The owner of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// One person's.
    User,
    /// The machine's.
    System,
}

/// The paths of one service.
#[derive(Debug)]
pub(super) struct ServicePaths {
    scope: Scope,
    /// The folder of settings.
    config: PathBuf,
}

impl ServicePaths {
    pub(super) fn of(scope: Scope) -> Result<Self, Failure> {
        let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
        let config = absolute("XDG_CONFIG_HOME").or_else(home);
        match (scope, config) {
            (Scope::System, _) => Ok(Self { scope, config: PathBuf::from("/etc") }),
            (Scope::User, Some(config)) => Ok(Self { scope, config }),
            (Scope::User, None) => {
                Err(Failure::call("`HOME` isn't set, so that there is no place for your settings"))
            }
        }
    }

    pub(super) fn is_user(&self) -> bool {
        self.scope == Scope::User
    }

    pub(super) fn unit(&self) -> PathBuf {
        let folder = if self.is_user() { "systemd/user" } else { "systemd/system" };
        self.config.join(folder).join(NAME)
    }

    /// The links by which `systemctl enable` has systemd start the unit.
    pub(super) fn links(&self) -> Vec<PathBuf> {
        let unit = self.unit();
        let target =
            if self.is_user() { "default.target.wants" } else { "multi-user.target.wants" };
        unit.parent().map(|folder| folder.join(target).join(NAME)).into_iter().collect()
    }

    /// The environment that the client starts with; it holds the token.
    pub(super) fn settings(&self) -> PathBuf {
        self.config.join("sojourn/client.env")
    }

    /// The folders of the client's data.
    pub(super) fn data(&self) -> Vec<PathBuf> {
        match self.scope {
            Scope::User => vec![data_folder("client")],
            // A dynamic user's: the name leads to where it really is.
            Scope::System => ["/var/lib/private", "/var/lib"]
                .map(|folder| PathBuf::from(folder).join(STATE))
                .into(),
        }
    }

    /// Folders that may be empty then.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        let settings = self.config.join("sojourn");
        let links = self.links();
        let links = links.iter().filter_map(|link| link.parent()).map(Path::to_owned);
        match (self.scope, data_folder("client").parent()) {
            (Scope::User, Some(data)) => links.chain([settings, data.to_owned()]).collect(),
            _ => vec![settings],
        }
    }

    pub(super) fn scope_args(&self) -> &'static [&'static str] {
        if self.is_user() { &["--user"] } else { &[] }
    }

    /// A call of `systemctl`, for people.
    pub(super) fn command(&self, args: &[&str]) -> String {
        [&["systemctl"], self.scope_args(), args].concat().join(" ")
    }

    pub(super) fn log_command(&self) -> String {
        [&["journalctl"], self.scope_args(), &["-f", "-u", NAME]].concat().join(" ")
    }
}
