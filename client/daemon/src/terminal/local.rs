//! Local folders, the host's name, and the tokens of a server that runs on this machine.

use reqwest::Url;
use sojourn_http::is_loopback;
use std::{fs, net::SocketAddr, path::PathBuf};

/// The address of a server on this machine, by default.
pub const DEFAULT_SERVER: &str = "http://127.0.0.1:8642";
/// The file of a server's data folder that says where it listens.
const ADDRESS_FILE: &str = "address";

/// The default data folder of a server or client.
pub fn data_folder(program: &str) -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    absolute("XDG_DATA_HOME").or_else(home).unwrap_or_default().join("sojourn").join(program)
}

/// A folder from the environment; the base-directory specification wants relative ones ignored.
pub fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// A token from this machine's data folder, if `server` is the server that runs here. Other programs on loopback must
/// not learn it.
pub fn local_token(server: &str, file: &str) -> Option<String> {
    let url = Url::parse(server).ok()?;
    let folder = std::env::var_os("SOJOURN_DATA").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| data_folder("server"));
    let address = fs::read_to_string(folder.join(ADDRESS_FILE)).ok()?;
    let address: SocketAddr = address.trim().parse().ok()?;
    if !is_loopback(&url) || url.port_or_known_default() != Some(address.port()) {
        return None;
    }
    let token = fs::read_to_string(folder.join(file)).ok()?;
    Some(token.trim().to_owned())
}

/// The name of this machine.
pub fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    if name.trim().is_empty() { "host".to_owned() } else { name.trim().to_owned() }
}
