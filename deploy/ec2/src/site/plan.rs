//! The parts of a fleet's site, in the order in which they are made. Pure: nothing is asked of a cloud here.

use crate::settings::Ec2Settings;
use sojourn_clouds::{Costs, MONTH_HOURS, State};
use sojourn_protocol::money::MicroUsd;
use std::{collections::BTreeSet, fmt};

/// The addresses of a network that is made.
pub(super) const NETWORK_BLOCK: &str = "10.64.0.0/16";
/// The port of the server: the only one that is opened.
pub const PORT: u16 = 8642;
/// The price of a GB of a disk for a month, about: the list price of `gp3` in most regions.
const DISK_MONTH: MicroUsd = MicroUsd(80_000);
/// The price of an hour of a public address.
const ADDRESS_HOUR: MicroUsd = MicroUsd(5_000);
/// Subnets with 4,096 addresses that the network has room for.
const BLOCKS: u8 = 16;

/// A part of a fleet's site.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The network.
    Network,
    /// The network's way to the internet.
    Gateway,
    /// The routes of its subnets.
    Routes,
    /// The network's subnet in a zone.
    Subnet {
        /// The zone.
        zone: String,
    },
    /// The security group of the fleet's machines: nothing reaches them.
    MachineGroup,
    /// The security group of the server: its port is open to machines and to whom the file names.
    ServerGroup,
    /// The role of the server's machine, with what the autoscaler may do.
    Role,
    /// The instance profile, by which the machine has the role.
    Profile,
    /// The server's public address.
    Address,
    /// The server's machine with its disk.
    Server,
}

impl Part {
    /// The name that it has in the account.
    #[must_use]
    pub fn name(&self, fleet: &str) -> String {
        match self {
            Self::MachineGroup => format!("sojourn-{fleet}-machine"),
            Self::ServerGroup | Self::Role | Self::Profile => format!("sojourn-{fleet}-server"),
            _ => format!("sojourn-{fleet}"),
        }
    }

    /// The kind of the part, in a word or two.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Gateway => "internet gateway",
            Self::Routes => "route table",
            Self::Subnet { .. } => "subnet",
            Self::MachineGroup | Self::ServerGroup => "security group",
            Self::Role => "role",
            Self::Profile => "instance profile",
            Self::Address => "public address",
            Self::Server => "server",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subnet { zone } => write!(f, "subnet in {zone}"),
            Self::MachineGroup => f.write_str("security group of the machines"),
            Self::ServerGroup => f.write_str("security group of the server"),
            other => f.write_str(other.kind()),
        }
    }
}

/// A part, and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartState {
    /// The part.
    pub part: Part,
    /// The part's id in the account; none where it is missing.
    pub id: Option<String>,
    /// How it was found.
    pub state: State,
}

/// The parts that these settings ask for. `zones` are those of a network that is made.
pub(super) fn parts(settings: &Ec2Settings, region: &str, zones: &[String]) -> Vec<Part> {
    let given = settings.regions.get(region);
    let mut parts = vec![];
    if given.is_none_or(|region| region.subnets.is_empty()) {
        parts.extend([Part::Network, Part::Gateway, Part::Routes]);
        parts.extend(zones.iter().map(|zone| Part::Subnet { zone: zone.clone() }));
    }
    if given.is_none_or(|region| region.security_groups.is_empty()) {
        parts.push(Part::MachineGroup);
    }
    parts.extend([Part::ServerGroup, Part::Role, Part::Profile, Part::Address, Part::Server]);
    parts
}

/// The zones of a network: those that have a subnet already, then others in their order, until there are as many as wanted.
pub(super) fn zones(there: &BTreeSet<String>, sold: &[String], wanted: u8) -> Vec<String> {
    let wanted = usize::from(wanted);
    let further = sold.iter().filter(|zone| !there.contains(*zone));
    let mut zones: Vec<String> = there.iter().chain(further).cloned().collect();
    zones.truncate(wanted.max(there.len()));
    zones
}

