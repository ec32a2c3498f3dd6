//! The clouds that this program was built with: the only place that names them.

use crate::config::Config;
use sojourn_fleet::cloud::Cloud;
use std::collections::BTreeMap;

#[cfg(feature = "ec2")]
pub(crate) use ec2::{account, site};

#[cfg(feature = "ec2")]
mod ec2 {
    use super::{BTreeMap, Cloud, CloudsError, Config};
    use sojourn_ec2::{Ec2, Ec2Settings, SdkConfig, Site, UserData};

    fn settings(config: &Config) -> Result<Ec2Settings, CloudsError> {
        let table = config.ec2.clone().unwrap_or_default();
        let settings: Ec2Settings = table
            .try_into()
            .map_err(|error: toml::de::Error| CloudsError::Wrong(error.message().into()))?;
        settings.validate()?;
        Ok(settings)
    }

    pub(super) fn check(config: &Config) -> Result<(), CloudsError> {
        settings(config).map(drop)
    }

    /// A template with the placeholders that one needs. Nothing is bought with it.
    const NO_USER_DATA: &str = "{{machine}}{{enrolment_token}}";

    /// Which region the SDK's configuration has doesn't matter, but it would be looked for long where there is none.
    async fn connected(settings: &Ec2Settings) -> SdkConfig {
        let region = settings.regions.keys().next().map(String::as_str);
        sojourn_ec2::connect_in(settings.endpoint.as_deref(), region).await
    }

    /// The account, for whoever removes what is in it.
    pub(crate) async fn account(config: &Config) -> Result<Ec2, CloudsError> {
        let settings = settings(config)?;
        let sdk = connected(&settings).await;
        let data = UserData::new(NO_USER_DATA, &BTreeMap::new())?;
        Ok(Ec2::new(&sdk, settings, data)?)
    }

    /// The site of the fleet: its server and what that needs.
    pub(crate) async fn site(config: &Config) -> Result<Site, CloudsError> {
        let settings = settings(config)?;
        let sdk = connected(&settings).await;
        Ok(Site::new(&sdk, settings)?)
    }

    pub(super) async fn connect(
        config: &Config,
        values: BTreeMap<String, String>,
    ) -> Result<impl Cloud + use<>, CloudsError> {
        let settings = settings(config)?;
        let sdk = connected(&settings).await;
        let data = UserData::read(&settings.user_data, &values)?;
        Ok(Ec2::new(&sdk, settings, data)?)
    }
}

#[cfg(not(feature = "ec2"))]
mod ec2 {
    use super::{BTreeMap, Cloud, CloudsError, Config};
    use sojourn_fleet::cloud::{CloudError, CloudMachine, Filled, Offers, Order, Pool};
    use sojourn_protocol::{money::MicroUsd, time::UnixMillis};

    /// The cloud of a program that was built without one: there is none to call.
    enum NoCloud {}

    impl Cloud for NoCloud {
        async fn offers(&self) -> Result<Offers, CloudError> {
            match *self {}
        }

        async fn spot_price_at(
            &self,
            _: &Pool,
            _: UnixMillis,
        ) -> Result<Option<MicroUsd>, CloudError> {
            match *self {}
        }

        async fn machines(&self) -> Result<Vec<CloudMachine>, CloudError> {
            match *self {}
        }

        async fn buy(&self, _: &Order) -> Result<Filled, CloudError> {
            match *self {}
        }

        async fn end(&self, _: &str, _: &[String]) -> Result<(), CloudError> {
            match *self {}
        }
    }

    pub(super) fn check(_: &Config) -> Result<(), CloudsError> {
        Ok(())
    }

    pub(super) async fn connect(
        _: &Config,
        _: BTreeMap<String, String>,
    ) -> Result<impl Cloud + use<>, CloudsError> {
        Err::<NoCloud, _>(CloudsError::NotBuilt)
    }
}

/// Why there is no cloud.
#[derive(Debug, thiserror::Error)]
pub enum CloudsError {
    /// The program was built without the cloud that the file names.
    #[error("this program was built without EC2")]
    NotBuilt,
    /// The table of the cloud can't be understood.
    #[error("`[ec2]`: {0}")]
    Wrong(String),
    /// A setting can't be.
    #[cfg(feature = "ec2")]
    #[error("`[ec2]`: {0}")]
    Settings(#[from] sojourn_ec2::SettingsError),
    /// The file isn't that of a server which is made.
    #[cfg(feature = "ec2")]
    #[error(transparent)]
    Site(#[from] sojourn_ec2::SiteError),
    /// The machines' user data can't be read or filled in.
    #[cfg(feature = "ec2")]
    #[error(transparent)]
    UserData(#[from] sojourn_ec2::UserDataError),
}

/// Is what the file says of its cloud sound? Nothing is asked of the cloud.
///
/// # Errors
/// With what is wrong.
pub fn check(config: &Config) -> Result<(), CloudsError> {
    ec2::check(config)
}

/// The cloud that the file names; `values` are those of the placeholders of the machines' user data.
///
/// # Errors
/// With what is wrong, and where the program was built without it.
pub async fn connect(
    config: &Config,
    values: BTreeMap<String, String>,
) -> Result<impl Cloud + use<>, CloudsError> {
    ec2::connect(config, values).await
}
