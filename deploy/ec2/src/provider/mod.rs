//! EC2 as a [`Provider`]: the table `[ec2]` of a fleet's file, and what programs ask of the account that it describes.
//!
//! | file | holds |
//! |---|---|
//! | `site` | the site behind the trait of all clouds |
//! | `file` | the table as the server's machine gets it |

mod file;
mod site;

use crate::{
    Ec2, Ec2Settings, RegionCheck, SettingsError, UserData, UserDataError, connection,
    site::{Site, SiteError},
};
use async_trait::async_trait;
use aws_config::SdkConfig;
use site::Ec2Site;
use sojourn_clouds::{Account, Holdings, Leaving, Provider, ProviderError, SiteDefaults};
use sojourn_fleet::cloud::{Cloud, CloudError};
use sojourn_protocol::error::error_chain;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};
use toml::{Table, Value};

/// The name of the table.
const TABLE: &str = "ec2";
/// A template with the placeholders that one needs. Nothing is bought with it.
const NO_USER_DATA: &str = "{{machine}}{{enrolment_token}}";
/// The paths of the server's machine, and its address there.
const SITE_DEFAULTS: SiteDefaults = SiteDefaults {
    server: "https://127.0.0.1:8642",
    token_file: "/etc/sojourn/autoscaler-token",
    ca: "/etc/sojourn/server.pem",
};

/// Amazon EC2.
#[derive(Debug, Clone, Copy)]
pub struct Ec2Provider;

/// The account of a table `[ec2]`.
#[derive(Debug)]
struct Ec2Account {
    settings: Ec2Settings,
    /// The file with the user data of the fleet's machines, where the owner has named one.
    own_user_data: Option<PathBuf>,
}

impl Provider for Ec2Provider {
    fn table(&self) -> &'static str {
        TABLE
    }

    fn title(&self) -> &'static str {
        "Amazon EC2"
    }

    fn contents(&self) -> &'static str {
        "the regions, images and subnets"
    }

    fn site_defaults(&self, table: &Table) -> Option<SiteDefaults> {
        table.contains_key("server").then_some(SITE_DEFAULTS)
    }

    fn read(
        &self,
        table: &Table,
        fleet: &str,
        folder: &Path,
    ) -> Result<Box<dyn Account>, ProviderError> {
        let own_user_data = table.get("user_data").and_then(Value::as_str);
        let own_user_data = own_user_data.map(|path| folder.join(path));
        let table = of_this_file(table.clone(), fleet, folder);
        let settings: Result<Ec2Settings, toml::de::Error> = table.try_into();
        let settings = settings.map_err(|error| wrong(error.message()))?;
        settings.validate()?;
        Ok(Box::new(Ec2Account { settings, own_user_data }))
    }
}

/// The table with what it needn't say: the fleet's name, whole paths, and the user data that a server's machine has.
fn of_this_file(mut table: Table, fleet: &str, folder: &Path) -> Table {
    let text = |text: &str| Value::String(text.to_owned());
    table.entry("fleet").or_insert_with(|| text(fleet));
    let whole = |path: &mut Value| {
        if let Value::String(path) = path
            && let Some(whole) = folder.join(&*path).to_str()
        {
            whole.clone_into(path);
        }
    };
    table.get_mut("user_data").into_iter().for_each(whole);
    if let Some(Value::Table(server)) = table.get_mut("server") {
        server.get_mut("dist").into_iter().for_each(whole);
        table.entry("user_data").or_insert_with(|| text(file::USER_DATA));
    }
    table
}

fn wrong(message: &str) -> ProviderError {
    ProviderError::File(format!("`[{TABLE}]`: {message}"))
}

impl From<SettingsError> for ProviderError {
    fn from(error: SettingsError) -> Self {
        wrong(&error_chain(&error))
    }
}

impl From<UserDataError> for ProviderError {
    fn from(error: UserDataError) -> Self {
        Self::File(error_chain(&error))
    }
}

impl From<SiteError> for ProviderError {
    /// The file's or the call's fault, or that of AWS.
    fn from(error: SiteError) -> Self {
        let text = error_chain(&error);
        match error {
            SiteError::Call(_)
            | SiteError::Ended { .. }
            | SiteError::Slow { .. }
            | SiteError::Pack(_)
            | SiteError::Bucket(_) => Self::Work(text),
            _ => Self::File(text),
        }
    }
}

