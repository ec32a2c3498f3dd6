//! The owner's settings for the server's machine: the table `[ec2.server]`. `docs/operate/ec2.md` describes each key.

use super::list_price::ListPrice;
use crate::user_data::is_plain;
use serde::Deserialize;
use std::{collections::BTreeSet, net::Ipv4Addr, path::PathBuf};

/// Zones of a network that is made, at most.
pub const MAX_ZONES: u8 = 6;

/// The table `[ec2.server]`: the fleet's server is a machine that `up` makes, with all that it needs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// The networks from which people reach the server, as `203.0.113.7/32`. The fleet's machines always do.
    #[serde(default)]
    pub allowed: Vec<String>,
    /// The type of the server's machine.
    #[serde(default = "small")]
    pub instance_type: String,
    /// The image of the server's machine; by default the one of the fleet's machines.
    #[serde(default)]
    pub image: Option<String>,
    /// GiB of its disk, which has the journal, the data and the models.
    #[serde(default = "fifty")]
    pub disk_gib: u32,
    /// The list price of its hour; by default what `on_demand` says of its type.
    #[serde(default)]
    pub price: Option<ListPrice>,
    /// How many zones a network that is made has, each with a subnet.
    #[serde(default = "three")]
    pub zones: u8,
    /// The archive with the server's programs, at an address from which the machine can fetch it.
    #[serde(default)]
    pub release: Option<Package>,
    /// The archive with the programs for the fleet's machines.
    #[serde(default)]
    pub programs: Option<Package>,
    /// The folder that `make dist` has made with both archives, instead of the two addresses.
    #[serde(default)]
    pub dist: Option<PathBuf>,
    /// The bucket to which they are copied from `dist`, as `s3://my-bucket`.
    #[serde(default)]
    pub bucket: Option<String>,
}

/// An archive at an address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// The archive's address.
    pub url: String,
    /// The archive's SHA-256, in hexadecimal digits.
    pub sha256: String,
}

/// A fault in a key of the table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`ec2.server.{key}` {what}")]
pub struct ServerSettingsError {
    /// The key.
    pub key: &'static str,
    /// The fault, and what is wanted instead.
    pub what: String,
}

fn small() -> String {
    "t3.small".to_owned()
}

const fn fifty() -> u32 {
    50
}

const fn three() -> u8 {
    3
}

impl ServerSettings {
    /// Checks what can be checked without asking EC2.
    pub(crate) fn validate(&self) -> Result<(), ServerSettingsError> {
        let wrong = |key, what: String| Err(ServerSettingsError { key, what });
        if let Some(network) = self.allowed.iter().find(|text| network(text).is_none()) {
            return wrong(
                "allowed",
                format!("has `{network}`; networks as `203.0.113.7/32` are wanted"),
            );
        }
        let typed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let halves = self.instance_type.split_once('.');
        if !halves.is_some_and(|(family, size)| {
            !family.is_empty()
                && !size.is_empty()
                && (family.bytes().chain(size.bytes())).all(typed)
        }) {
            return wrong(
                "instance_type",
                format!("is `{}`; a type as `t3.small` is wanted", self.instance_type),
            );
        }
        if let Some(image) = self.image.as_ref().filter(|image| !image.starts_with("ami-")) {
            return wrong(
                "image",
                format!("is `{image}`; an id as `ami-0123456789abcdef0` is wanted"),
            );
        }
        if !(8..=16_384).contains(&self.disk_gib) {
            return wrong("disk_gib", format!("is {}; 8 to 16384 is wanted", self.disk_gib));
        }
        if !(1..=MAX_ZONES).contains(&self.zones) {
            return wrong("zones", format!("is {}; 1 to {MAX_ZONES} is wanted", self.zones));
        }
        self.validate_packages()
    }

    /// The networks of `allowed` as EC2 writes them, each once.
    pub(crate) fn networks(&self) -> BTreeSet<String> {
        self.allowed.iter().filter_map(|text| network(text)).collect()
    }

    fn validate_packages(&self) -> Result<(), ServerSettingsError> {
        let wrong = |key, what: String| Err(ServerSettingsError { key, what });
        for (key, package) in [("release", &self.release), ("programs", &self.programs)] {
            let Some(Package { url, sha256 }) = package else { continue };
            let is_address = url.starts_with("https://") || url.starts_with("http://");
            if !is_address || !is_plain(url) {
                return wrong(
                    key,
                    "has a `url` that begins with no `https://`, or has quotes or `$`".to_owned(),
                );
            }
            let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            if sha256.len() != 64 || !sha256.bytes().all(digit) {
                return wrong(key, "has a `sha256` that isn't 64 hexadecimal digits".to_owned());
            }
        }
        if let Some(bucket) = self.bucket.as_ref().filter(|bucket| bucket_name(bucket).is_none()) {
            return wrong(
                "bucket",
                format!("is `{bucket}`; a bucket as `s3://my-bucket` is wanted"),
            );
        }
        let urls = self.release.is_some() || self.programs.is_some();
        let copies = self.dist.is_some() || self.bucket.is_some();
        if urls && copies {
            return wrong(
                "dist",
                "and `bucket` say again what `release` and `programs` say".to_owned(),
            );
        }
        Ok(())
    }
}

/// The name in `s3://NAME`.
pub(crate) fn bucket_name(address: &str) -> Option<&str> {
    let name = address.strip_prefix("s3://")?.trim_end_matches('/');
    let fits =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    ((3..=63).contains(&name.len()) && name.bytes().all(fits)).then_some(name)
}

/// A network as EC2 writes it: `203.0.113.7/24` is `203.0.113.0/24`, without the bits of a host.
fn network(text: &str) -> Option<String> {
    let (address, bits) = text.split_once('/')?;
    let (address, bits): (Ipv4Addr, u32) = (address.parse().ok()?, bits.parse().ok()?);
    let of_host = 32_u32.checked_sub(bits)?;
    let mask = u32::MAX.checked_shl(of_host).unwrap_or(0);
    Some(format!("{}/{bits}", Ipv4Addr::from_bits(address.to_bits() & mask)))
}

#[cfg(test)]
mod tests {
    use super::network;

    #[test]
    fn networks_are_written_without_the_bits_of_a_host() {
        for (text, expected) in [
            ("203.0.113.7/32", Some("203.0.113.7/32")),
            ("203.0.113.7/24", Some("203.0.113.0/24")),
            ("203.0.113.255/25", Some("203.0.113.128/25")),
            ("203.0.113.7/+024", Some("203.0.113.0/24")),
            ("203.0.113.7/0", Some("0.0.0.0/0")),
            ("203.0.113.7/33", None),
            ("203.0.113.7", None),
        ] {
            assert_eq!(network(text).as_deref(), expected, "{text}");
        }
    }
}
