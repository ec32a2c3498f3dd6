//! A file with `[ec2.server]`: `up` makes the server's machine, so that the file needn't say what only that machine knows. What
//! it leaves out is as on that machine, and the copy that goes there says it.

use toml_edit::{Array, DocumentMut, Item, Table, value};

/// The server, as the autoscaler beside it reaches it.
pub(super) const SERVER: &str = "https://127.0.0.1:8642";
/// The autoscaler's token.
pub(super) const TOKEN_FILE: &str = "/etc/sojourn/autoscaler-token";
/// The server's own certificate.
pub(super) const CA: &str = "/etc/sojourn/server.pem";
/// The user data of the fleet's machines, as the release has it.
pub(super) const USER_DATA: &str = "/opt/sojourn/cloud-init/user-data.yaml";
/// The same where the owner has another one.
const SENT_USER_DATA: &str = "/etc/sojourn/user-data.yaml";

/// The values that are known once a fleet's network is there.
#[derive(Debug, Clone, Copy)]
pub struct Filling<'a> {
    /// The server's address as machines see it.
    pub server: &'a str,
    /// The region of the network.
    pub region: &'a str,
    /// The network's subnets.
    pub subnets: &'a [String],
    /// The machines' security groups.
    pub security_groups: &'a [String],
    /// Whether the machines' user data goes to the server's machine beside the file.
    pub sends_user_data: bool,
}

/// The text of a file as the server's machine gets it: whole, with that machine's paths, and without `[ec2.server]`.
#[must_use]
pub fn filled(mut file: DocumentMut, with: &Filling<'_>) -> String {
    for (key, is) in [("server", with.server), ("token_file", TOKEN_FILE), ("ca", CA)] {
        put(file.as_table_mut(), key, value(is));
    }
    if let Some(machine) = file.get_mut("machine").and_then(Item::as_table_like_mut) {
        // Those of the whole file are the machines' too.
        machine.remove("server");
        machine.remove("ca");
    }
    let data = if with.sends_user_data { SENT_USER_DATA } else { USER_DATA };
    if let Some(ec2) = file.get_mut("ec2").and_then(Item::as_table_like_mut) {
        ec2.remove("server");
        ec2.insert("user_data", value(data));
        let region = ec2.get_mut("regions").and_then(Item::as_table_like_mut);
        let region = region.and_then(|regions| regions.get_mut(with.region));
        if let Some(region) = region.and_then(Item::as_table_like_mut) {
            let list = |ids: &[String]| value(ids.iter().map(String::as_str).collect::<Array>());
            region.insert("subnets", list(with.subnets));
            region.insert("security_groups", list(with.security_groups));
        }
    }
    file.to_string()
}

/// Replaces a value, whose comments stay.
fn put(table: &mut Table, key: &str, is: Item) {
    match table.get_mut(key) {
        Some(there) => *there = is,
        None => {
            table.insert(key, is);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    const FILE: &str = "# Ours.
fleet = 'night'

[limits]
machines = 16 # enough
hourly = '2 usd'

[machine]
server = 'https://elsewhere'
idle = '7min'

[ec2]
types = ['c7i.*']

[ec2.server]
allowed = ['192.0.2.7/32']
dist = 'target/dist'
bucket = 's3://archives'

[ec2.regions.eu-west-1]
image = 'ami-1'
on_demand = { 'c7i.large' = '0.1 usd' }
";

    fn filling<'a>(subnets: &'a [String], groups: &'a [String]) -> Filling<'a> {
        Filling {
            server: "https://10.64.0.9:8642",
            region: "eu-west-1",
            subnets,
            security_groups: groups,
            sends_user_data: false,
        }
    }

    #[test]
    fn a_file_with_a_server_needs_none_of_what_up_knows() {
        let config = Config::parse(FILE, Path::new("/home/me")).unwrap();
        assert!(config.has_site);
        assert_eq!(
            (config.server.as_str(), config.token_file.to_str()),
            (SERVER, Some(TOKEN_FILE))
        );
        assert_eq!(config.ca.as_deref(), Some(Path::new(CA)));
        let ec2 = config.ec2.unwrap();
        assert_eq!(ec2["user_data"].as_str(), Some(USER_DATA));
        assert_eq!(ec2["server"]["dist"].as_str(), Some("/home/me/target/dist"));
        // Without that table they are wanted.
        let without = FILE.replace("[ec2.server]", "[ec2.servers]");
        let problems = Config::parse(&without, Path::new("")).unwrap_err();
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(
            said.iter().any(|message| message.starts_with("`token_file` is missing")),
            "{said:?}"
        );
    }

    #[test]
    fn the_server_gets_a_file_that_is_whole() {
        let (subnets, groups) =
            (["subnet-1".to_owned(), "subnet-2".to_owned()], ["sg-1".to_owned()]);
        let text = filled(FILE.parse().unwrap(), &filling(&subnets, &groups));
        let config = Config::parse(&text, Path::new("/etc/sojourn")).unwrap();
        assert!(!config.has_site, "{text}");
        assert_eq!(config.server, "https://10.64.0.9:8642");
        assert_eq!(config.machine.server, config.server, "{text}");
        assert_eq!(config.machine.ca.as_deref(), Some(Path::new(CA)));
        assert_eq!(config.settings.limits.machines, 16);
        let ec2 = config.ec2.unwrap();
        let region = &ec2["regions"]["eu-west-1"];
        assert_eq!(region["subnets"].as_array().map(Vec::len), Some(2));
        assert_eq!(region["security_groups"][0].as_str(), Some("sg-1"));
        assert_eq!(region["on_demand"]["c7i.large"].as_str(), Some("0.1 usd"));
        assert_eq!(ec2["user_data"].as_str(), Some(USER_DATA));
        assert!(
            text.starts_with("# Ours.\n") && text.contains("# enough"),
            "comments stay: {text}"
        );
        assert!(!text.contains("archives") && !text.contains("elsewhere"), "{text}");
    }

    #[test]
    fn own_keys_give_way_to_the_servers() {
        let own = FILE.replace(
            "fleet = 'night'",
            "fleet = 'night'\nserver = 'https://mine'\nca = 'mine.pem'",
        );
        let own = own.replace("types =", "user_data = 'mine.yaml'\ntypes =");
        let with = Filling { sends_user_data: true, ..filling(&[], &[]) };
        let config =
            Config::parse(&filled(own.parse().unwrap(), &with), Path::new("/etc/sojourn")).unwrap();
        assert_eq!(config.server, "https://10.64.0.9:8642");
        assert_eq!(config.ca.as_deref(), Some(Path::new(CA)));
        assert_eq!(config.ec2.unwrap()["user_data"].as_str(), Some(SENT_USER_DATA));
    }

    #[test]
    fn the_file_of_the_page_is_one_for_up() {
        let page = include_str!("../../../../docs/operate/aws.md");
        let block = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let config = Config::parse(block, Path::new("")).unwrap();
        assert!(config.has_site);
        #[cfg(feature = "ec2")]
        crate::clouds::check(&config).unwrap();
    }
}