impl Ec2Account {
    /// Which region the SDK's configuration has doesn't matter, but it would be looked for long where there is none.
    async fn connected(&self) -> SdkConfig {
        let region = self.settings.regions.keys().next().map(String::as_str);
        connection::connect_in(self.settings.endpoint.as_deref(), region).await
    }
}

#[async_trait(?Send)]
impl Account for Ec2Account {
    async fn connect(
        &self,
        values: &BTreeMap<String, String>,
    ) -> Result<Arc<dyn Cloud>, ProviderError> {
        let sdk = self.connected().await;
        let data = UserData::read(&self.settings.user_data, values)?;
        Ok(Arc::new(Ec2::new(&sdk, self.settings.clone(), data)?))
    }

    async fn open(&self) -> Result<Box<dyn Holdings>, ProviderError> {
        let sdk = self.connected().await;
        let data = UserData::new(NO_USER_DATA, &BTreeMap::new())?;
        Ok(Box::new(Ec2::new(&sdk, self.settings.clone(), data)?))
    }

    async fn site(&self) -> Result<Box<dyn sojourn_clouds::Site>, ProviderError> {
        let sdk = self.connected().await;
        let site = Site::new(&sdk, self.settings.clone())?;
        let fleet = self.settings.fleet.clone();
        Ok(Box::new(Ec2Site { site, fleet, own_user_data: self.own_user_data.clone() }))
    }
}

#[async_trait(?Send)]
impl Holdings for Ec2 {
    async fn check(&self) -> Result<Vec<String>, CloudError> {
        let regions = Ec2::check(self).await?;
        Ok(regions.iter().flat_map(sentences).collect())
    }

    async fn leavings(&self) -> Result<Vec<Leaving>, CloudError> {
        Ok(Ec2::leavings(self).await?.into_iter().map(Leaving::from).collect())
    }

    async fn remove_all(&self) -> Result<Vec<Leaving>, CloudError> {
        Ok(Ec2::remove_all(self).await?.into_iter().map(Leaving::from).collect())
    }
}

/// The things that a region has of what the file names, and the types that can't be bought there.
fn sentences(of: &RegionCheck) -> Vec<String> {
    let zones: Vec<&str> = of.subnets.keys().map(String::as_str).collect();
    let mut sentences = vec![format!(
        "{}: image {} for {}, subnets in {}, {} types of the file are sold.",
        of.region,
        of.image,
        of.architecture,
        zones.join(", "),
        of.types
    )];
    if !of.unlisted.is_empty() {
        sentences.push(format!(
            "{}: without a list price these aren't bought: {}.",
            of.region,
            of.unlisted.join(", ")
        ));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    #[test]
    fn the_table_gets_what_it_need_not_say() {
        let plain = of_this_file(table("user_data = 'user-data.yaml'"), "team", Path::new("/etc"));
        assert_eq!(plain["user_data"].as_str(), Some("/etc/user-data.yaml"));
        assert_eq!(plain["fleet"].as_str(), Some("team"));
        let with_server = table("fleet = 'own'\n[server]\ndist = 'target/dist'\n");
        let with_server = of_this_file(with_server, "team", Path::new("/home/me"));
        assert_eq!(with_server["user_data"].as_str(), Some(file::USER_DATA));
        assert_eq!(with_server["server"]["dist"].as_str(), Some("/home/me/target/dist"));
        assert_eq!(with_server["fleet"].as_str(), Some("own"));
    }

    #[test]
    fn a_wrong_table_is_told_by_its_name() {
        let read = |text: &str| Ec2Provider.read(&table(text), "night", Path::new("")).err();
        let wrong = "`[ec2]`: missing field `regions`";
        assert_eq!(read("user_data = 'x'"), Some(ProviderError::File(wrong.to_owned())));
        let wrong = "`[ec2]`: `ec2.regions` names no region";
        assert_eq!(read("user_data = 'x'\n[regions]"), Some(ProviderError::File(wrong.to_owned())));
        assert_eq!(read("user_data = 'x'\n[regions.eu-west-1]\nimage = 'ami-1'"), None);
    }

    #[test]
    fn only_a_table_with_a_server_lets_keys_be_left_out() {
        assert_eq!(Ec2Provider.site_defaults(&table("[servers]")), None);
        assert_eq!(Ec2Provider.site_defaults(&table("[server]")), Some(SITE_DEFAULTS));
    }
}
