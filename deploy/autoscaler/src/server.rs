//! The calls of the server, as a trait; and over HTTP.

use crate::config::Config;
use serde::{Serialize, de::DeserializeOwned};
use sojourn_api::{
    Request,
    endpoints::{self, Endpoint},
};
use sojourn_http::{
    Authorities, AuthoritiesError, CallError, HttpClient, HttpConfig, RetryPolicy, Servers,
    ServersError,
};
use sojourn_programs::secrets;
use sojourn_protocol::{
    demand::DemandView,
    machines::{
        CostsView, DrainRequest, LeaderAnswer, LeaderRequest, MachineName, MachinesRequest,
    },
    names::{OwnerName, TokenLabel},
    quotas::TokenQuotas,
    time::Millis,
    tokens::{TokenGrant, TokenRequest},
    view::ProgramView,
};
use std::{path::Path, time::Duration};

/// The longest that an attempt of a call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// A server, as the autoscaler sees it.
pub trait Server: Send + Sync {
    /// Asks to lead, or to lead on.
    ///
    /// # Errors
    /// Where the server can't be reached or refuses. The same holds for all other calls.
    fn lead(
        &self,
        request: &LeaderRequest,
    ) -> impl Future<Output = Result<LeaderAnswer, CallError>> + Send;

    /// The work that there is.
    ///
    /// # Errors
    /// See [`Server::lead`].
    fn demand(&self) -> impl Future<Output = Result<DemandView, CallError>> + Send;

    /// Tells of machines.
    ///
    /// # Errors
    /// See [`Server::lead`].
    fn report(
        &self,
        request: &MachinesRequest,
    ) -> impl Future<Output = Result<(), CallError>> + Send;

    /// Has hosts give their units back, and end.
    ///
    /// # Errors
    /// See [`Server::lead`].
    fn drain(&self, request: &DrainRequest) -> impl Future<Output = Result<(), CallError>> + Send;

    /// The costs of all machines.
    ///
    /// # Errors
    /// See [`Server::lead`].
    fn costs(&self) -> impl Future<Output = Result<CostsView, CallError>> + Send;

    /// A token with which one machine becomes a host.
    ///
    /// # Errors
    /// See [`Server::lead`].
    fn enrolment_token(
        &self,
        machine: &MachineName,
        lifetime: Millis,
    ) -> impl Future<Output = Result<String, CallError>> + Send;
}

/// A server over HTTP.
#[derive(Debug, Clone)]
pub struct HttpServer {
    http: HttpClient,
}

/// Why a server can't be asked at all.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The server's address is no address.
    #[error("`server` is wrong")]
    Address(#[source] ServersError),
    /// The certificates that are trusted.
    #[error("`ca` is wrong")]
    Authorities(#[source] AuthoritiesError),
    /// The token can't be read.
    #[error("`token_file`: {0}")]
    Token(String),
    /// The system's certificates can't be had.
    #[error("no connection can be made")]
    Client(#[source] reqwest::Error),
}

impl HttpServer {
    /// The server of a fleet; nothing is sent yet.
    ///
    /// # Errors
    /// Where the file names what can't be used.
    pub fn new(config: &Config) -> Result<Self, ConnectError> {
        let servers =
            Servers::parse(&config.server, config.ca.is_some()).map_err(ConnectError::Address)?;
        let authorities = config.ca.as_deref().map(Authorities::read).transpose();
        let authorities = authorities.map_err(ConnectError::Authorities)?;
        let token = token(&config.token_file)?;
        let http = HttpClient::new(
            servers,
            &HttpConfig {
                user_agent: concat!("sojourn-autoscaler/", env!("CARGO_PKG_VERSION")),
                read_timeout: Some(CALL_TIMEOUT),
                authorities: authorities.as_ref(),
                ..HttpConfig::default()
            },
        );
        let http = http.map_err(ConnectError::Client)?.with_required_protocol_header();
        Ok(Self { http: http.with_token(token) })
    }

    /// The programs that it hands out to machines.
    ///
    /// # Errors
    /// See [`Server::lead`].
    pub async fn programs(&self) -> Result<Vec<ProgramView>, CallError> {
        self.call(endpoints::Programs::request()).await
    }

    async fn call<E>(&self, request: Request<'_, E>) -> Result<E::Answer, CallError>
    where
        E: Endpoint<Body: Serialize + Sync, Answer: DeserializeOwned>,
    {
        self.http.call(request.within(CALL_TIMEOUT), RetryPolicy::WhileBusy).await
    }
}

/// The token in a file, which a header can carry.
fn token(path: &Path) -> Result<String, ConnectError> {
    let token = secrets::read(path)
        .map_err(|failure| ConnectError::Token(failure.messages().join("; ")))?;
    if token.chars().all(|symbol| symbol.is_ascii_graphic()) {
        return Ok(token);
    }
    let path = path.display();
    Err(ConnectError::Token(format!(
        "`{path}`: a token has no other characters than those of ASCII"
    )))
}

/// Asks for a token that one machine enrols with.
fn enrolment(machine: &MachineName, lifetime: Millis) -> TokenRequest {
    let grant = TokenGrant::Enrol {
        owner: OwnerName::default(),
        hosts: 1,
        machine: Some(machine.clone()),
        trusted: false,
    };
    TokenRequest {
        label: TokenLabel::default(),
        grant,
        lifetime: Some(lifetime),
        quotas: TokenQuotas::default(),
    }
}

impl Server for HttpServer {
    async fn lead(&self, request: &LeaderRequest) -> Result<LeaderAnswer, CallError> {
        // A term counts from when it was asked for, so an answer that comes late is of little use.
        let request = endpoints::Lead::request(request).within(CALL_TIMEOUT);
        self.http.call(request, RetryPolicy::Never).await
    }

    async fn demand(&self) -> Result<DemandView, CallError> {
        self.call(endpoints::Demand::request()).await
    }

    async fn report(&self, request: &MachinesRequest) -> Result<(), CallError> {
        self.call(endpoints::ReportMachines::request(request)).await.map(drop)
    }

    async fn drain(&self, request: &DrainRequest) -> Result<(), CallError> {
        self.call(endpoints::DrainMachines::request(request)).await.map(drop)
    }

    async fn costs(&self) -> Result<CostsView, CallError> {
        self.call(endpoints::Costs::request()).await
    }

    async fn enrolment_token(
        &self,
        machine: &MachineName,
        lifetime: Millis,
    ) -> Result<String, CallError> {
        let request = enrolment(machine, lifetime);
        Ok(self.call(endpoints::CreateToken::request(&request)).await?.secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machines_token_is_asked_for_by_its_name() {
        let machine: MachineName = "m-1".parse().unwrap();
        let json = serde_json::to_value(enrolment(&machine, Millis(60_000))).unwrap();
        let grant = serde_json::json!({"enrol": {"hosts": 1, "machine": "m-1"}});
        assert_eq!(json, serde_json::json!({"grant": grant, "lifetime": 60_000}));
    }

    #[test]
    fn a_token_file_has_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "secret\n").unwrap();
        assert_eq!(token(&path).unwrap(), "secret");
        for wrong in ["", "\n", "two words", "a\nb", "schlüssel", "a\u{1}b"] {
            std::fs::write(&path, wrong).unwrap();
            assert!(token(&path).is_err(), "{wrong:?}");
        }
        assert!(token(&folder.path().join("none")).is_err());
    }
}
