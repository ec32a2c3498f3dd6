//! Quotas of users' tokens: what their jobs take, and whether they may take more.

use sojourn_protocol::{
    digest::BlobRef,
    error::{ApiError, ErrorKind},
    figures,
    ids::TokenId,
    quantity::SaturatingFrom as _,
    quotas::{QuotaUsage, QuotaView, Quotas},
    time::UnixMillis,
    tokens::{Rights, TokenState},
};
use sojourn_scheduling::{
    config::CoreConfig,
    index::{DerivedIndex, RemainingWorkIndex},
};
use sojourn_state::{By, State};
use std::collections::BTreeMap;

/// The resources that a user asks for, beside what the user's jobs take already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Jobs that begin, or go on though they had ended.
    pub(crate) jobs: u32,
    /// Trials that begin, or go on though they had ended.
    pub(crate) trials: u32,
    /// Bytes that the store is to keep.
    pub(crate) bytes: u64,
}

/// The quotas of all tokens, and what is used of them.
#[derive(Clone, Copy)]
pub(crate) struct QuotaBook<'a> {
    pub(crate) state: &'a State,
    pub(crate) index: &'a DerivedIndex,
    pub(crate) config: &'a CoreConfig,
    pub(crate) now: UnixMillis,
}

impl QuotaBook<'_> {
    /// The bounds of a token; `None` for administrators, and for tokens that aren't a user's.
    pub(crate) fn limits(&self, token: TokenId) -> Option<Quotas> {
        let known = self.state.issued.get(token)?;
        known.rights().filter(|rights| *rights < Rights::Administer)?;
        Some(self.config.quotas.with(known.quotas))
    }

    /// Links to jobs' pages that open something, by the token that made them.
    pub(crate) fn links(&self) -> BTreeMap<TokenId, u32> {
        let mut links = BTreeMap::new();
        let issued = &self.state.issued;
        for link in issued.iter() {
            if let Some(maker) = link.maker_of_link()
                && issued.state_of(link, self.now) == TokenState::Valid
            {
                *links.entry(maker).or_default() += 1;
            }
        }
        links
    }

    /// The quotas of a token as they are shown. `links`: those of [`QuotaBook::links`].
    pub(crate) fn view(&self, token: TokenId, links: &BTreeMap<TokenId, u32>) -> Option<QuotaView> {
        let limits = self.limits(token)?;
        let links = links.get(&token).copied().unwrap_or(0);
        Some(QuotaView { limits, used: QuotaUsage { links, ..self.used(token) } })
    }

    /// The resources that the jobs of a token take.
    fn used(&self, token: TokenId) -> QuotaUsage {
        let owners = self.index.owners();
        let remaining = owners.running(token).filter_map(|job| self.index.remaining(job));
        let trials: usize = remaining.map(RemainingWorkIndex::count).sum();
        QuotaUsage {
            jobs: u32::saturating_from(owners.running(token).len()),
            trials: u32::saturating_from(trials),
            bytes: owners.bytes(token),
            links: 0,
            failures: 0,
        }
    }

    /// Bytes of those of these blobs that no job of the user has yet.
    pub(crate) fn bytes_to_add(&self, by: Option<By>, blobs: impl Iterator<Item = BlobRef>) -> u64 {
        let token = by.and_then(By::token);
        token.map_or(0, |token| self.index.owners().bytes_to_add(token, blobs))
    }

    /// May a user have this beside what the user's jobs take? Nobody but users with issued tokens has quotas.
    ///
    /// # Errors
    /// The first quota that it would exceed, with what to do.
    pub(crate) fn admit(&self, by: Option<By>, wanted: Wanted) -> Result<(), ApiError> {
        let Some(token) = by.and_then(By::token) else { return Ok(()) };
        let Some(limits) = self.limits(token) else { return Ok(()) };
        let used = self.used(token);
        let count = |count: u32| figures::count(count.into());
        let is_over =
            |used: u32, more: u32, limit: u32| more > 0 && used.saturating_add(more) > limit;
        if is_over(used.jobs, wanted.jobs, limits.jobs) {
            let has = figures::counted(used.jobs.into(), "job");
            let what = format!("{has} that haven't ended, and");
            let todo = "wait until one ends, or cancel one";
            return Err(self.refusal(token, "jobs", &what, &count(limits.jobs), todo));
        }
        if is_over(used.trials, wanted.trials, limits.trials) {
            let has = figures::counted(used.trials.into(), "trial");
            let what = format!("{has} left to train, {} would come, and", count(wanted.trials));
            let todo = "ask for fewer, or wait until some end";
            return Err(self.refusal(token, "trials", &what, &count(limits.trials), todo));
        }
        let bytes = used.bytes.saturating_add(wanted.bytes);
        if wanted != Wanted::default() && bytes > limits.bytes {
            let (has, more) = (figures::bytes(used.bytes), figures::bytes(wanted.bytes));
            let what = format!("{has} in the store, {more} would come, and");
            let todo = "delete jobs that have ended (`sojourn delete`)";
            return Err(self.refusal(token, "bytes", &what, &figures::bytes(limits.bytes), todo));
        }
        Ok(())
    }

    /// The refusal of what exceeds a quota. `what`: how much the token has, and what it asks for.
    pub(crate) fn refusal(
        &self,
        token: TokenId,
        quota: &str,
        what: &str,
        limit: &str,
        todo: &str,
    ) -> ApiError {
        let name = name_of(self.state, By::Token(token));
        let message = format!(
            "{name} has {what} its quota `{quota}` is {limit}: {todo}; an administrator raises it by `sojourn token set {token} --{quota} N`"
        );
        ApiError::new(ErrorKind::Conflict, message)
    }
}

/// The name of a token, for messages.
pub(crate) fn name_of(state: &State, by: By) -> String {
    let By::Token(token) = by else { return "the server's admin token".to_owned() };
    let label = state.issued.get(token).map(|known| &known.label);
    match label.filter(|label| !label.is_default()) {
        Some(label) => format!("`{label}`"),
        None => format!("token {token}"),
    }
}
