//! Where a server's store may be: what the server named when the machine enrolled, and what the machine's owner accepted since.
//!
//! A server that changes hands, or was broken into, can then not send its hosts anywhere else. Bytes go through the server
//! instead, so work goes on. Servers of before named nothing: for these the rule of their network holds alone (`reach`).

use crate::error::{CallError, STORE};
use reqwest::Url;
use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The known stores of one server, as `https://HOST:PORT` each.
#[derive(Debug, Default)]
pub struct KnownStores(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// `None` where the server named nothing: any that it may lead to.
    known: Option<BTreeSet<String>>,
    /// The last one that was refused.
    refused: Option<String>,
}

/// The scheme, host and port of an address: what stores are known by.
#[must_use]
pub fn store_of(url: &Url) -> String {
    url.origin().ascii_serialization()
}

impl KnownStores {
    /// These are known from now on; `None` where the server names none.
    pub fn set(&self, known: Option<BTreeSet<String>>) {
        let mut state = self.state();
        if state.refused.as_ref().is_some_and(|refused| is_known(known.as_ref(), refused)) {
            state.refused = None;
        }
        state.known = known;
    }

    /// The known ones; `None` where the server names none.
    #[must_use]
    pub fn known(&self) -> Option<BTreeSet<String>> {
        self.state().known.clone()
    }

    /// The last store that the server led to and that isn't known.
    #[must_use]
    pub fn refused(&self) -> Option<String> {
        self.state().refused.clone()
    }

    /// May a request go there?
    pub(crate) fn check(&self, target: &Url) -> Result<(), CallError> {
        let store = store_of(target);
        let mut state = self.state();
        if is_known(state.known.as_ref(), &store) {
            return Ok(());
        }
        let detail = format!(
            "the server names the store {store}, which it hadn't named when this machine enrolled; the machine's owner accepts \
             it by `sojourn client ctl accept-store {store}`"
        );
        state.refused = Some(store);
        Err(CallError::InvalidResponse {
            server: STORE.to_owned(),
            status: 0,
            detail,
            retry_after: None,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is whole before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_known(known: Option<&BTreeSet<String>>, store: &str) -> bool {
    known.is_none_or(|known| known.contains(store))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_was_not_named_is_refused_until_it_is_accepted() {
        let stores = KnownStores::default();
        let check = |url: &str| stores.check(&url.parse().unwrap());
        let (first, moved) = ("https://a.example/b?x=secret", "https://b.example:9000/b?x=secret");
        // A server of before: it named nothing.
        assert!(check(first).is_ok() && check(moved).is_ok());

        stores.set(Some([store_of(&first.parse().unwrap())].into()));
        assert!(check("https://a.example:443/other").is_ok());
        assert_eq!(stores.refused(), None);
        for other in ["http://a.example/b", "https://a.example:444/b", "https://x.a.example/b"] {
            check(other).unwrap_err();
        }
        let error = check(moved).unwrap_err();
        assert!(error.is_of_store());
        let text = error.to_string();
        assert!(text.contains("accept-store https://b.example:9000`"), "{text}");
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(stores.refused().as_deref(), Some("https://b.example:9000"));

        let accepted = ["https://a.example", "https://b.example:9000"].map(str::to_owned);
        stores.set(Some(accepted.into()));
        assert!(check(moved).is_ok() && check(first).is_ok());
        assert_eq!(stores.refused(), None);
        // A server that named no store leads nowhere.
        stores.set(Some(BTreeSet::new()));
        check(first).unwrap_err();
    }
}
