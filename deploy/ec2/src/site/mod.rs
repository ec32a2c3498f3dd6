//! The site of a fleet: the network, the rights and the machine of its server, made by one call and removed by another.
//!
//! ```text
//!   settings --plan--> parts, in order --look/up--> each is found by its tag, made where it is missing
//!                                       --remove--> what has the tag goes, the last first
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `plan` | the parts, their order and names, and what they cost: pure |
//! | `account` | clients, tags, and what is known on the way |
//! | `place` | zones, a network that is given, the image |
//! | `network`, `groups`, `role`, `server` | finding, making and finishing their parts |
//! | `boot` | the user data of the server's machine |
//! | `bucket` | the archives that the machine fetches |
//! | `removal` | what is there still, and its end |
//!
//! Nothing is kept on disk. Whatever is made has the tag of the fleet from its birth on, so that a second `up` after a crash
//! finds it, and makes nothing twice. What has no such tag is never changed.

mod account;
mod boot;
mod bucket;
mod error;
mod groups;
mod network;
mod place;
mod plan;
mod removal;
mod role;
mod server;

pub use boot::{ADDRESS_PLACEHOLDER, ServerFiles};
pub use error::SiteError;
pub use plan::{PORT, Part, PartState};

use crate::{
    connection,
    leavings::{self, Leaving, LeavingKind},
    region::Region,
    settings::{Ec2Settings, SettingsError},
};
use account::{Account, Known, Visit};
use aws_config::SdkConfig;
use sojourn_clouds::{Costs, State};
use std::sync::Arc;

/// The site of a fleet in an account.
#[derive(Debug)]
pub struct Site {
    account: Account,
    /// Where the fleet's machines are.
    regions: Vec<Region>,
}

/// Where machines are bought, as the fleet's file says it to the autoscaler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The region.
    pub region: String,
    /// The subnets.
    pub subnets: Vec<String>,
    /// The machines' security groups.
    pub security_groups: Vec<String>,
}

/// A server that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteServer {
    /// The id of the server's machine.
    pub instance: String,
    /// The server's public address.
    pub address: String,
}

impl SiteServer {
    /// Where people reach it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}:{PORT}", self.address)
    }
}

impl Site {
    /// The site of these settings over an SDK's configuration: see [`crate::connect`]. Nothing is asked yet.
    ///
    /// # Errors
    /// Where the settings are wrong, or not those of a site.
    pub fn new(config: &SdkConfig, settings: Ec2Settings) -> Result<Self, SiteError> {
        settings.validate()?;
        let server = settings.server.clone().ok_or(SiteError::NoServer)?;
        if settings.regions.len() > 1 {
            return Err(SiteError::Regions(settings.regions.len()));
        }
        let first = settings.regions.first_key_value();
        let (name, region) = first.ok_or(SettingsError::NoRegion)?;
        if region.launch_template.is_some() {
            return Err(SiteError::Template(name.clone()));
        }
        if region.subnets.is_empty() && !region.security_groups.is_empty() {
            return Err(SiteError::Groups(name.clone()));
        }
        let (name, region) = (name.clone(), region.clone());
        let client = connection::client(config, &name);
        let shared = Arc::new(settings.clone());
        let regions = vec![Region::new(&name, client, region.clone(), shared)];
        Ok(Self { account: Account::new(config, settings, name, region, server), regions })
    }

