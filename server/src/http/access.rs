//! The callers of each address: one table. Nobody may call an address that isn't in it.

use super::{error::HttpError, page};
use actix_web::{
    HttpResponse, ResponseError as _,
    http::{Method, header::ALLOW},
};
use sojourn_protocol::{
    error::ErrorKind,
    ids::{HostId, JobId, TokenId},
    tokens::Rights::{self, Administer, Read, Submit},
};

/// The sender of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    /// A machine that wants to become a host, with this token; `None`: with the server's own.
    Enroller(Option<TokenId>),
    Host(HostId),
    /// A user with these rights, and with this token; `None`: with the server's own.
    User(Option<TokenId>, Rights),
    /// A guest with a link to the page of this job.
    Guest(JobId),
    /// A process that assimilates.
    Assimilator,
}

/// Addresses that anybody may ask.
pub(super) const OPEN: [&str; 5] =
    ["/v1/docs", "/v1/health", "/v1/openapi.json", "/v1/programs", "/v1/programs/{sha256}"];

/// May anybody ask this path?
pub(super) fn is_open(path: &str) -> bool {
    let is_file = path.starts_with("/v1/programs/") || path.starts_with("/assets/");
    OPEN.contains(&path) || is_file || is_for_signing_in(path)
}

/// May anybody send something to this path?
pub(super) fn is_for_signing_in(path: &str) -> bool {
    ["/sign-in", "/sign-out", "/share"].contains(&path)
}

/// The callers that an address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Machines that want to become hosts.
    Enrollers,
    /// Machines that have become hosts.
    Hosts,
    /// Processes that assimilate.
    Assimilators,
    /// Guests with a link to a job's page.
    Guests,
    /// Users with these rights. Those with the right to `submit` change their own jobs alone, which the core sees to:
    /// their requests are [`OnBehalf`](sojourn_core::request::OnBehalf) of them.
    Users(Rights),
    /// Hosts, and users with these rights.
    HostsAndUsers(Rights),
    /// Processes that assimilate, and users with these rights.
    AssimilatorsAndUsers(Rights),
}

use Access::{Assimilators, AssimilatorsAndUsers, Enrollers, Guests, Hosts, HostsAndUsers, Users};

