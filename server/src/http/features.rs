//! Features that a caller says it understands beyond the first version of the API.

use actix_web::{FromRequest, HttpRequest, dev::Payload, http::header::HeaderMap};
use sojourn_protocol::api::{DECIMAL_SEEDS, ENGINES, FEATURES_HEADER, HOST_SHARES};
use std::{
    convert::Infallible,
    future::{Ready, ready},
};

/// The features of a caller that the server makes use of. A caller without the header has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallerFeatures {
    /// Whether the caller names the engines of its devices to servers that know of them.
    pub(super) engines: bool,
    /// Whether the caller reads seeds that are decimal text.
    pub(super) decimal_seeds: bool,
    /// Whether the caller divides its processor as leases say.
    pub(super) host_shares: bool,
}

impl CallerFeatures {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let words = headers.get(FEATURES_HEADER).and_then(|value| value.to_str().ok());
        let has = |wanted| words.unwrap_or_default().split(',').any(|word| word.trim() == wanted);
        Self {
            engines: has(ENGINES),
            decimal_seeds: has(DECIMAL_SEEDS),
            host_shares: has(HOST_SHARES),
        }
    }
}

impl FromRequest for CallerFeatures {
    type Error = Infallible;
    type Future = Ready<Result<Self, Infallible>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self::of(request.headers())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::{HeaderName, HeaderValue};

    #[test]
    fn words_are_divided_by_commas_and_unknown_ones_mean_nothing() {
        let engines = |text: Option<&'static str>| {
            let pair =
                |text| (HeaderName::from_static(FEATURES_HEADER), HeaderValue::from_static(text));
            CallerFeatures::of(&text.map(pair).into_iter().collect()).engines
        };
        assert!(engines(Some("engines")) && engines(Some("one-day, engines")));
        assert!(!engines(Some("one-day")) && !engines(Some("search-engines")) && !engines(None));
    }
}
