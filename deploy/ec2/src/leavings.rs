//! The things that still have the fleet's tag, and their removal: for whoever takes a fleet down and leaves nothing.

use crate::{
    errors::{Failure, Meaning},
    machines,
    region::{Region, filter},
    settings::FLEET_TAG,
    tags, template,
};
use aws_sdk_ec2::types::VolumeState;
use sojourn_clouds::Goes;
use sojourn_fleet::cloud::{CloudError, MachineState};
use std::fmt;

/// A kind of what is made in an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeavingKind {
    /// A machine that hasn't ended.
    Machine,
    /// A volume. A machine's goes with it.
    Volume,
    /// A launch template.
    LaunchTemplate,
    /// The server's machine.
    Server,
    /// The disk of the server's machine.
    ServerDisk,
    /// A public address.
    Address,
    /// A network interface.
    NetworkInterface,
    /// A security group.
    SecurityGroup,
    /// A subnet.
    Subnet,
    /// A route table.
    RouteTable,
    /// An internet gateway.
    InternetGateway,
    /// A network.
    Network,
    /// An instance profile.
    InstanceProfile,
    /// A role.
    Role,
    /// An archive in the owner's bucket.
    Archive,
}

/// Something with the fleet's tag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leaving {
    /// Where it is.
    pub region: String,
    /// The kind of the thing.
    pub kind: LeavingKind,
    /// The cloud's id of it; a launch template's name.
    pub id: String,
    /// Whether the thing goes by itself, as a machine that is ending, or its volume.
    pub goes: Goes,
}

impl LeavingKind {
    /// The kind in a word or a few, as people write it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Volume => "volume",
            Self::LaunchTemplate => "launch template",
            Self::Server => "server",
            Self::ServerDisk => "server's disk",
            Self::Address => "public address",
            Self::NetworkInterface => "network interface",
            Self::SecurityGroup => "security group",
            Self::Subnet => "subnet",
            Self::RouteTable => "route table",
            Self::InternetGateway => "internet gateway",
            Self::Network => "network",
            Self::InstanceProfile => "instance profile",
            Self::Role => "role",
            Self::Archive => "archive",
        }
    }
}

impl From<Leaving> for sojourn_clouds::Leaving {
    fn from(leaving: Leaving) -> Self {
        let has_models = matches!(leaving.kind, LeavingKind::Server | LeavingKind::ServerDisk);
        let Leaving { region, kind, id, goes } = leaving;
        Self { region, kind: kind.word(), id, goes, has_models }
    }
}

impl fmt::Display for Leaving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} in {}", self.kind.word(), self.id, self.region)
    }
}

/// All of a region with the fleet's tag that was bought or made to buy: neither the owner's launch template nor the server.
pub(crate) async fn of(region: &Region) -> Result<Vec<Leaving>, CloudError> {
    let leaving = |kind, id, goes| Leaving { region: region.name.clone(), kind, id, goes };
    let mut found = vec![];
    for machine in machines::machines(region).await? {
        let goes = match machine.state {
            MachineState::Pending | MachineState::Running => Goes::Stays,
            MachineState::Ending => Goes::Itself,
            MachineState::Ended => continue,
        };
        found.push(leaving(LeavingKind::Machine, machine.instance, goes));
    }
    for (id, goes) in volumes(region).await? {
        found.push(leaving(LeavingKind::Volume, id, goes));
    }
    for name in template::all(region).await? {
        found.push(leaving(LeavingKind::LaunchTemplate, name, Goes::Stays));
    }
    Ok(found)
}

/// Removes what stays. Machines end, and take their volumes along, some time later.
pub(crate) async fn remove(region: &Region, found: &[Leaving]) -> Result<(), CloudError> {
    let of = |kind| {
        let of_kind = found.iter().filter(move |leaving| leaving.kind == kind);
        of_kind.filter(|leaving| leaving.goes == Goes::Stays).map(|leaving| &leaving.id)
    };
    let instances: Vec<String> = of(LeavingKind::Machine).cloned().collect();
    machines::end(region, &instances).await?;
    for id in of(LeavingKind::Volume) {
        let sent = region.client.delete_volume().volume_id(id).send().await;
        match sent.map_err(|error| Failure::of("DeleteVolume", &error)) {
            // One that is in use still goes with a later pass.
            Err(failure) if !matches!(failure.meaning, Meaning::NoVolume | Meaning::InUse) => {
                return Err(failure.cloud());
            }
            _ => {}
        }
    }
    for name in of(LeavingKind::LaunchTemplate) {
        template::delete(region, name).await?;
    }
    Ok(())
}

async fn volumes(region: &Region) -> Result<Vec<(String, Goes)>, CloudError> {
    let request = region.client.describe_volumes();
    let request = request.filters(filter(&format!("tag:{FLEET_TAG}"), [&region.shared.fleet]));
    let mut pages = request.into_paginator().items().send();
    let mut found = vec![];
    while let Some(volume) = pages.next().await {
        let volume = volume.map_err(|error| Failure::of("DescribeVolumes", &error).cloud())?;
        if tags::is_servers(volume.tags()) {
            continue;
        }
        let Some(goes) = volume_goes(volume.state()) else { continue };
        found.extend(volume.volume_id().map(|id| (id.to_owned(), goes)));
    }
    Ok(found)
}

/// Whether a volume in this state goes by itself; none where it is gone.
pub(crate) fn volume_goes(state: Option<&VolumeState>) -> Option<Goes> {
    match state {
        Some(VolumeState::Deleted) => None,
        Some(VolumeState::Available | VolumeState::Error) => Some(Goes::Stays),
        _ => Some(Goes::Itself),
    }
}