/// Every address of `/v1` with its method, but those that anybody may ask.
const TABLE: &[(&str, &str, Access)] = &[
    ("POST", "/v1/enrol", Enrollers),
    ("POST", "/v1/work", Hosts),
    ("POST", "/v1/heartbeat", Hosts),
    ("POST", "/v1/release", Hosts),
    ("POST", "/v1/results", Hosts),
    ("PUT", "/v1/leases/{lease}/checkpoint", Hosts),
    ("GET", "/v1/leases/{lease}/checkpoint", Hosts),
    ("PUT", "/v1/leases/{lease}/checkpoint/delta", Hosts),
    ("GET", "/v1/leases/{lease}/checkpoint/delta", Hosts),
    ("POST", "/v1/leases/{lease}/checkpoint/direct", Hosts),
    ("GET", "/v1/blobs/{sha256}", HostsAndUsers(Read)),
    ("PUT", "/v1/blobs/{sha256}", Users(Submit)),
    ("GET", "/v1/uploads/{sha256}", Users(Read)),
    ("POST", "/v1/blobs/missing", Users(Submit)),
    ("POST", "/v1/blobs/collect", Users(Administer)),
    ("GET", "/v1/jobs", Users(Read)),
    ("POST", "/v1/jobs", Users(Submit)),
    ("POST", "/v1/jobs/delete", Users(Submit)),
    ("GET", "/v1/jobs/{job}", Users(Read)),
    ("POST", "/v1/jobs/{job}/cancel", Users(Submit)),
    ("POST", "/v1/jobs/{job}/pause", Users(Submit)),
    ("POST", "/v1/jobs/{job}/resume", Users(Submit)),
    ("POST", "/v1/jobs/{job}/extend", Users(Submit)),
    ("GET", "/v1/jobs/{job}/search", Users(Read)),
    ("POST", "/v1/jobs/{job}/search", Users(Submit)),
    ("POST", "/v1/jobs/{job}/placement", Users(Submit)),
    ("POST", "/v1/jobs/{job}/note", Users(Submit)),
    ("POST", "/v1/jobs/{job}/rollback", Users(Submit)),
    ("GET", "/v1/jobs/{job}/trials", Users(Read)),
    ("GET", "/v1/jobs/{job}/hops", Users(Read)),
    ("GET", "/v1/jobs/{job}/shares", Users(Submit)),
    ("POST", "/v1/jobs/{job}/shares", Users(Submit)),
    ("POST", "/v1/jobs/{job}/shares/{token}/revoke", Users(Submit)),
    ("GET", "/v1/jobs/{job}/events", Users(Read)),
    ("GET", "/v1/jobs/{job}/trials/{trial}/history", Users(Read)),
    ("POST", "/v1/jobs/{job}/trials/{trial}/evaluate", Users(Submit)),
    ("GET", "/v1/jobs/{job}/trials/{trial}/evaluations", Users(Read)),
    ("GET", "/v1/assimilations", AssimilatorsAndUsers(Read)),
    ("POST", "/v1/assimilations", Assimilators),
    ("POST", "/v1/assimilations/{lease}/renew", Assimilators),
    ("POST", "/v1/assimilations/{lease}/lead", Assimilators),
    ("POST", "/v1/assimilations/{lease}/range", Assimilators),
    ("POST", "/v1/assimilations/{lease}/assimilated", Assimilators),
    ("POST", "/v1/assimilations/{lease}/rejected", Assimilators),
    ("POST", "/v1/assimilations/{lease}/lost", Assimilators),
    ("GET", "/v1/changes", Users(Read)),
    ("GET", "/metrics", Users(Read)),
    ("GET", "/v1/traffic", Users(Read)),
    ("GET", "/v1/demand", Users(Read)),
    ("GET", "/v1/costs", Users(Read)),
    ("GET", "/v1/speeds", Users(Read)),
    ("POST", "/v1/machines", Users(Administer)),
    ("POST", "/v1/machines/drain", Users(Administer)),
    ("POST", "/v1/leader", Users(Administer)),
    ("GET", "/v1/hosts", Users(Read)),
    ("GET", "/v1/failures", Users(Read)),
    ("GET", "/v1/hosts/{host}", Users(Read)),
    ("POST", "/v1/hosts/{host}/block", Users(Administer)),
    ("POST", "/v1/hosts/{host}/unblock", Users(Administer)),
    ("POST", "/v1/hosts/{host}/forget", Users(Administer)),
    ("POST", "/v1/hosts/{host}/revoke", Users(Administer)),
    ("GET", "/v1/tokens", Users(Administer)),
    ("POST", "/v1/tokens", Users(Administer)),
    ("POST", "/v1/tokens/{token}/revoke", Users(Administer)),
    ("POST", "/v1/tokens/{token}/quotas", Users(Administer)),
    ("POST", "/v1/tokens/{token}/rotate", Users(Administer)),
    ("POST", "/v1/tokens/server/{which}/rotate", Users(Administer)),
];

/// The pages, whose buttons do what addresses of the first table do.
const PAGES: &[(&str, &str, Access)] = &[
    ("GET", "/", Users(Read)),
    ("GET", "/compare", Users(Read)),
    ("GET", "/hosts", Users(Read)),
    ("GET", "/hosts/{host}", Users(Read)),
    ("POST", "/hosts/{host}", Users(Administer)),
    ("GET", "/failures", Users(Read)),
    ("GET", "/jobs/new", Users(Submit)),
    ("POST", "/jobs/new", Users(Submit)),
    ("POST", "/jobs/new/data", Users(Administer)),
    ("PUT", "/jobs/new/data/{upload}", Users(Administer)),
    ("POST", "/jobs/new/data/{upload}", Users(Administer)),
    ("GET", "/jobs/new/data/{upload}", Users(Administer)),
    ("DELETE", "/jobs/new/data/{upload}", Users(Administer)),
    ("GET", "/jobs/{job}", Users(Read)),
    ("POST", "/jobs/{job}", Users(Submit)),
    ("GET", "/share/{job}", Guests),
    ("GET", "/share/{job}/search", Guests),
    ("GET", "/share/{job}/changes", Guests),
];

