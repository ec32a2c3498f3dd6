//! Which server to talk to, and with which token.

use super::failure::{Failure, with_sources};
use crate::api_client::ApiClient;
use reqwest::Url;
use sojourn_client::tls::{Authorities, is_loopback};
use std::{fs, net::SocketAddr, path::PathBuf};

/// Where a server listens by default.
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:8642";
/// The file of a server's data folder that says where it listens.
const ADDRESS_FILE: &str = "address";
/// The file of a server's data folder that holds the admin token.
const TOKEN_FILE: &str = "admin-token";

/// The server, for every command that asks it something.
#[derive(Debug, clap::Args)]
pub(crate) struct Connection {
    /// The server's address.
    #[arg(long, env = "SOJOURN_SERVER", value_name = "URL", default_value = DEFAULT_SERVER)]
    server: String,
    /// The admin token. For a server on this machine, the one in its default data folder if left out.
    #[arg(long, env = "SOJOURN_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
    #[command(flatten)]
    trust: Trust,
}

/// Whose certificates are believed, for whatever speaks with a server.
#[derive(Debug, clap::Args)]
pub(crate) struct Trust {
    /// A PEM file with the certificate of the authority, or of the server itself, to trust instead of the
    /// system's authorities.
    #[arg(long, env = "SOJOURN_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
}

impl Trust {
    /// The file; a variable without a value names none.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        self.ca.clone().filter(|file| !file.as_os_str().is_empty())
    }
}

impl Connection {
    /// A client for the server; nothing is sent yet.
    pub(crate) fn client(&self) -> Result<ApiClient, Failure> {
        let server = server_url(&self.server)?;
        let given = self.token.clone().filter(|token| !token.is_empty());
        let token = given.or_else(|| local_token(&self.server, TOKEN_FILE));
        if let Some(token) = &token
            && !token.chars().all(|symbol| symbol.is_ascii_graphic())
        {
            return Err(Failure::call("the token has characters that no token has"));
        }
        let ca = self.trust.file();
        if ca.is_some() && server.scheme() == "http" {
            return Err(refused(
                &self.server,
                "it must begin with https:// where the certificate of an authority is named",
            ));
        }
        let authorities = ca.map(|file| Authorities::read(&file)).transpose();
        let authorities = authorities.map_err(|error| Failure::call(with_sources(&error)))?;
        Ok(ApiClient::new(&server, authorities.as_ref(), token)?)
    }
}

fn refused(server: &str, why: &str) -> Failure {
    Failure::call(format!("`{server}` is no server's address: {why}"))
}

fn server_url(text: &str) -> Result<Url, Failure> {
    let refuse = |why: &str| refused(text, &format!("{why}, e.g. {DEFAULT_SERVER}"));
    let url = Url::parse(text).map_err(|error| refuse(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refuse("it must begin with http:// or https://"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refuse("it must end with its path"));
    }
    Ok(url)
}

/// The folder that a server or client keeps its data in where nothing else is said.
pub(crate) fn data_folder(program: &str) -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    absolute("XDG_DATA_HOME").or_else(home).unwrap_or_default().join("sojourn").join(program)
}

/// A folder from the environment; the base-directory specification wants relative ones ignored.
pub(crate) fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// A token from this machine's data folder, if `server` is the server that runs on it: whatever else
/// listens on loopback is not to be told.
pub(crate) fn local_token(server: &str, file: &str) -> Option<String> {
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
