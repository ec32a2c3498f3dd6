//! Tokens that the server issues: to machines that enrol, and to users. The secrets are made by the shell, and the core knows
//! their hashes alone.

mod rights;

pub(crate) use rights::admit;

use crate::{
    hosts::HostHandler,
    quotas::QuotaBook,
    reply::{Refusal, Reply, conflict, invalid},
};
use sojourn_protocol::{
    digest::Digest,
    error::{ApiError, ErrorKind},
    figures,
    ids::{HostId, JobId, TokenId},
    quotas::TokenQuotas,
    spec::MAX_SLOT_SHARE,
    time::{Millis, UnixMillis},
    tokens::{MAX_TOKEN_HOSTS, MAX_TOKEN_LIFETIME, TokenGrant, TokenRequest, TokenState},
};
use sojourn_state::{By, Event, IssuedToken};

/// Tokens in the state, at most. Beyond them, those that open nothing any more are forgotten, the earliest first.
pub const MAX_TOKENS: usize = 10_000;
/// Tokens that show a job's page and still do so, at most: whoever may submit can make them, and may not use up all tokens.
pub const MAX_PAGE_LINKS: usize = 1_000;

/// Creates, replaces and revokes tokens.
pub(crate) struct TokenHandler<'a> {
    pub(crate) hosts: HostHandler<'a>,
}

fn check_quotas(quotas: &TokenQuotas) -> Reply<()> {
    if quotas.slot_share.is_some_and(|slot_share| !(1..=MAX_SLOT_SHARE).contains(&slot_share)) {
        return invalid(format!("a share is 1 to {MAX_SLOT_SHARE}"));
    }
    Ok(())
}

