//! The owner of a job: the token that it was submitted with.

use crate::{ids::TokenId, names::TokenLabel};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name by which the server's own admin token is shown as an owner.
pub const ADMIN_OWNER: &str = "admin";

/// The token that a job was submitted with.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobOwner {
    /// The token's number; left out for the server's own admin token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    /// The token's name; left out where the server has forgotten the token.
    #[serde(default, skip_serializing_if = "TokenLabel::is_default")]
    pub name: TokenLabel,
}

impl JobOwner {
    /// Is the owner called so: by the token's name or number, or as `admin`?
    #[must_use]
    pub fn is_called(&self, text: &str) -> bool {
        self.to_string() == text || self.token.is_some_and(|token| token.to_string() == text)
    }
}

impl fmt::Display for JobOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.token {
            None => f.write_str(ADMIN_OWNER),
            Some(token) if self.name.is_default() => write!(f, "token {token}"),
            Some(_) => self.name.fmt(f),
        }
    }
}