/// The addresses of a further subnet beside these; none where the network is full.
pub(super) fn free_block(taken: &BTreeSet<String>) -> Option<String> {
    let blocks = (0..BLOCKS).map(|at| format!("10.64.{}.0/20", u16::from(at) * 16));
    blocks.into_iter().find(|block| !taken.contains(block))
}

/// The costs of a site whose machine has this price and a disk of this size.
pub(super) fn costs(server: Option<MicroUsd>, disk_gib: u32) -> Costs {
    let disk = DISK_MONTH.0.saturating_mul(disk_gib.into()) / MONTH_HOURS;
    Costs { server, disk: MicroUsd(disk), address: ADDRESS_HOUR }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(region: &str) -> Ec2Settings {
        let text = format!(
            "fleet = 'night'\nuser_data = 'x'\n[regions.eu-west-1]\nimage = 'ami-1'\n{region}"
        );
        toml::from_str(&text).unwrap()
    }

    fn words(parts: &[Part]) -> Vec<String> {
        parts.iter().map(|part| format!("{part}: {}", part.name("night"))).collect()
    }

    #[test]
    fn a_site_is_made_from_the_network_to_the_server() {
        let zones = ["eu-west-1a".to_owned(), "eu-west-1b".to_owned()];
        assert_eq!(
            words(&parts(&settings(""), "eu-west-1", &zones)),
            [
                "network: sojourn-night",
                "internet gateway: sojourn-night",
                "route table: sojourn-night",
                "subnet in eu-west-1a: sojourn-night",
                "subnet in eu-west-1b: sojourn-night",
                "security group of the machines: sojourn-night-machine",
                "security group of the server: sojourn-night-server",
                "role: sojourn-night-server",
                "instance profile: sojourn-night-server",
                "public address: sojourn-night",
                "server: sojourn-night",
            ]
        );
    }

    #[test]
    fn a_network_and_groups_that_are_given_are_not_made() {
        let given = settings("subnets = ['subnet-1']");
        assert_eq!(
            words(&parts(&given, "eu-west-1", &[]))[0],
            "security group of the machines: sojourn-night-machine"
        );
        let given = settings("subnets = ['subnet-1']\nsecurity_groups = ['sg-1']");
        assert_eq!(parts(&given, "eu-west-1", &[])[0], Part::ServerGroup);
    }

    #[test]
    fn zones_that_have_a_subnet_stay() {
        let sold = ["a", "b", "c", "d"].map(str::to_owned);
        let there = |zones: &[&str]| zones.iter().map(|zone| (*zone).to_owned()).collect();
        assert_eq!(zones(&there(&[]), &sold, 3), ["a", "b", "c"]);
        assert_eq!(zones(&there(&["d"]), &sold, 3), ["d", "a", "b"]);
        assert_eq!(zones(&there(&["b", "c", "d"]), &sold, 1), ["b", "c", "d"], "none goes");
        assert_eq!(zones(&there(&[]), &sold[..1], 6), ["a"]);
    }

    #[test]
    fn subnets_take_what_is_free() {
        let taken = |blocks: &[&str]| blocks.iter().map(|block| (*block).to_owned()).collect();
        assert_eq!(free_block(&taken(&[])).as_deref(), Some("10.64.0.0/20"));
        assert_eq!(
            free_block(&taken(&["10.64.0.0/20", "10.64.32.0/20"])).as_deref(),
            Some("10.64.16.0/20")
        );
        let all: BTreeSet<String> = (0..16).map(|at| format!("10.64.{}.0/20", at * 16)).collect();
        assert_eq!(free_block(&all), None);
    }

    #[test]
    fn costs_are_those_of_server_disk_and_address() {
        let known = costs(Some(MicroUsd(20_800)), 50);
        assert_eq!(known.disk, MicroUsd(5_479), "4 dollars a month");
        assert_eq!(known.hour(), MicroUsd(20_800 + 5_479 + 5_000));
        assert_eq!(known.month(), MicroUsd(31_279 * 730));
        assert_eq!(costs(None, 50).hour(), MicroUsd(10_479));
    }
}
