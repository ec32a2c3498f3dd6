//! The site behind the trait of all clouds.

use super::{SITE_DEFAULTS, file::filled};
use crate::site::{ADDRESS_PLACEHOLDER, PORT, PartState, Placement, ServerFiles, Site};
use async_trait::async_trait;
use sojourn_clouds::{Costs, Leaving, ProviderError, ServerMachine, SiteDefaults};
use std::{fs, path::PathBuf};
use toml_edit::{DocumentMut, TomlError};

/// The site of a table `[ec2]` with a server.
#[derive(Debug)]
pub(super) struct Ec2Site {
    pub(super) site: Site,
    pub(super) fleet: String,
    /// The file with the user data of the fleet's machines, where the owner has named one.
    pub(super) own_user_data: Option<PathBuf>,
}

impl Ec2Site {
    /// The owner's own user data for the fleet's machines.
    fn user_data(&self) -> Result<Option<String>, ProviderError> {
        let Some(path) = &self.own_user_data else { return Ok(None) };
        let unread = |error| ProviderError::File(format!("`{}`: {error}", path.display()));
        fs::read_to_string(path).map(Some).map_err(unread)
    }

    fn neutral(&self, one: PartState) -> sojourn_clouds::PartState {
        let name = one.part.name(&self.fleet);
        sojourn_clouds::PartState { part: one.part.to_string(), name, id: one.id, state: one.state }
    }
}

#[async_trait(?Send)]
impl sojourn_clouds::Site for Ec2Site {
    fn region(&self) -> &str {
        self.site.region()
    }

    fn costs(&self) -> Costs {
        self.site.costs()
    }

    fn price_key(&self) -> &'static str {
        "[ec2.server] price"
    }

    fn defaults(&self) -> SiteDefaults {
        SITE_DEFAULTS
    }

    fn server_address(&self) -> String {
        format!("https://{ADDRESS_PLACEHOLDER}:{PORT}")
    }

    fn check(&self) -> Result<(), ProviderError> {
        self.site.check()?;
        self.user_data().map(drop)
    }

    async fn look(&self) -> Result<Vec<sojourn_clouds::PartState>, ProviderError> {
        let found = self.site.look().await?;
        Ok(found.into_iter().map(|one| self.neutral(one)).collect())
    }

    async fn up(
        &self,
        file: &str,
        seen: &mut dyn FnMut(sojourn_clouds::PartState),
    ) -> Result<ServerMachine, ProviderError> {
        let wrong = |error: TomlError| ProviderError::File(format!("the fleet's file: {error}"));
        let file: DocumentMut = file.parse().map_err(wrong)?;
        let user_data = self.user_data()?;
        let files = |placement: &Placement| ServerFiles {
            fleet: filled(file, placement, user_data.is_some()),
            user_data,
        };
        let server = self.site.up(files, |one| seen(self.neutral(one))).await?;
        let url = server.url();
        Ok(ServerMachine { instance: server.instance, address: server.address, url })
    }

    fn login(&self, server: &ServerMachine) -> String {
        let (region, instance) = (self.site.region(), &server.instance);
        format!("aws ssm start-session --region {region} --target {instance}")
    }

    async fn leavings(&self) -> Result<Vec<Leaving>, ProviderError> {
        Ok(self.site.leavings().await?.into_iter().map(Leaving::from).collect())
    }

    async fn remove_all(&self) -> Result<Vec<Leaving>, ProviderError> {
        Ok(self.site.remove_all().await?.into_iter().map(Leaving::from).collect())
    }
}
