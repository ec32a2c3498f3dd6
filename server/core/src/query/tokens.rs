//! Views of tokens, and of whose a token is.

use super::Views;
use crate::tokens::Holder;
use sojourn_protocol::{
    digest::Digest,
    error::{ApiError, ErrorKind},
    ids::TokenId,
    tokens::{TokenGrant, TokenState, TokenView},
};

impl Views<'_> {
    /// Whose token has this hash. One that was revoked is as unknown as any other, but a host's.
    pub(crate) fn holder_of(&self, token_sha256: Digest) -> Option<Holder> {
        if let Some(host) = self.state.tokens.get(&token_sha256) {
            return Some(Holder::Host(*host));
        }
        if self.state.revoked_tokens.contains(&token_sha256) {
            return Some(Holder::Revoked);
        }
        let issued = self.state.issued.by_secret(token_sha256)?;
        match (&issued.grant, issued.state(self.now)) {
            // One that is used up or expired is known: who enrols with it hears why it is refused.
            (TokenGrant::Enrol { .. }, _) => Some(Holder::Enroller(issued.id)),
            (TokenGrant::Access { rights }, TokenState::Valid) => {
                Some(Holder::User(issued.id, *rights))
            }
            (TokenGrant::Share { job }, TokenState::Valid) => Some(Holder::Guest(issued.id, *job)),
            (TokenGrant::Access { .. } | TokenGrant::Share { .. }, _) => {
                Some(Holder::Expired(issued.id))
            }
        }
    }

    /// One token.
    pub(crate) fn token(&self, token: TokenId) -> Result<TokenView, ApiError> {
        let known = self.state.issued.get(token);
        let unknown = || ApiError::new(ErrorKind::NotFound, format!("no token {token}"));
        Ok(known.ok_or_else(unknown)?.view(self.now))
    }

    /// All tokens that were issued.
    pub(crate) fn tokens(&self) -> Vec<TokenView> {
        self.state.issued.iter().map(|token| token.view(self.now)).collect()
    }
}
