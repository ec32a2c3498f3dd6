//! The flags that name a server and its token, and the client for it.

use crate::{
    api_client::ApiClient,
    cli::terminal::{
        exit::Failure,
        local::{DEFAULT_SERVER, local_token},
        secrets::secret,
        trust::Trust,
    },
};
use sojourn_http::Servers;
use std::path::{Path, PathBuf};

/// The file of a server's data folder that holds the admin token.
const TOKEN_FILE: &str = "admin-token";

/// The server, for every command that asks it something.
#[derive(Debug, clap::Args)]
pub(crate) struct Connection {
    /// The server's address; of several servers, of which one is active, all of them with commas between.
    #[arg(long, env = "SOJOURN_SERVER", value_name = "URL", default_value = DEFAULT_SERVER)]
    server: String,
    /// The admin token. For a server on this machine, the one in its default data folder if left out.
    #[arg(long, env = "SOJOURN_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
    /// A file with the token, which others can't read as they can a command line.
    #[arg(long, env = "SOJOURN_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    trust: Trust,
}

impl Connection {
    /// A client for the server; nothing is sent yet.
    pub(crate) fn client(&self) -> Result<ApiClient, Failure> {
        let given = (self.token.as_deref(), self.token_file.as_deref());
        let token = token(given, &self.server, TOKEN_FILE)?;
        let servers = servers(&self.server, self.trust.file().is_some())?;
        let authorities = self.trust.authorities()?;
        Ok(ApiClient::new(servers, authorities.as_ref(), token)?)
    }
}

/// The token that was given, or in a file that was; or the one in `file` of a server on this machine.
pub(crate) fn token(
    (given, given_file): (Option<&str>, Option<&Path>),
    server: &str,
    file: &str,
) -> Result<Option<String>, Failure> {
    let given = secret("--token", given, given_file)?;
    let token = given.or_else(|| local_token(server, file));
    if token.iter().flat_map(|token| token.chars()).all(|symbol| symbol.is_ascii_graphic()) {
        Ok(token)
    } else {
        Err(Failure::call("the token has characters that no token has"))
    }
}

/// The servers that a list of addresses names.
pub(crate) fn servers(list: &str, tls: bool) -> Result<Servers, Failure> {
    Servers::parse(list, tls)
        .map_err(|error| Failure::call(format!("{error}; e.g. {DEFAULT_SERVER}")))
}
