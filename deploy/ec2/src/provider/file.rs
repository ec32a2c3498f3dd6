//! The table `[ec2]` as the server's machine gets it: with the network of the site, and without `[ec2.server]`.

use super::TABLE;
use crate::site::Placement;
use toml_edit::{Array, DocumentMut, Item, value};

/// The user data of the fleet's machines, as the release has it on the server's machine.
pub(super) const USER_DATA: &str = "/opt/sojourn/cloud-init/user-data.yaml";
/// The same where the owner has another one.
const SENT_USER_DATA: &str = "/etc/sojourn/user-data.yaml";

/// The text of a file with what is known once the network is there. Comments stay.
pub(super) fn filled(
    mut file: DocumentMut,
    placement: &Placement,
    sends_user_data: bool,
) -> String {
    let data = if sends_user_data { SENT_USER_DATA } else { USER_DATA };
    if let Some(table) = file.get_mut(TABLE).and_then(Item::as_table_like_mut) {
        table.remove("server");
        table.insert("user_data", value(data));
        let region = table.get_mut("regions").and_then(Item::as_table_like_mut);
        let region = region.and_then(|regions| regions.get_mut(&placement.region));
        if let Some(region) = region.and_then(Item::as_table_like_mut) {
            let list = |ids: &[String]| value(ids.iter().map(String::as_str).collect::<Array>());
            region.insert("subnets", list(&placement.subnets));
            region.insert("security_groups", list(&placement.security_groups));
        }
    }
    file.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# Ours.
fleet = 'night'

[limits]
machines = 16 # enough

[ec2]
types = ['c7i.*']

[ec2.server]
allowed = ['192.0.2.7/32']
bucket = 's3://archives'

[ec2.regions.eu-west-1]
image = 'ami-1'
on_demand = { 'c7i.large' = '0.1 usd' }
";

    fn placement() -> Placement {
        Placement {
            region: "eu-west-1".to_owned(),
            subnets: vec!["subnet-1".to_owned(), "subnet-2".to_owned()],
            security_groups: vec!["sg-1".to_owned()],
        }
    }

    #[test]
    fn the_server_gets_its_network_and_not_its_own_table() {
        let text = filled(FILE.parse().unwrap(), &placement(), false);
        let file: toml::Table = text.parse().unwrap();
        let table = &file["ec2"];
        let region = &table["regions"]["eu-west-1"];
        assert_eq!(region["subnets"].as_array().map(Vec::len), Some(2));
        assert_eq!(region["security_groups"][0].as_str(), Some("sg-1"));
        assert_eq!(region["on_demand"]["c7i.large"].as_str(), Some("0.1 usd"));
        assert_eq!(table["user_data"].as_str(), Some(USER_DATA));
        assert!(
            text.starts_with("# Ours.\n") && text.contains("# enough"),
            "comments stay: {text}"
        );
        assert!(table.get("server").is_none() && !text.contains("archives"), "{text}");
    }

    #[test]
    fn own_user_data_give_way_to_their_copy() {
        let own = FILE.replace("types =", "user_data = 'mine.yaml'\ntypes =");
        let text = filled(own.parse().unwrap(), &placement(), true);
        let file: toml::Table = text.parse().unwrap();
        assert_eq!(file["ec2"]["user_data"].as_str(), Some(SENT_USER_DATA));
    }
}