    /// The region.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.account.name
    }

    /// The site's costs while it is up, without machines.
    #[must_use]
    pub fn costs(&self) -> Costs {
        let server = &self.account.server;
        let listed = self.account.region.on_demand.get(&server.instance_type).copied();
        plan::costs(server.price.or(listed).map(|price| price.0), server.disk_gib)
    }

    /// Checks for [`Site::up`] what the file says of the server, without asking AWS.
    ///
    /// # Errors
    /// Where something is missing.
    pub fn check(&self) -> Result<(), SiteError> {
        if self.account.server.allowed.is_empty() {
            let what = "is empty, and nobody outside could reach the server: name the addresses from which you come, \
                        as `allowed = [\"203.0.113.7/32\"]`";
            let what = what.to_owned();
            return Err(crate::settings::ServerSettingsError { key: "allowed", what }.into());
        }
        bucket::check(&self.account)
    }

    /// The parts in the order in which they are made, and how they are now. Nothing is changed.
    ///
    /// # Errors
    /// Where AWS refuses, the settings name what isn't there, or a part's name is taken by something of others.
    pub async fn look(&self) -> Result<Vec<PartState>, SiteError> {
        let mut found = vec![];
        // Nothing is made, so that no file is asked for.
        let files = |_: &Placement| ServerFiles { fleet: String::new(), user_data: None };
        self.walk(false, files, |part| found.push(part)).await?;
        if found.iter().any(|one| one.part == Part::Server && one.state == State::Missing) {
            bucket::reach(&self.account).await?;
        }
        Ok(found)
    }

    /// Makes what is missing, and finishes what isn't as it should be; `seen` is told of each part as soon as it is there.
    /// `files` are asked for if the server's machine is made.
    ///
    /// # Errors
    /// See [`Site::look`]. Whoever calls again goes on.
    pub async fn up(
        &self,
        files: impl FnOnce(&Placement) -> ServerFiles,
        seen: impl FnMut(PartState),
    ) -> Result<SiteServer, SiteError> {
        let known = self.walk(true, files, seen).await?;
        match (known.server, known.address) {
            (Some(instance), Some((_, address))) => Ok(SiteServer { instance, address }),
            _ => Err(account::lacks("DescribeInstances", "server").into()),
        }
    }

    async fn walk(
        &self,
        makes: bool,
        files: impl FnOnce(&Placement) -> ServerFiles,
        mut seen: impl FnMut(PartState),
    ) -> Result<Known, SiteError> {
        let (account, mut known) = (&self.account, Known::default());
        let place = place::find(account, &mut known).await?;
        let placed = |known: &Known| {
            files(&Placement {
                region: account.name.clone(),
                subnets: known.subnets.values().cloned().collect(),
                security_groups: known.machine_groups.clone(),
            })
        };
        // Only the last part asks for them.
        let mut placed = Some(placed);
        for part in plan::parts(&account.settings, &account.name, &place.zones) {
            let (known, mut visit) = (&mut known, Visit::new(makes));
            let id = match &part {
                Part::Network => {
                    network::network(account, known, &mut visit).await?;
                    known.network.clone()
                }
                Part::Gateway => {
                    network::gateway(account, known, &mut visit).await?;
                    known.gateway.clone()
                }
                Part::Routes => {
                    network::routes(account, known, &mut visit).await?;
                    known.routes.clone()
                }
                Part::Subnet { zone } => {
                    network::subnet(account, zone, known, &mut visit).await?;
                    known.subnets.get(zone).cloned()
                }
                Part::MachineGroup => {
                    groups::machines(account, known, &mut visit).await?;
                    known.machine_groups.first().cloned()
                }
                Part::ServerGroup => {
                    groups::server(account, known, &mut visit).await?;
                    known.server_group.clone()
                }
                Part::Role => {
                    role::role(account, known, &mut visit).await?;
                    known.role.clone()
                }
                Part::Profile => {
                    role::profile(account, known, &mut visit).await?;
                    known.profile.clone()
                }
                Part::Address => {
                    server::address(account, known, &mut visit).await?;
                    known.address.as_ref().map(|(allocation, _)| allocation.clone())
                }
                Part::Server => {
                    if let Some(placed) = placed.take() {
                        server::server(account, &place, known, &mut visit, placed).await?;
                    }
                    known.server.clone()
                }
            };
            seen(PartState { part, id, state: visit.state });
        }
        Ok(known)
    }

    /// All that has the fleet's tag and hasn't ended: its machines and what they were bought by, the server, the network and
    /// the rights.
    ///
    /// # Errors
    /// Where AWS refuses.
    pub async fn leavings(&self) -> Result<Vec<Leaving>, SiteError> {
        let mut found = vec![];
        for region in &self.regions {
            found.extend(leavings::of(region).await?);
        }
        found.extend(removal::of(&self.account).await?);
        Ok(found)
    }

    /// Removes what of it can go now, and says what was there. Some of it needs what goes first, and machines end some time
    /// later: nothing is left once [`Site::leavings`] says so.
    ///
    /// # Errors
    /// Where AWS refuses.
    pub async fn remove_all(&self) -> Result<Vec<Leaving>, SiteError> {
        let found = self.leavings().await?;
        // The server's machine first, with its autoscaler. Until it has ended, that may buy again what ends here, which the next
        // pass finds by its tag, and would make templates again, which stay until then.
        removal::remove(&self.account, &found).await?;
        let buys = found.iter().any(|one| one.kind == LeavingKind::Server);
        let may_go = |one: &&Leaving| !(buys && one.kind == LeavingKind::LaunchTemplate);
        let going: Vec<Leaving> = found.iter().filter(may_go).cloned().collect();
        for region in &self.regions {
            leavings::remove(region, &going).await?;
        }
        Ok(found)
    }
}
