//! The flags that name a server and its token, and the client for it.

use crate::{
    api_client::ApiClient,
    cli::terminal::{
        exit::Failure,
        local::{DEFAULT_SERVER, local_token},
        trust::Trust,
    },
};
use sojourn_http::{Authorities, Servers};
use sojourn_protocol::error::error_chain;

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
    #[command(flatten)]
    trust: Trust,
}

impl Connection {
    /// A client for the server; nothing is sent yet.
    pub(crate) fn client(&self) -> Result<ApiClient, Failure> {
        let given = self.token.clone().filter(|token| !token.is_empty());
        let token = given.or_else(|| local_token(&self.server, TOKEN_FILE));
        if let Some(token) = &token
            && !token.chars().all(|symbol| symbol.is_ascii_graphic())
        {
            return Err(Failure::call("the token has characters that no token has"));
        }
        let ca = self.trust.file();
        let servers = servers(&self.server, ca.is_some())?;
        let authorities = ca.map(|file| Authorities::read(&file)).transpose();
        let authorities = authorities.map_err(|error| Failure::call(error_chain(&error)))?;
        Ok(ApiClient::new(servers, authorities.as_ref(), token)?)
    }
}

/// The servers that a list of addresses names.
pub(crate) fn servers(list: &str, tls: bool) -> Result<Servers, Failure> {
    Servers::parse(list, tls)
        .map_err(|error| Failure::call(format!("{error}; e.g. {DEFAULT_SERVER}")))
}
