//! The callers of each address: those of the table of endpoints (`sojourn-api`), and of the table of pages. Nobody may call an
//! address that is in neither.

use super::{error::HttpError, page};
use actix_web::{
    HttpResponse, ResponseError as _,
    http::{Method, header::ALLOW},
};
use sojourn_api::{Callers, endpoints};
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

/// May anybody ask this path?
pub(super) fn is_open(path: &str) -> bool {
    let mut open = endpoints::all().filter(|operation| operation.callers == Callers::Anyone);
    open.any(|operation| is_at(operation.pattern, path))
        || path.starts_with("/assets/")
        || is_for_signing_in(path)
}

/// Whether a path has the form of a pattern.
fn is_at(pattern: &str, path: &str) -> bool {
    let (mut parts, mut named) = (path.split('/'), pattern.split('/'));
    named.all(|named| parts.next().is_some_and(|part| named.starts_with('{') || named == part))
        && parts.next().is_none()
}

/// May anybody send something to this path?
pub(super) fn is_for_signing_in(path: &str) -> bool {
    ["/sign-in", "/sign-out", "/share"].contains(&path)
}

/// The callers that an address is for. Users with the right to `submit` change their own jobs alone, which the core sees to: their
/// requests are [`OnBehalf`](sojourn_core::request::OnBehalf) of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Of an endpoint, or of a page that does the same.
    Callers(Callers),
    /// Guests with a link to a job's page.
    Guests,
}

const fn users(rights: Rights) -> Access {
    Access::Callers(Callers::Users(rights))
}

/// The pages, whose buttons do what endpoints do.
const PAGES: &[(&str, &str, Access)] = &[
    ("GET", "/", users(Read)),
    ("GET", "/compare", users(Read)),
    ("GET", "/hosts", users(Read)),
    ("GET", "/hosts/{host}", users(Read)),
    ("POST", "/hosts/{host}", users(Administer)),
    ("GET", "/failures", users(Read)),
    ("GET", "/find", users(Read)),
    ("GET", "/jobs/new", users(Submit)),
    ("POST", "/jobs/new", users(Submit)),
    ("POST", "/jobs/new/data", users(Administer)),
    ("PUT", "/jobs/new/data/{upload}", users(Administer)),
    ("POST", "/jobs/new/data/{upload}", users(Administer)),
    ("GET", "/jobs/new/data/{upload}", users(Administer)),
    ("POST", "/jobs/new/data/{upload}/draft", users(Administer)),
    ("DELETE", "/jobs/new/data/{upload}", users(Administer)),
    ("GET", "/jobs/{job}", users(Read)),
    ("GET", "/jobs/{job}/trials/{trial}", users(Read)),
    ("GET", "/jobs/{job}/{tab}", users(Read)),
    ("POST", "/jobs/{job}", users(Submit)),
    ("GET", "/share/{job}", Access::Guests),
    ("GET", "/share/{job}/search", Access::Guests),
    ("GET", "/share/{job}/changes", Access::Guests),
];

/// The callers of each method at an address, which is named as the table and the router have it.
fn methods_at(pattern: &str) -> impl Iterator<Item = (&'static str, Access)> {
    let endpoints = endpoints::all().filter(move |operation| operation.pattern == pattern);
    let endpoints =
        endpoints.map(|operation| (operation.method.name(), Access::Callers(operation.callers)));
    let pages = PAGES.iter().filter(move |(_, path, _)| *path == pattern);
    endpoints.chain(pages.map(|(method, _, access)| (*method, *access)))
}

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
/// Where the caller may not, and for a method that isn't in the tables.
pub(super) fn admit(
    method: &Method,
    pattern: &str,
    caller: Option<Caller>,
) -> Result<Admitted, Refusal> {
    let unknown = || Refusal::Caller(HttpError::unauthorized("nobody is known who sends this"));
    let caller = caller.ok_or_else(unknown)?;
    if let Some((_, access)) = methods_at(pattern).find(|(name, _)| *name == method.as_str()) {
        return access.admits(caller).map(|()| Admitted(caller)).map_err(Refusal::Caller);
    }
    let methods: Vec<&str> = methods_at(pattern).map(|(name, _)| name).collect();
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
            Self::Guests => "a link to a job's page (`sojourn share`)",
            Self::Callers(callers) => match callers {
                Callers::Anyone => "none",
                Callers::Enrollers => {
                    "one to enrol with (`enrol-token`, or one of `sojourn token new`)"
                }
                Callers::Hosts => "a host's own",
                Callers::Assimilators => "that of assimilators (`assimilator-token`)",
                Callers::Users(_) => {
                    "a user's (`admin-token`, or one of `sojourn token new --name`)"
                }
                Callers::HostsAndUsers(_) => "a host's own or a user's",
                Callers::AssimilatorsAndUsers(_) => "a user's or that of assimilators",
            },
        }
    }

    fn admits(self, caller: Caller) -> Result<(), HttpError> {
        let wanted = match (self, caller) {
            (Self::Callers(Callers::Anyone), _)
            | (Self::Callers(Callers::Enrollers), Caller::Enroller(_))
            | (Self::Callers(Callers::Hosts | Callers::HostsAndUsers(_)), Caller::Host(_))
            | (
                Self::Callers(Callers::Assimilators | Callers::AssimilatorsAndUsers(_)),
                Caller::Assimilator,
            )
            | (Self::Guests, Caller::Guest(_)) => return Ok(()),
            (
                Self::Callers(
                    Callers::Users(wanted)
                    | Callers::HostsAndUsers(wanted)
                    | Callers::AssimilatorsAndUsers(wanted),
                ),
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
    /// Every address that isn't for everybody, with its methods.
    fn all() -> impl Iterator<Item = (&'static str, &'static str, Access)> {
        let endpoints = endpoints::all().filter(|operation| operation.callers != Callers::Anyone);
        let endpoints = endpoints.map(|operation| {
            (operation.method.name(), operation.pattern, Access::Callers(operation.callers))
        });
        endpoints.chain(PAGES.iter().copied())
    }

    #[test]
    fn open_addresses_are_those_that_the_table_has_for_anyone() {
        for path in ["/v1/health", "/v1/programs", "/v1/programs/abc", "/assets/a.css", "/sign-in"]
        {
            assert!(is_open(path), "{path}");
        }
        for path in ["/v1/programs/a/b", "/v1/jobs", "/v1", "/", "/v1/health/"] {
            assert!(!is_open(path), "{path}");
        }
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
                may(users(wanted), Caller::User(None, held)),
                admitted,
                "{held:?} {wanted:?}"
            );
        }
        let host = Caller::Host(HostId(1));
        let of = Access::Callers;
        assert!(may(of(Callers::Hosts), host) && may(of(Callers::HostsAndUsers(Read)), host));
        assert!(!may(users(Read), host));
        for access in [Callers::Hosts, Callers::Enrollers, Callers::Assimilators].map(of) {
            assert!(!may(access, Caller::User(None, Administer)), "{access:?}");
        }
        assert!(!may(Access::Guests, Caller::User(None, Administer)));
        let guest = Caller::Guest(JobId(1));
        for (method, path, access) in all() {
            let is_shared = path.starts_with("/share/") && method == "GET";
            assert_eq!(may(access, guest), is_shared, "{method} {path}");
        }
        // No right to change anything comes with a token that may read.
        for (method, path, access) in all() {
            if may(access, Caller::User(None, Read)) {
                assert_eq!(method, "GET", "{path}");
            }
        }
    }

    #[test]
    fn addresses_in_no_table_are_for_nobody() {
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
