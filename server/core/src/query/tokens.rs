//! Views of tokens, and of whose a token is.

use super::Views;
use crate::{holder::Holder, quotas::QuotaBook};
use sojourn_protocol::{
    digest::Digest,
    error::{ApiError, ErrorKind},
    ids::{JobId, TokenId},
    tokens::{TokenGrant, TokenState, TokenView},
};
use sojourn_state::IssuedToken;
use std::collections::BTreeMap;

impl Views<'_> {
    /// The holder of the token with this hash. A token that was revoked is as unknown as any other, but for a host's.
    pub(crate) fn holder_of(&self, token_sha256: Digest) -> Option<Holder> {
        if let Some(host) = self.state.tokens.get(&token_sha256) {
            return Some(Holder::Host(*host));
        }
        if self.state.revoked_tokens.contains(&token_sha256) {
            return Some(Holder::Revoked);
        }
        let issued = self.state.issued.by_secret(token_sha256)?;
        match (&issued.grant, self.state.issued.state_of(issued, self.now)) {
            // One that is used up or expired is known: who enrols with it hears why it is refused.
            (TokenGrant::Enrol { .. }, _) => Some(Holder::Enroller(issued.id)),
            (TokenGrant::Access { rights }, TokenState::Valid) => {
                Some(Holder::User(issued.id, *rights))
            }
            (TokenGrant::PageLink { job }, TokenState::Valid) => {
                Some(Holder::Guest(issued.id, *job))
            }
            // Its maker's token was revoked, which has the same effect as if the link itself had been.
            (TokenGrant::PageLink { .. }, TokenState::Revoked) => None,
            (TokenGrant::Access { .. } | TokenGrant::PageLink { .. }, _) => {
                Some(Holder::Expired(issued.id))
            }
        }
    }

    /// One token.
    pub(crate) fn token(&self, token: TokenId) -> Result<TokenView, ApiError> {
        let known = self.state.issued.get(token);
        let unknown = || ApiError::new(ErrorKind::NotFound, format!("no token {token}"));
        let known = known.ok_or_else(unknown)?;
        Ok(self.token_view(known, &self.quotas().links()))
    }

    /// All tokens that were issued.
    pub(crate) fn tokens(&self) -> Vec<TokenView> {
        let links = self.quotas().links();
        self.state.issued.iter().map(|token| self.token_view(token, &links)).collect()
    }

    /// The links to a job's page.
    pub(crate) fn links(&self, job: JobId) -> Result<Vec<TokenView>, ApiError> {
        self.state.find_job(job)?;
        let links = self.state.issued.iter().filter(|token| token.grant.shared_job() == Some(job));
        Ok(links.map(|link| self.token_view(link, &BTreeMap::new())).collect())
    }

    /// The quotas of users' tokens, and what is used of them.
    pub(crate) fn quotas(&self) -> QuotaBook<'_> {
        QuotaBook { state: self.state, index: self.index, config: self.config, now: self.now }
    }

    /// A token as it is shown. `links`: how many links that open something each token has made.
    fn token_view(&self, token: &IssuedToken, links: &BTreeMap<TokenId, u32>) -> TokenView {
        TokenView {
            token: token.id,
            label: token.label.clone(),
            grant: token.grant.clone(),
            state: self.state.issued.state_of(token, self.now),
            created_at: token.created_at,
            expires_at: token.expires_at,
            revoked_at: token.revoked_at,
            enrolled: token.enrolled,
            quotas: self.quotas().view(token.id, links),
        }
    }
}