/// A caller who may have a request answered. Only [`admit`] makes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Admitted(Caller);

impl Admitted {
    pub(super) const fn caller(self) -> Caller {
        self.0
    }
}

/// Why a request isn't answered.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The caller may not call the address.
    Caller(HttpError),
    /// The address has these methods.
    Method(String),
}

impl Refusal {
    pub(super) fn answer(&self, path: &str) -> HttpResponse {
        match self {
            Self::Caller(error) if page::is_page(path) => page::fault(error),
            Self::Caller(error) => error.error_response(),
            Self::Method(allowed) => {
                HttpResponse::MethodNotAllowed().insert_header((ALLOW, allowed.as_str())).finish()
            }
        }
    }
}

/// Lets a caller call an address, which is named as the table and the router have it.
///
/// # Errors
/// Where the caller may not, and for a method that isn't in the table.
pub(super) fn admit(
    method: &Method,
    pattern: &str,
    caller: Option<Caller>,
) -> Result<Admitted, Refusal> {
    let unknown = || Refusal::Caller(HttpError::unauthorized("nobody is known who sends this"));
    let caller = caller.ok_or_else(unknown)?;
    let here = || TABLE.iter().chain(PAGES).filter(|(_, path, _)| *path == pattern);
    if let Some((_, _, access)) = here().find(|(name, _, _)| *name == method.as_str()) {
        return access.admits(caller).map(|()| Admitted(caller)).map_err(Refusal::Caller);
    }
    let methods: Vec<&str> = here().map(|(name, _, _)| *name).collect();
    if methods.is_empty() {
        let error = HttpError::new(ErrorKind::Forbidden, "nobody may call this address");
        return Err(Refusal::Caller(error));
    }
    Err(Refusal::Method(methods.join(", ")))
}

impl Caller {
    /// The sort of the caller's token, in words for its holder.
    const fn token_kind(self) -> &'static str {
        match self {
            Self::Enroller(_) => "a token for machines to enrol with",
            Self::Host(_) => "a host's own token",
            Self::User(..) => "a user's token",
            Self::Guest(_) => "a link to a job's page",
            Self::Assimilator => "a token for assimilators",
        }
    }
}

