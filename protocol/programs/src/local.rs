//! Local folders, the host's name, and the tokens of a server that runs on this machine.

use reqwest::Url;
use sojourn_files::LockedFile;
use sojourn_http::is_loopback;
use std::{fs, net::SocketAddr, path::PathBuf};

/// The address of a server on this machine, by default.
pub const DEFAULT_SERVER: &str = "http://127.0.0.1:8642";
/// The file of a server's data folder that says where it listens.
const ADDRESS_FILE: &str = "address";
/// The file that a server has locked while it runs.
const LOCK_FILE: &str = "lock";

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
/// not learn it: neither those on other ports, nor one that has the port of a server that was killed and left its address.
pub fn local_token(server: &str, file: &str) -> Option<String> {
    let url = Url::parse(server).ok()?;
    let folder = std::env::var_os("SOJOURN_DATA").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| data_folder("server"));
    let address = fs::read_to_string(folder.join(ADDRESS_FILE)).ok()?;
    let address: SocketAddr = address.trim().parse().ok()?;
    if !is_loopback(&url) || url.port_or_known_default() != Some(address.port()) {
        return None;
    }
    // A server that lives holds its folder's lock, and has removed the address of the one before it.
    if !LockedFile::is_locked(&folder.join(LOCK_FILE)).ok()? {
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
