//! The user data of the server's machine, for its first start: the Terraform module's template and script, filled in. The text
//! is packed, since EC2 takes 16 KiB and the fleet's file may have hundreds of prices.

use super::{SiteError, plan::PORT};
use crate::{settings::Package, user_data::MAX_USER_DATA};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::{Compression, write::GzEncoder};
use std::io::Write as _;

const TEMPLATE: &str = include_str!("../../../terraform/server.yaml.tftpl");
const SCRIPT: &str = include_str!("../../../terraform/server-boot");

/// In the fleet's file, what the machine puts its own address for.
pub const ADDRESS_PLACEHOLDER: &str = "{{private_address}}";

/// The files that the server's machine gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFiles {
    /// The autoscaler's file, `/etc/sojourn/fleet.toml`, with [`ADDRESS_PLACEHOLDER`].
    pub fleet: String,
    /// The template of the user data of the fleet's machines, `/etc/sojourn/user-data.yaml`; none for the release's own.
    pub user_data: Option<String>,
}

/// The archives that the machine fetches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packages {
    pub(super) release: Package,
    pub(super) programs: Package,
}

/// The user data as EC2 takes them: packed, in base64.
pub(super) fn user_data(
    address: &str,
    packages: &Packages,
    files: &ServerFiles,
) -> Result<String, SiteError> {
    let text = text(address, packages, files);
    let packed = || {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text.as_bytes())?;
        encoder.finish()
    };
    let packed = packed().map_err(SiteError::Pack)?;
    if packed.len() > MAX_USER_DATA {
        return Err(SiteError::Large { bytes: packed.len() });
    }
    Ok(STANDARD.encode(packed))
}

fn text(address: &str, packages: &Packages, files: &ServerFiles) -> String {
    let port = PORT.to_string();
    let values = [
        ("public_address", address),
        ("port", &port),
        ("release_url", &packages.release.url),
        ("release_sha256", &packages.release.sha256),
        ("programs_url", &packages.programs.url),
        ("programs_sha256", &packages.programs.sha256),
        ("boot", &STANDARD.encode(SCRIPT)),
        ("fleet_file", &STANDARD.encode(&files.fleet)),
        ("user_data_file", &STANDARD.encode(files.user_data.as_deref().unwrap_or_default())),
    ];
    let fill =
        |text: String, (name, value): (&str, &str)| text.replace(&format!("${{{name}}}"), value);
    values.into_iter().fold(TEMPLATE.to_owned(), fill)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read as _;

    fn packages() -> Packages {
        let package = |name: &str| Package {
            url: format!("https://example.org/{name}?a=b&c=%2F"),
            sha256: "0".repeat(64),
        };
        Packages { release: package("release.tar.gz"), programs: package("programs.tar") }
    }

    #[test]
    fn every_name_of_the_template_is_filled_in() {
        let files = ServerFiles { fleet: "fleet = 'night'\n".to_owned(), user_data: None };
        let data = user_data("192.0.2.7", &packages(), &files).unwrap();
        let mut text = String::new();
        GzDecoder::new(&*STANDARD.decode(data).unwrap()).read_to_string(&mut text).unwrap();
        assert!(!text.contains("${") && text.starts_with("#cloud-config\n"), "{text}");
        assert!(text.contains("PUBLIC_ADDRESS=\"192.0.2.7\"") && text.contains("PORT=\"8642\""));
        assert!(text.contains("RELEASE_URL=\"https://example.org/release.tar.gz?a=b&c=%2F\""));
        assert!(
            text.contains(&STANDARD.encode(SCRIPT))
                && text.contains(&STANDARD.encode(&files.fleet))
        );
        assert!(SCRIPT.contains(ADDRESS_PLACEHOLDER), "the script puts the address in");
    }

    #[test]
    fn a_file_with_hundreds_of_prices_fits_and_one_without_end_does_not() {
        let price = |at: u32| {
            format!("\"c{}i.{}xlarge\" = \"0.{:04} usd\"\n", at % 9, at, at * 37 % 10_000)
        };
        let fleet: String = (0..800).map(price).collect();
        assert!(fleet.len() > MAX_USER_DATA, "{}", fleet.len());
        let files = ServerFiles { fleet, user_data: Some("x".repeat(9_000)) };
        user_data("192.0.2.7", &packages(), &files).unwrap();
        // What can't be packed.
        let mut state = 1_u64;
        let noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'a' + u8::try_from(state >> 33 & 15).unwrap())
        };
        let fleet = std::iter::repeat_with(noise).take(60_000).collect();
        let refused = user_data("192.0.2.7", &packages(), &ServerFiles { fleet, user_data: None });
        assert!(matches!(refused, Err(SiteError::Large { .. })), "{refused:?}");
    }
}
