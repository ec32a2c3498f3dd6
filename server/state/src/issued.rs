//! The tokens that the server has issued, without their secrets.

use super::{FoldFault, is_default};
use crate::event::By;
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    digest::Digest,
    ids::TokenId,
    machines::MachineName,
    names::TokenLabel,
    quotas::TokenQuotas,
    time::UnixMillis,
    tokens::{Rights, TokenGrant, TokenState},
};
use std::collections::BTreeMap;

/// A token that was issued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedToken {
    /// The token's id.
    pub id: TokenId,
    /// The hash of its secret.
    pub sha256: Digest,
    /// The token's name.
    pub label: TokenLabel,
    /// The grant: what the token opens.
    pub grant: TokenGrant,
    /// When it was made.
    pub created_at: UnixMillis,
    /// When it ends by itself.
    pub expires_at: Option<UnixMillis>,
    /// When it was revoked.
    pub revoked_at: Option<UnixMillis>,
    /// Hosts that have enrolled with it.
    pub enrolled: u32,
    /// The user who made the token, as far as that was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    /// Bounds that are set for it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub quotas: TokenQuotas,
}

impl IssuedToken {
    /// Whether it opens anything at this time, as far as that depends on the token alone ([`IssuedTokens::state_of`]).
    #[must_use]
    pub fn state(&self, now: UnixMillis) -> TokenState {
        if self.revoked_at.is_some() {
            return TokenState::Revoked;
        }
        match &self.grant {
            TokenGrant::Enrol { hosts, .. } if self.enrolled >= *hosts => TokenState::Used,
            _ if self.expires_at.is_some_and(|at| at <= now) => TokenState::Expired,
            _ => TokenState::Valid,
        }
    }

    /// The issued token that made this one, where this is a link to a job's page.
    #[must_use]
    pub fn maker_of_link(&self) -> Option<TokenId> {
        self.grant.shared_job().and(self.by?.token())
    }

    /// The rights of the user who has it, where it is a user's.
    #[must_use]
    pub const fn rights(&self) -> Option<Rights> {
        match self.grant {
            TokenGrant::Access { rights } => Some(rights),
            TokenGrant::Enrol { .. } | TokenGrant::PageLink { .. } => None,
        }
    }
}

/// All tokens that were issued and not forgotten.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedTokens {
    tokens: BTreeMap<TokenId, IssuedToken>,
    /// The id that was given last.
    last: TokenId,
    /// Tokens that aren't revoked, by the hash of their secret. An index, which a snapshot doesn't hold.
    #[serde(skip)]
    by_secret: BTreeMap<Digest, TokenId>,
}

impl IssuedTokens {
    /// Was none ever issued?
    pub(crate) fn is_empty(&self) -> bool {
        self.last == TokenId(0)
    }

    /// A token by its id.
    #[must_use]
    pub fn get(&self, token: TokenId) -> Option<&IssuedToken> {
        self.tokens.get(&token)
    }

    /// The bought machine that enrols with a token.
    pub(super) fn machine(&self, token: TokenId) -> Option<&MachineName> {
        match &self.get(token)?.grant {
            TokenGrant::Enrol { machine, .. } => machine.as_ref(),
            TokenGrant::Access { .. } | TokenGrant::PageLink { .. } => None,
        }
    }

    /// Has the operator vouched for the owner of the hosts that enrol with a token?
    pub(super) fn is_trusted(&self, token: TokenId) -> bool {
        let grant = self.get(token).map(|token| &token.grant);
        matches!(grant, Some(TokenGrant::Enrol { trusted: true, .. }))
    }

    /// The token with this secret, unless it was revoked.
    #[must_use]
    pub fn by_secret(&self, sha256: Digest) -> Option<&IssuedToken> {
        self.tokens.get(self.by_secret.get(&sha256)?)
    }

    /// Whether a token opens anything at this time. A link ends with the token that made it.
    #[must_use]
    pub fn state_of(&self, token: &IssuedToken, now: UnixMillis) -> TokenState {
        match token.maker_of_link() {
            // A maker that was forgotten had been revoked, or had expired.
            Some(maker) if token.state(now) == TokenState::Valid => {
                self.get(maker).map_or(TokenState::Revoked, |maker| maker.state(now))
            }
            _ => token.state(now),
        }
    }

    /// The rights of a user's token that opens something at this time.
    #[must_use]
    pub fn rights(&self, token: TokenId, now: UnixMillis) -> Option<Rights> {
        let known = self.get(token)?;
        known.rights().filter(|_| known.state(now) == TokenState::Valid)
    }

    /// All of them, by id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &IssuedToken> {
        self.tokens.values()
    }

    /// The id of the next one.
    #[must_use]
    pub fn next_id(&self) -> TokenId {
        self.last.next()
    }

    /// Computes the index.
    pub(super) fn index(&mut self) {
        let valid = self.tokens.values().filter(|token| token.revoked_at.is_none());
        self.by_secret = valid.map(|token| (token.sha256, token.id)).collect();
    }

    pub(super) fn create(&mut self, token: IssuedToken) -> Result<(), FoldFault> {
        if token.id <= self.last || self.by_secret.contains_key(&token.sha256) {
            return Err(FoldFault::TokenExists(token.id));
        }
        self.last = token.id;
        self.by_secret.insert(token.sha256, token.id);
        self.tokens.insert(token.id, token);
        Ok(())
    }

    pub(super) fn rotate(&mut self, token: TokenId, sha256: Digest) -> Result<(), FoldFault> {
        let known = self.tokens.get_mut(&token).ok_or(FoldFault::UnknownToken(token))?;
        if known.revoked_at.is_some() || self.by_secret.contains_key(&sha256) {
            return Err(FoldFault::TokenExists(token));
        }
        self.by_secret.remove(&known.sha256);
        self.by_secret.insert(sha256, token);
        known.sha256 = sha256;
        Ok(())
    }

    pub(super) fn revoke(&mut self, token: TokenId, at: UnixMillis) -> Result<(), FoldFault> {
        let known = self.tokens.get_mut(&token).ok_or(FoldFault::UnknownToken(token))?;
        known.revoked_at.get_or_insert(at);
        self.by_secret.remove(&known.sha256);
        Ok(())
    }

    /// Sets bounds of a token; those that are left out stay.
    pub(super) fn set_quotas(
        &mut self,
        token: TokenId,
        quotas: TokenQuotas,
    ) -> Result<(), FoldFault> {
        let known = self.tokens.get_mut(&token).ok_or(FoldFault::UnknownToken(token))?;
        known.quotas = quotas.or(known.quotas);
        Ok(())
    }

    pub(super) fn forget(&mut self, token: TokenId) -> Result<(), FoldFault> {
        let known = self.tokens.remove(&token).ok_or(FoldFault::UnknownToken(token))?;
        self.by_secret.remove(&known.sha256);
        Ok(())
    }

    /// A host has enrolled with the token.
    pub(super) fn count_host(&mut self, token: TokenId) -> Result<(), FoldFault> {
        let known = self.tokens.get_mut(&token).ok_or(FoldFault::UnknownToken(token))?;
        known.enrolled = known.enrolled.saturating_add(1);
        Ok(())
    }
}
