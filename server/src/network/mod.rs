//! Bounds against whoever is on the network: connections, the time that heads, bodies and answers may take, the memory of bodies,
//! failed authentications, enrolments. Nothing here knows a request's meaning.
//!
//! | module | bounds |
//! |---|---|
//! | [`connections`] | open connections, in all and of one address |
//! | [`stream`] | the time for a head, and for reading an answer |
//! | [`bodies`] | the memory of bodies |
//! | [`rate_limit`] | how often something happens, for each of many callers |
//! | [`address`] | whose address it is, behind a proxy too |

mod address;
mod bodies;
mod connections;
mod rate_limit;
mod stream;

pub(crate) use address::AddressKey;
pub(crate) use bodies::{BodyBudget, BodyMemory, Sender};
pub(crate) use connections::{Admission, ConnectionLimits, Connections};
pub use connections::{DEFAULT_MAX_CONNECTIONS_PER_ADDRESS, PerAddress};
pub use rate_limit::Rate;
pub(crate) use rate_limit::RateLimiter;
pub(crate) use stream::{
    ActiveRequest, Connection, GuardedStream, HEAD_TIMEOUT, TLS_HANDSHAKE_TIMEOUT,
};

use crate::traffic::{Refusal, Traffic};
use actix_web::http::header::HeaderMap;
use sojourn_protocol::digest::Digest;
use std::{net::IpAddr, sync::Arc, time::Duration};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::Instant,
};

/// Failed authentications of one address: so many at once, then one each second. Only failures are bounded: a token that the server
/// knows works on, whoever else fails behind the same address.
const FAILED_AUTHENTICATIONS: Rate = Rate { burst: 120, interval: Duration::from_secs(1) };
/// Most tokens that the core is asked for at one time. Other requests with tokens that aren't cached wait in line, so the core has time
/// for the rest.
const MAX_TOKEN_SEARCHES: usize = 16;
/// Enrolments from one address, by default: a large lab at once, then one each second.
pub const DEFAULT_ENROLMENTS_PER_ADDRESS: Rate =
    Rate { burst: 2_000, interval: Duration::from_secs(1) };
/// Enrolments with one token, by default: a large deployment at once, then ten each second.
pub const DEFAULT_ENROLMENTS_PER_TOKEN: Rate =
    Rate { burst: 20_000, interval: Duration::from_millis(100) };
/// A machine that starts asks for programs up to so many times: the list, client and trainer, and one that was cut off. It enrols once.
const FETCHES_PER_ENROLMENT: u32 = 4;
/// Refusals of one address are logged so often.
const LOG_RATE: Rate = Rate { burst: 1, interval: Duration::from_secs(60) };

/// The bounds that an operator can set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkConfig {
    /// All connections come from a proxy, which says in `X-Forwarded-For` for whom it asks.
    pub behind_proxy: bool,
    /// Most connections of one address; without a bound where all come from a proxy.
    pub max_connections_per_address: PerAddress,
    /// How often machines may enrol from one address.
    pub enrolments_per_address: Rate,
    /// How often machines may enrol with one token.
    pub enrolments_per_token: Rate,
    /// The file descriptors that the process may have; `None` asks the system.
    pub descriptors: Option<usize>,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            behind_proxy: false,
            max_connections_per_address: PerAddress::Default,
            enrolments_per_address: DEFAULT_ENROLMENTS_PER_ADDRESS,
            enrolments_per_token: DEFAULT_ENROLMENTS_PER_TOKEN,
            descriptors: None,
        }
    }
}

/// The bounds of a server, and what is used of them.
#[derive(Debug)]
pub(crate) struct Network {
    behind_proxy: bool,
    begun: Instant,
    traffic: Arc<Traffic>,
    connections: Arc<Connections>,
    bodies: Arc<BodyBudget>,
    failed_authentications: RateLimiter,
    token_searches: Semaphore,
    enrolments_by_address: RateLimiter,
    enrolments_by_token: RateLimiter,
    programs: RateLimiter,
    log: RateLimiter,
}

