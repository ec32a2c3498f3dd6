//! Tokens that a server issues, and that it can revoke: what each opens, and the requests about them.
//!
//! A token is shown once, when it is made. The server keeps its hash.

use crate::{
    ids::{HostId, JobId, TokenId},
    machines::MachineName,
    metrics::is_default,
    names::{OwnerName, TokenLabel},
    quotas::{QuotaView, TokenQuotas},
    time::{Millis, UnixMillis},
};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// Hosts that may enrol with one token, at most.
pub const MAX_TOKEN_HOSTS: u32 = 1_000_000;
/// The longest time for which a token may be issued: 366 days. One that is to last longer is issued without an end.
pub const MAX_TOKEN_LIFETIME: Millis = Millis::from_secs(366 * 24 * 3600);

/// The rights of a user's token. Each includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Rights {
    /// To see jobs, results, hosts and blobs.
    Read,
    /// To submit jobs and control them.
    Submit,
    /// To do everything: hosts, tokens and the store too.
    Administer,
}

impl Rights {
    /// All of them, the fewest first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Submit, Self::Administer];

    /// The word for them, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Submit => "submit",
            Self::Administer => "administer",
        }
    }
}

impl FromStr for Rights {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|rights| rights.name() == text);
        named.ok_or("`read`, `submit` or `administer` is wanted")
    }
}

/// The access that a token gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TokenGrant {
    /// Machines enrol with it as hosts of an owner.
    Enrol {
        /// The owner of the hosts; the deployment itself, where none is named.
        #[serde(default, skip_serializing_if = "OwnerName::is_default")]
        owner: OwnerName,
        /// How many machines may enrol with it, from 1 to [`MAX_TOKEN_HOSTS`].
        hosts: u32,
        /// The bought machine that enrols with it: then it is for one host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        machine: Option<MachineName>,
        /// The owner's hosts are believed as the operator's own machines are: they are no strangers'.
        #[serde(default, skip_serializing_if = "is_default")]
        trusted: bool,
    },
    /// A user has these rights with it.
    Access {
        /// The rights.
        rights: Rights,
    },
    /// A holder of the token sees the page of one job, and nothing else.
    #[serde(rename = "share")]
    PageLink {
        /// The job.
        job: JobId,
    },
}

impl TokenGrant {
    /// The job whose page it shows, where it is for one.
    #[must_use]
    pub const fn shared_job(&self) -> Option<JobId> {
        match self {
            Self::PageLink { job } => Some(*job),
            Self::Enrol { .. } | Self::Access { .. } => None,
        }
    }
}

/// Asks for a link to a job's page that needs no user's token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ShareRequest))]
// Bounds of its fields go by the name that it has in the document.
#[serde(deny_unknown_fields, rename = "ShareRequest")]
pub struct PageLinkRequest {
    /// The link's name, for people.
    #[serde(default, skip_serializing_if = "TokenLabel::is_default")]
    pub label: TokenLabel,
    /// How long it is good for, at most [`MAX_TOKEN_LIFETIME`]; until it is revoked, where this is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<Millis>,
}

/// Asks for a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// The token's name, for people. A token of a user needs one.
    #[serde(default, skip_serializing_if = "TokenLabel::is_default")]
    pub label: TokenLabel,
    /// The access that the token gives.
    pub grant: TokenGrant,
    /// How long it is good for, at most [`MAX_TOKEN_LIFETIME`]; until it is revoked, where this is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<Millis>,
    /// Bounds of what the user's jobs may take, where they aren't the server's defaults. Only for servers with the feature
    /// [`JOB_OWNERS`](crate::api::JOB_OWNERS).
    #[serde(default, skip_serializing_if = "TokenQuotas::is_empty")]
    pub quotas: TokenQuotas,
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenView {
    /// The token's id.
    pub token: TokenId,
    /// The token's name.
    #[serde(default, skip_serializing_if = "TokenLabel::is_default")]
    pub label: TokenLabel,
    /// The access that the token gives.
    pub grant: TokenGrant,
    /// Whether it still does.
    pub state: TokenState,
    /// When it was made.
    pub created_at: UnixMillis,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixMillis>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<UnixMillis>,
    /// Machines that have enrolled with it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub enrolled: u32,
    /// The quotas of a user's token, and what is used of them. A token with the right to `administer` has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quotas: Option<QuotaView>,
}

/// Whether a token still opens anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TokenState {
    /// The token is good.
    Valid,
    /// As many machines have enrolled with it as may.
    Used,
    /// The token's time is over.
    Expired,
    /// The token was revoked.
    Revoked,
}

/// A token that was just made, with its secret, which nobody can ask for again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewToken {
    /// The secret.
    pub secret: String,
    /// The token.
    pub token: TokenView,
}

/// A token that was revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RevokedToken {
    /// The token.
    pub token: TokenView,
    /// The hosts that had enrolled with it, which are revoked too.
    pub hosts: Vec<HostId>,
}

/// A token of the server itself. There is one of each kind; it can be replaced and not revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ServerToken {
    /// All rights of users.
    Admin,
    /// Machines enrol with it as hosts of the deployment itself.
    Enrol,
    /// Processes assimilate with it.
    Assimilator,
}

impl fmt::Display for ServerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ServerToken {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Admin, Self::Enrol, Self::Assimilator];

    /// The word for it, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Enrol => "enrol",
            Self::Assimilator => "assimilator",
        }
    }

    /// The name of the file in a server's data folder that holds it.
    #[must_use]
    pub fn file(self) -> String {
        format!("{}-token", self.name())
    }
}

/// A server's own token that has just replaced the one before, which opens nothing any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RotatedToken {
    /// The new secret.
    pub secret: String,
}
