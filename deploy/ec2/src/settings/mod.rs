//! The owner's settings for EC2: the table `[ec2]` of the fleet's file. `docs/operate/ec2.md` describes each key.
//!
//! Checked here without asking EC2: [`Ec2Settings::validate`]. [`crate::Ec2::check`] asks.

mod list_price;
mod server;

pub use list_price::ListPrice;
pub(crate) use server::bucket_name;
pub use server::{MAX_ZONES, Package, ServerSettings, ServerSettingsError};

use serde::Deserialize;
use std::{collections::BTreeMap, path::PathBuf};

/// The tag by which the machines of a fleet, and all that belongs to them, are known.
pub const FLEET_TAG: &str = "sojourn:fleet";
/// The tag with what a machine is, where it isn't one of those that are bought: [`SERVER_ROLE`].
pub const ROLE_TAG: &str = "sojourn:role";
/// The value of [`ROLE_TAG`] of the server's machine and its disk.
pub const SERVER_ROLE: &str = "server";
/// The tag with a machine's name.
pub const MACHINE_TAG: &str = "sojourn:machine";
/// Characters of a fleet's name: it is part of a launch template's name, which may have 128.
pub const MAX_FLEET_CHARS: usize = 40;
/// Tags of the owner. EC2 takes 50 on a machine.
pub const MAX_TAGS: usize = 40;
/// Patterns of types. A filter of EC2 takes 200.
pub const MAX_TYPES: usize = 100;

/// The table `[ec2]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ec2Settings {
    /// The fleet's name, the value of the tag [`FLEET_TAG`]. No two fleets of an account have the same.
    pub fleet: String,
    /// The file with the machines' user data: see [`crate::UserData`].
    pub user_data: PathBuf,
    /// The types that may be bought, as `c7i.2xlarge` or `c7i.*`. A pattern leaves out burstable types, bare
    /// metal, and those from before Nitro; a full name doesn't.
    #[serde(default = "all_types")]
    pub types: Vec<String>,
    /// Types and patterns that are not bought although `types` has them.
    #[serde(default)]
    pub except: Vec<String>,
    /// The name of the instance profile of the machines: they need none.
    #[serde(default)]
    pub instance_profile: Option<String>,
    /// GiB of the machines' root volume; by default as much as the image says.
    #[serde(default)]
    pub root_volume_gib: Option<u32>,
    /// Further tags of machines, their volumes and network interfaces, and of launch templates.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Another address of EC2's API, for stand-ins.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// The fleet's server, where `sojourn cloud up` makes it.
    #[serde(default)]
    pub server: Option<ServerSettings>,
    /// Where machines are bought, by the region's name.
    pub regions: BTreeMap<String, RegionSettings>,
}

/// The table `[ec2.regions.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionSettings {
    /// The image of the machines, as `ami-0123456789abcdef0`.
    #[serde(default)]
    pub image: Option<String>,
    /// A launch template instead of an image and the keys below.
    #[serde(default)]
    pub launch_template: Option<GivenTemplate>,
    /// The subnets; by default those that the default VPC has for each zone.
    #[serde(default)]
    pub subnets: Vec<String>,
    /// The zones; by default all of the subnets'.
    #[serde(default)]
    pub zones: Vec<String>,
    /// The security groups' ids; by default the VPC's.
    #[serde(default)]
    pub security_groups: Vec<String>,
    /// The name of a key pair, for logging in.
    #[serde(default)]
    pub key_name: Option<String>,
    /// The list price of an hour by type: EC2's API has none. A type without one isn't bought.
    #[serde(default)]
    pub on_demand: BTreeMap<String, ListPrice>,
}

/// A launch template of the owner.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenTemplate {
    /// The template's id, as `lt-0123456789abcdef0`.
    pub id: String,
    /// The template's version: a number, `$Default` or `$Latest`.
    pub version: String,
}

fn all_types() -> Vec<String> {
    vec!["*".to_owned()]
}

