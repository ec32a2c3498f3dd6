//! Which server to talk to, and with which token.

use super::{
    failure::{Failure, with_sources},
    local::{DEFAULT_SERVER, local_token},
    trust::Trust,
};
use crate::api_client::ApiClient;
use reqwest::Url;
use sojourn_client::tls::Authorities;

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
