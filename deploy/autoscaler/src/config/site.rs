//! A file whose cloud makes the server's machine: the file needn't say what only that machine knows. What it leaves out is as on that
//! machine, and the copy that goes there says it.

use sojourn_clouds::SiteDefaults;
use toml_edit::{DocumentMut, Item, Table, value};

/// The text of a file as the server's machine gets it, but for the table of its cloud, which the provider fills in: whole, with that
/// machine's paths. `server` is the server's address as machines see it.
#[must_use]
pub fn filled(mut file: DocumentMut, server: &str, defaults: &SiteDefaults) -> String {
    let SiteDefaults { token_file, ca, .. } = *defaults;
    for (key, is) in [("server", server), ("token_file", token_file), ("ca", ca)] {
        put(file.as_table_mut(), key, value(is));
    }
    if let Some(machine) = file.get_mut("machine").and_then(Item::as_table_like_mut) {
        // Those of the whole file are the machines' too.
        machine.remove("server");
        machine.remove("ca");
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

[cloud]
image = 'one'
";
    const DEFAULTS: SiteDefaults = SiteDefaults {
        server: "https://127.0.0.1:8642",
        token_file: "/etc/sojourn/autoscaler-token",
        ca: "/etc/sojourn/server.pem",
    };

    #[test]
    fn the_server_gets_a_file_that_is_whole() {
        let text = filled(FILE.parse().unwrap(), "https://10.64.0.9:8642", &DEFAULTS);
        let config = Config::parse(&text, Path::new("/etc/sojourn"), &[]).unwrap();
        assert!(!config.has_site, "{text}");
        assert_eq!(config.server, "https://10.64.0.9:8642");
        assert_eq!(config.machine.server, config.server, "{text}");
        assert_eq!(config.token_file, Path::new(DEFAULTS.token_file));
        assert_eq!(config.machine.ca.as_deref(), Some(Path::new(DEFAULTS.ca)));
        assert_eq!(config.settings.limits.machines, 16);
        assert_eq!(config.cloud.table["image"].as_str(), Some("one"));
        assert!(
            text.starts_with("# Ours.\n") && text.contains("# enough"),
            "comments stay: {text}"
        );
        assert!(!text.contains("elsewhere"), "{text}");
    }

    #[test]
    fn own_keys_give_way_to_the_servers() {
        let own = FILE.replace(
            "fleet = 'night'",
            "fleet = 'night'\nserver = 'https://mine'\nca = 'mine.pem'",
        );
        let text = filled(own.parse().unwrap(), "https://10.64.0.9:8642", &DEFAULTS);
        let config = Config::parse(&text, Path::new("/etc/sojourn"), &[]).unwrap();
        assert_eq!(config.server, "https://10.64.0.9:8642");
        assert_eq!(config.ca.as_deref(), Some(Path::new(DEFAULTS.ca)));
    }
}