/// The faults that the settings can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A name that doesn't fit.
    #[error("`ec2.fleet` is `{0}`; 1 to 40 lower-case letters, digits and `-` are wanted")]
    Fleet(String),
    /// No region.
    #[error("`ec2.regions` names no region")]
    NoRegion,
    /// No such region can be.
    #[error("`{0}` is no name of a region, as `eu-west-1` is")]
    Region(String),
    /// Both are there, or neither.
    #[error("`ec2.regions.{0}` wants one of `image` and `launch_template`")]
    Image(String),
    /// A key that the launch template says already.
    #[error("`ec2.regions.{region}` has a launch template: `{key}` is said there")]
    SaidTwice {
        /// The region.
        region: String,
        /// The key.
        key: &'static str,
    },
    /// An id of another kind, or none.
    #[error(
        "`{key}` of region {region} is `{value}`; an id like `{wanted}0123456789abcdef0` is wanted"
    )]
    Id {
        /// The region.
        region: String,
        /// The key.
        key: &'static str,
        /// The text that was given.
        value: String,
        /// The beginning of ids of the kind that is wanted.
        wanted: &'static str,
    },
    /// A zone of another region.
    #[error("`{zone}` is no zone of {region}")]
    Zone {
        /// The region.
        region: String,
        /// The zone.
        zone: String,
    },
    /// A pattern that can't match.
    #[error("`{0}` is no type and no pattern of types, as `c7i.2xlarge` and `c7i.*` are")]
    Type(String),
    /// None, or too many.
    #[error("`ec2.types` wants 1 to {MAX_TYPES} types or patterns")]
    Types,
    /// A tag that EC2 or the fleet has for itself, or that doesn't fit.
    #[error(
        "`{0}` can't be a tag: keys have 1 to 128 characters, values up to 256, and `aws:` and `sojourn:` are taken"
    )]
    Tag(String),
    /// More than a machine can have.
    #[error("more than {MAX_TAGS} tags")]
    Tags,
    /// A volume that EC2 doesn't make.
    #[error("`ec2.root_volume_gib` is {0}; 1 to 16384 is wanted")]
    RootVolume(u32),
    /// No address.
    #[error(
        "`ec2.endpoint` is `{0}`; an address that begins with `http://` or `https://` is wanted"
    )]
    Endpoint(String),
    /// A key of the server's machine that can't be.
    #[error(transparent)]
    Server(#[from] ServerSettingsError),
}

impl Ec2Settings {
    /// Checks what can be checked without asking EC2.
    ///
    /// # Errors
    /// With the first value that is wrong.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if !(1..=MAX_FLEET_CHARS).contains(&self.fleet.len()) || !self.fleet.bytes().all(plain) {
            return Err(SettingsError::Fleet(self.fleet.clone()));
        }
        if self.types.is_empty() || self.types.len() > MAX_TYPES {
            return Err(SettingsError::Types);
        }
        let typed = |byte: u8| plain(byte) || matches!(byte, b'.' | b'*');
        for pattern in self.types.iter().chain(&self.except) {
            let whole = pattern.contains('.') || pattern.contains('*');
            if !whole || !pattern.bytes().all(typed) {
                return Err(SettingsError::Type(pattern.clone()));
            }
        }
        if let Some(gib) = self.root_volume_gib.filter(|gib| !(1..=16_384).contains(gib)) {
            return Err(SettingsError::RootVolume(gib));
        }
        let address = |at: &&String| !at.starts_with("http://") && !at.starts_with("https://");
        if let Some(endpoint) = self.endpoint.as_ref().filter(address) {
            return Err(SettingsError::Endpoint(endpoint.clone()));
        }
        self.validate_tags()?;
        if let Some(server) = &self.server {
            server.validate()?;
        }
        if self.regions.is_empty() {
            return Err(SettingsError::NoRegion);
        }
        for (name, region) in &self.regions {
            if name.split('-').count() < 3 || !name.bytes().all(plain) {
                return Err(SettingsError::Region(name.clone()));
            }
            region.validate(name, self)?;
        }
        Ok(())
    }

    fn validate_tags(&self) -> Result<(), SettingsError> {
        if self.tags.len() > MAX_TAGS {
            return Err(SettingsError::Tags);
        }
        for (key, value) in &self.tags {
            let taken = key.starts_with("aws:") || key.starts_with("sojourn:");
            let fits = (1..=128).contains(&key.chars().count()) && value.chars().count() <= 256;
            if taken || !fits || key.chars().chain(value.chars()).any(char::is_control) {
                return Err(SettingsError::Tag(key.clone()));
            }
        }
        Ok(())
    }
}

impl RegionSettings {
    fn validate(&self, name: &str, all: &Ec2Settings) -> Result<(), SettingsError> {
        if self.image.is_some() == self.launch_template.is_some() {
            return Err(SettingsError::Image(name.to_owned()));
        }
        if self.launch_template.is_some() {
            let said = [
                ("security_groups", !self.security_groups.is_empty()),
                ("key_name", self.key_name.is_some()),
                ("ec2.instance_profile", all.instance_profile.is_some()),
                ("ec2.root_volume_gib", all.root_volume_gib.is_some()),
            ];
            if let Some((key, _)) = said.into_iter().find(|(_, said)| *said) {
                return Err(SettingsError::SaidTwice { region: name.to_owned(), key });
            }
        }
        let template = self.launch_template.as_ref().map(|template| &template.id);
        let ids = (self.image.iter().map(|id| ("image", "ami-", id)))
            .chain(template.map(|id| ("launch_template", "lt-", id)))
            .chain(self.subnets.iter().map(|id| ("subnets", "subnet-", id)))
            .chain(self.security_groups.iter().map(|id| ("security_groups", "sg-", id)));
        for (key, wanted, id) in ids {
            let rest = id.strip_prefix(wanted).unwrap_or_default();
            if rest.is_empty() || !rest.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                let (region, value) = (name.to_owned(), id.clone());
                return Err(SettingsError::Id { region, key, value, wanted });
            }
        }
        // Local zones too, as `us-west-2-lax-1a`.
        if let Some(zone) = self.zones.iter().find(|zone| !zone.starts_with(name)) {
            return Err(SettingsError::Zone { region: name.to_owned(), zone: zone.clone() });
        }
        Ok(())
    }
}