impl Network {
    pub(crate) fn new(config: &NetworkConfig, descriptors: usize, traffic: Arc<Traffic>) -> Self {
        let per_address = (!config.behind_proxy).then_some(config.max_connections_per_address);
        let limits = ConnectionLimits::of(descriptors, per_address);
        Self {
            behind_proxy: config.behind_proxy,
            begun: Instant::now(),
            connections: Arc::new(Connections::new(limits, Arc::clone(&traffic))),
            bodies: Arc::new(BodyBudget::new(Arc::clone(&traffic))),
            failed_authentications: RateLimiter::new(FAILED_AUTHENTICATIONS),
            token_searches: Semaphore::new(MAX_TOKEN_SEARCHES),
            enrolments_by_address: RateLimiter::new(config.enrolments_per_address),
            enrolments_by_token: RateLimiter::new(config.enrolments_per_token),
            programs: RateLimiter::new(Rate {
                burst: config.enrolments_per_address.burst.saturating_mul(FETCHES_PER_ENROLMENT),
                interval: config.enrolments_per_address.interval / FETCHES_PER_ENROLMENT,
            }),
            log: RateLimiter::new(LOG_RATE),
            traffic,
        }
    }

    pub(crate) const fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    pub(crate) const fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    /// The memory that one body takes of the memory for bodies.
    pub(crate) fn body_memory(&self, sender: Sender) -> BodyMemory {
        self.bodies.body(sender)
    }

    /// For whom a request comes.
    pub(crate) fn caller(&self, peer: IpAddr, headers: &HeaderMap) -> AddressKey {
        let forwarded = self.behind_proxy.then(|| address::forwarded(headers)).flatten();
        AddressKey::of(forwarded.unwrap_or(peer))
    }

    /// Is a proxy before the server?
    pub(crate) const fn is_behind_proxy(&self) -> bool {
        self.behind_proxy
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The permit to search for a token, once there is one.
    pub(crate) async fn token_search(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.token_searches.acquire().await.ok()
    }

    /// Counts an authentication that failed.
    ///
    /// # Errors
    /// How long until the address may try again, where it has failed too often.
    pub(crate) fn authentication_failed(&self, caller: AddressKey) -> Result<(), Duration> {
        self.traffic.authentication_failed();
        if self.may_log(("authentication", caller)) {
            tracing::warn!(address = %caller, "a request had no known token");
        }
        let taken = self.failed_authentications.take(self.now(), caller);
        if taken.is_err() {
            self.traffic.refused(Refusal::Authentications);
        }
        taken
    }

    /// Takes an enrolment from the shares of the address and of the token.
    ///
    /// # Errors
    /// How long until there is room for one.
    pub(crate) fn enrol(&self, caller: AddressKey, token: Digest) -> Result<(), Duration> {
        let now = self.now();
        let taken = self.enrolments_by_address.check(now, caller);
        let taken = taken.and_then(|()| self.enrolments_by_token.take(now, token));
        let taken = taken.and_then(|()| self.enrolments_by_address.take(now, caller));
        if taken.is_err() {
            self.traffic.refused(Refusal::Enrolments);
            if self.may_log(("enrolment", caller)) {
                tracing::warn!(address = %caller, "machines enrol faster than the server allows");
            }
        }
        taken
    }

    /// Takes a look at the programs, or a fetch of one, from the share of the address.
    ///
    /// # Errors
    /// How long until there is room for one.
    pub(crate) fn fetch_program(&self, caller: AddressKey) -> Result<(), Duration> {
        let taken = self.programs.take(self.now(), caller);
        if taken.is_err() {
            self.traffic.refused(Refusal::Enrolments);
            if self.may_log(("programs", caller)) {
                tracing::warn!(address = %caller, "programs are fetched faster than the server allows");
            }
        }
        taken
    }

    /// Says once a minute for each address that connections of it are refused.
    pub(crate) fn log_refused_connection(&self, caller: AddressKey, reason: Refusal) {
        if self.may_log(("connection", caller)) {
            let open = self.traffic.totals().open_connections;
            tracing::warn!(address = %caller, ?reason, open, "a connection was refused");
        }
    }

    fn may_log(&self, line: (&str, AddressKey)) -> bool {
        self.log.take(self.now(), line).is_ok()
    }
}