impl Access {
    /// The token that the address takes.
    const fn wanted(self) -> &'static str {
        match self {
            Enrollers => "one to enrol with (`enrol-token`, or one of `sojourn token new`)",
            Hosts => "a host's own",
            Assimilators => "that of assimilators (`assimilator-token`)",
            Guests => "a link to a job's page (`sojourn share`)",
            Users(_) => "a user's (`admin-token`, or one of `sojourn token new --name`)",
            HostsAndUsers(_) => "a host's own or a user's",
            AssimilatorsAndUsers(_) => "a user's or that of assimilators",
        }
    }

    fn admits(self, caller: Caller) -> Result<(), HttpError> {
        let wanted = match (self, caller) {
            (Enrollers, Caller::Enroller(_))
            | (Hosts | HostsAndUsers(_), Caller::Host(_))
            | (Assimilators | AssimilatorsAndUsers(_), Caller::Assimilator)
            | (Guests, Caller::Guest(_)) => return Ok(()),
            (
                Users(wanted) | HostsAndUsers(wanted) | AssimilatorsAndUsers(wanted),
                Caller::User(..),
            ) => wanted,
            _ => {
                let (is, wanted) = (caller.token_kind(), self.wanted());
                let message = format!("this is {is}, and {wanted} is wanted here");
                return Err(HttpError::unauthorized(message));
            }
        };
        match caller {
            Caller::User(_, rights) if rights >= wanted => Ok(()),
            _ => {
                let message = format!("this needs a token with the right to `{}`", wanted.name());
                Err(HttpError::new(ErrorKind::Forbidden, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::openapi::DOCUMENT;
    use std::collections::BTreeSet;

    /// The security schemes that the document names for an operation.
    fn schemes(access: Access) -> BTreeSet<&'static str> {
        BTreeSet::from_iter(match access {
            Enrollers => vec!["enrolment"],
            Hosts => vec!["host"],
            Assimilators => vec!["assimilator"],
            Guests => vec![],
            Users(_) => vec!["admin"],
            HostsAndUsers(_) => vec!["admin", "host"],
            AssimilatorsAndUsers(_) => vec!["admin", "assimilator"],
        })
    }

    #[test]
    fn the_table_has_every_operation_of_the_document_and_no_other() {
        let document = DOCUMENT.as_ref().unwrap();
        let mut open = Vec::new();
        let mut seen = 0;
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let Some(security) = operation["security"].as_array() else {
                    open.push(path.as_str());
                    continue;
                };
                let named = security.iter().flat_map(|one| one.as_object().unwrap().keys());
                let named: BTreeSet<&str> = named.map(String::as_str).collect();
                let method = method.to_uppercase();
                let entry = TABLE.iter().find(|(m, p, _)| *m == method && p == path);
                let (_, _, access) = entry.unwrap_or_else(|| panic!("{method} {path}"));
                assert_eq!(schemes(*access), named, "{method} {path}");
                seen += 1;
            }
        }
        assert_eq!(seen, TABLE.len());
        assert_eq!(open, OPEN);
    }

    #[test]
    fn rights_include_those_below_them_and_nothing_else() {
        let may = |access: Access, caller: Caller| access.admits(caller).is_ok();
        for (held, wanted, admitted) in [
            (Read, Read, true),
            (Read, Submit, false),
            (Submit, Read, true),
            (Submit, Administer, false),
            (Administer, Submit, true),
        ] {
            assert_eq!(
                may(Users(wanted), Caller::User(None, held)),
                admitted,
                "{held:?} {wanted:?}"
            );
        }
        let host = Caller::Host(HostId(1));
        assert!(may(Hosts, host) && may(HostsAndUsers(Read), host) && !may(Users(Read), host));
        assert!(!may(Hosts, Caller::User(None, Administer)));
        assert!(!may(Enrollers, Caller::User(None, Administer)));
        assert!(!may(Assimilators, Caller::User(None, Administer)));
        assert!(!may(Guests, Caller::User(None, Administer)));
        let guest = Caller::Guest(JobId(1));
        for (method, path, access) in TABLE.iter().chain(PAGES) {
            let is_shared = path.starts_with("/share/") && *method == "GET";
            assert_eq!(may(*access, guest), is_shared, "{method} {path}");
        }
        // No right to change anything comes with a token that may read.
        for (method, path, access) in TABLE.iter().chain(PAGES) {
            if may(*access, Caller::User(None, Read)) {
                assert_eq!(*method, "GET", "{path}");
            }
        }
    }

    #[test]
    fn what_the_table_lacks_is_for_nobody() {
        let admin = Some(Caller::User(None, Administer));
        let status = |method, pattern, caller| match admit(&method, pattern, caller) {
            Ok(_) => 200,
            Err(refusal) => refusal.answer(pattern).status().as_u16(),
        };
        assert_eq!(status(Method::GET, "/v1/jobs", admin), 200);
        assert_eq!(status(Method::GET, "/v1/jobs", None), 401);
        assert_eq!(status(Method::GET, "/v1/new", admin), 403);
        assert_eq!(status(Method::DELETE, "/v1/jobs", admin), 405);
    }
}
