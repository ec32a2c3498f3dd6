//! Requests of users' tokens that were refused: counted by the minute, and bounded by a quota of each token.
//!
//! The core knows the quotas, and is asked only after a refusal: a token whose requests are served costs nothing here.

use super::{AppState, access::Caller, error::HttpError};
use actix_web::http::{Method, StatusCode};
use parking_lot::Mutex;
use sojourn_core::request;
use sojourn_protocol::{error::ErrorKind, ids::TokenId, quantity::SaturatingFrom as _};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// The time in which refusals are counted together.
const WINDOW: Duration = Duration::from_secs(60);
/// Uploads ask how much of them is there, and are told so by refusals too.
const UPLOADS: &str = "/v1/uploads/{sha256}";

/// The refusals of one token in its current minute.
#[derive(Debug, Clone, Copy)]
struct Window {
    begun: Instant,
    count: u32,
    /// The token's quota, as the core said after the last refusal.
    most: u32,
}

/// The refusals of all tokens that had some in this minute.
#[derive(Debug, Default)]
pub(crate) struct FailedRequests(Mutex<BTreeMap<TokenId, Window>>);

impl FailedRequests {
    /// Refusals of a token in its current minute.
    pub(super) fn in_this_minute(&self, token: TokenId) -> u32 {
        self.known(token).map_or(0, |window| window.count)
    }

    fn known(&self, token: TokenId) -> Option<Window> {
        let known = self.0.lock().get(&token).copied();
        known.filter(|window| window.begun.elapsed() < WINDOW)
    }

    /// Counts a refusal of a token that may have so many in a minute.
    fn count(&self, token: TokenId, most: u32) {
        let mut windows = self.0.lock();
        windows.retain(|_, window| window.begun.elapsed() < WINDOW);
        let window =
            windows.entry(token).or_insert(Window { begun: Instant::now(), count: 0, most });
        window.count = window.count.saturating_add(1);
        window.most = most;
    }
}

/// Lets a caller ask who hasn't had too many refusals.
///
/// # Errors
/// How long until the token is served again.
pub(super) fn check(app: &AppState, caller: Option<Caller>) -> Result<(), HttpError> {
    let Some(Caller::User(Some(token), _)) = caller else { return Ok(()) };
    let over = app.failed_requests.known(token).filter(|window| window.count >= window.most);
    let Some(Window { begun, count, most }) = over else { return Ok(()) };
    let wait = WINDOW.saturating_sub(begun.elapsed());
    let seconds = u64::saturating_from(wait.as_millis().div_ceil(1000));
    let message = format!(
        "{count} requests of token {token} were refused in a minute, and its quota `failures` is {most}: mend what sends them; \
         the token is served again in {seconds} s, and an administrator raises the quota by `sojourn token set {token} --failures N`"
    );
    Err(HttpError::new(ErrorKind::TooManyRequests, message).retry_after(wait))
}

/// Counts a refusal, if it is one of a user's token.
pub(super) async fn note(
    app: &AppState,
    caller: Option<Caller>,
    (method, pattern): (&Method, &str),
    status: StatusCode,
) {
    let is_upload = method == Method::PUT || pattern == UPLOADS;
    let is_refusal = status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS;
    let Some(Caller::User(Some(token), _)) = caller.filter(|_| is_refusal && !is_upload) else {
        return;
    };
    // A core that can't answer refuses nothing by itself, and the next refusal asks it again.
    if let Ok(Some(most)) = app.shell.request(request::GetFailureQuota { token }).await {
        app.failed_requests.count(token, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{advance, pause};

    #[tokio::test]
    async fn refusals_are_counted_by_token_and_forgotten_after_a_minute() {
        pause();
        let refusals = FailedRequests::default();
        let (alice, bob) = (TokenId(1), TokenId(2));
        for _ in 0..3 {
            refusals.count(alice, 3);
        }
        advance(WINDOW / 2).await;
        refusals.count(bob, 9);
        assert_eq!([alice, bob].map(|token| refusals.in_this_minute(token)), [3, 1]);
        advance(WINDOW / 2).await;
        assert_eq!([alice, bob].map(|token| refusals.in_this_minute(token)), [0, 1]);
        refusals.count(alice, 3);
        assert_eq!(refusals.in_this_minute(alice), 1);
        assert_eq!(refusals.0.lock().len(), 2);
    }
}