impl TokenHandler<'_> {
    fn now(&self) -> UnixMillis {
        self.hosts.ledger.clock.now()
    }

    fn find(&self, token: TokenId) -> Reply<&IssuedToken> {
        let known = self.hosts.ledger.state.issued.get(token);
        let unknown = || ApiError::new(ErrorKind::NotFound, format!("no token {token}"));
        Ok(known.ok_or_else(unknown)?)
    }

    fn quotas(&self) -> QuotaBook<'_> {
        self.hosts.ledger.quotas()
    }

    /// Sets bounds of a user's token; those that are left out stay as they were.
    pub(crate) fn set_quotas(
        &mut self,
        token: TokenId,
        quotas: TokenQuotas,
        by: By,
    ) -> Reply<TokenId> {
        check_quotas(&quotas)?;
        let known = self.find(token)?;
        if known.rights().is_none() {
            let message = format!("token {token} isn't a user's: it has no quotas");
            return conflict(message);
        }
        if quotas.or(known.quotas) != known.quotas {
            self.hosts.ledger.record(Event::TokenQuotasSet { token, quotas, by })?;
        }
        Ok(token)
    }

    fn check_secret(&self, sha256: Digest) -> Reply<()> {
        let state = &*self.hosts.ledger.state;
        if state.tokens.contains_key(&sha256) || state.issued.by_secret(sha256).is_some() {
            return conflict("that token is taken");
        }
        Ok(())
    }

    /// Issues a token with this hash.
    pub(crate) fn create(
        &mut self,
        request: TokenRequest,
        sha256: Digest,
        by: Option<By>,
    ) -> Reply<TokenId> {
        let TokenRequest { label, grant, lifetime, quotas } = request;
        check_quotas(&quotas)?;
        if !quotas.is_empty() && !matches!(grant, TokenGrant::Access { .. }) {
            return invalid("quotas are for tokens of users");
        }
        match &grant {
            TokenGrant::Enrol { hosts, .. } if !(1..=MAX_TOKEN_HOSTS).contains(hosts) => {
                let message = format!("a token is for 1 to {MAX_TOKEN_HOSTS} hosts, not {hosts}");
                return invalid(message);
            }
            TokenGrant::Access { .. } if label.is_default() => {
                return invalid("a token of a user needs a name");
            }
            TokenGrant::Enrol { hosts, machine: Some(machine), .. } if *hosts != 1 => {
                return invalid(format!("the token of machine {machine} is for one host"));
            }
            TokenGrant::PageLink { job } => self.check_page_link(*job, by)?,
            TokenGrant::Enrol { .. } | TokenGrant::Access { .. } => {}
        }
        if lifetime == Some(Millis(0)) {
            return invalid("a token that lasts no time opens nothing: give a longer one");
        }
        if lifetime.is_some_and(|lasts| lasts > MAX_TOKEN_LIFETIME) {
            let message = format!("a token lasts at most {MAX_TOKEN_LIFETIME}, or has no end");
            return invalid(message);
        }
        self.check_secret(sha256)?;
        self.make_room()?;
        let token = self.hosts.ledger.state.issued.next_id();
        let expires_at = lifetime.map(|lasts| self.now() + lasts);
        let grant = Box::new(grant);
        let created = Event::TokenCreated { token, sha256, label, grant, expires_at, by, quotas };
        self.hosts.ledger.record(created)?;
        Ok(token)
    }

    /// May there be another token that shows this job's page?
    fn check_page_link(&self, job: JobId, by: Option<By>) -> Reply<()> {
        let (now, state) = (self.now(), &*self.hosts.ledger.state);
        state.find_job(job)?;
        let shows = |token: &&IssuedToken| {
            token.grant.shared_job().is_some()
                && state.issued.state_of(token, now) == TokenState::Valid
        };
        let maker = by.and_then(By::token);
        let (mut all, mut own) = (0_usize, 0_u32);
        for link in state.issued.iter().filter(shows) {
            all += 1;
            own += u32::from(maker.is_some() && link.maker_of_link() == maker);
        }
        let quotas = self.quotas();
        if let Some(maker) = maker
            && let Some(limit) = quotas.limits(maker).map(|limits| limits.links)
            && own >= limit
        {
            let what = format!("{} to pages of jobs, and", figures::counted(own.into(), "link"));
            let (limit, todo) = (limit.to_string(), "revoke one, on its job's page");
            return Err(quotas.refusal(maker, "links", &what, &limit, todo).into());
        }
        if all < MAX_PAGE_LINKS {
            return Ok(());
        }
        let message =
            format!("there are {MAX_PAGE_LINKS} links to jobs, which is the most: revoke some");
        conflict(message)
    }

    /// Forgets a token that opens nothing any more, where there are as many as may be.
    fn make_room(&mut self) -> Reply<()> {
        let (now, issued) = (self.now(), &self.hosts.ledger.state.issued);
        if issued.iter().len() < MAX_TOKENS {
            return Ok(());
        }
        let ended = issued.iter().find(|token| issued.state_of(token, now) != TokenState::Valid);
        let Some(token) = ended.map(|token| token.id) else {
            let message = format!("there are {MAX_TOKENS} tokens, which is the most: revoke some");
            return conflict(message);
        };
        Ok(self.hosts.ledger.record(Event::TokenForgotten { token })?)
    }

    /// Gives a token another secret: the one before opens nothing any more.
    pub(crate) fn rotate(&mut self, token: TokenId, sha256: Digest) -> Reply<TokenId> {
        let known = self.find(token)?;
        let state = self.hosts.ledger.state.issued.state_of(known, self.now());
        if state != TokenState::Valid {
            let message = format!("token {token} opens nothing any more: make another one");
            return conflict(message);
        }
        self.check_secret(sha256)?;
        self.hosts.ledger.record(Event::TokenRotated { token, sha256 })?;
        Ok(token)
    }

    /// Revokes a token and the hosts that have enrolled with it. They are returned. `of`: the job whose page it must show.
    pub(crate) fn revoke(
        &mut self,
        token: TokenId,
        of: Option<JobId>,
        by: Option<By>,
    ) -> Reply<(TokenId, Vec<HostId>)> {
        let known = self.find(token)?;
        let job = known.grant.shared_job();
        if let Some(of) = of.filter(|of| job != Some(*of)) {
            let message = format!("token {token} isn't a link to job {of}");
            return Err(Refusal::new(ErrorKind::NotFound, message));
        }
        if known.revoked_at.is_none() {
            self.hosts.ledger.record(Event::TokenRevoked { token, job, by })?;
        }
        let hosts = self.hosts.ledger.state.hosts.values();
        let hosts = hosts.filter(|host| host.token == Some(token)).map(|host| host.id);
        let hosts: Vec<HostId> = hosts.collect();
        for host in &hosts {
            self.hosts.revoke(*host)?;
        }
        Ok((token, hosts))
    }
}
