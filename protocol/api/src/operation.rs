//! An endpoint and its row in the table.

use sojourn_protocol::{error::ErrorKind, tokens::Rights};

/// Most bytes of a JSON body that grows with a job's shards or a host's cache: a job's manifest, the blobs that a submission asks
/// for, the list of a host's cache, the sums of an evaluation.
pub(crate) const MAX_LARGE_BODY: usize = 16 << 20;
/// Most bytes of any other JSON body.
pub(crate) const MAX_BODY: usize = 1 << 20;

/// One address with one method. Types of endpoints have no values that matter: they name the operation, its body and its answer.
pub trait Endpoint {
    /// The JSON body of a request; `()` where there is none, [`Raw`] where the body is bytes.
    type Body;
    /// The JSON body of a successful answer; [`Raw`] where that is something else.
    type Answer;
    /// The row of the table.
    const OPERATION: Operation;
}

/// A body that isn't JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Raw {}

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// A request that reads.
    GET,
    /// A request that changes something, or asks with a body.
    POST,
    /// An upload of bytes.
    PUT,
}

impl Method {
    /// The name in a request.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GET => "GET",
            Self::POST => "POST",
            Self::PUT => "PUT",
        }
    }
}

/// The callers that an endpoint is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callers {
    /// Everybody, without a token.
    Anyone,
    /// Machines that want to become hosts.
    Enrollers,
    /// Machines that have become hosts.
    Hosts,
    /// Processes that assimilate.
    Assimilators,
    /// Users with these rights. Those with the right to `submit` change their own jobs alone.
    Users(Rights),
    /// Hosts, and users with these rights.
    HostsAndUsers(Rights),
    /// Processes that assimilate, and users with these rights.
    AssimilatorsAndUsers(Rights),
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// The name of the endpoint's type.
    pub name: &'static str,
    /// The group of endpoints in the document.
    pub tag: &'static str,
    /// The method.
    pub method: Method,
    /// The address, with its parameters in braces: `/v1/jobs/{job}`.
    pub pattern: &'static str,
    /// The callers.
    pub callers: Callers,
    /// Most bytes of a JSON body.
    pub max_body: usize,
    /// Errors beside those that each endpoint may answer with.
    pub errors: &'static [ErrorKind],
    /// The sentences about it.
    pub about: &'static [&'static str],
    /// The parameters, the body and the answers.
    #[cfg(feature = "openapi")]
    pub(crate) forms: fn(&mut crate::schemas::Schemas) -> crate::schemas::Forms,
}

impl Operation {
    /// The name in the document: `pauseJob` of `PauseJob`.
    #[must_use]
    pub fn id(&self) -> String {
        let (first, rest) = self.name.split_at(1);
        first.to_ascii_lowercase() + rest
    }
}
