//! The incarnation of a host's client, which its requests name: the core hears of it before the request.

use super::{App, error::HttpError};
use actix_web::{FromRequest, HttpRequest, dev::Payload, http::header::HeaderMap};
use sojourn_core::request;
use sojourn_protocol::{
    error::ErrorKind,
    ids::HostId,
    incarnation::{INCARNATION_HEADER, Incarnation, RIVAL_HEADER},
};
use std::future::{Ready, ready};

/// The incarnation of a caller, where it names one, and the other one of which it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallerIncarnation {
    own: Option<Incarnation>,
    rival: Option<Incarnation>,
}

impl CallerIncarnation {
    fn of(headers: &HeaderMap) -> Result<Self, HttpError> {
        let read = |name: &str| {
            let value = headers.get(name).map(|value| value.to_str().unwrap_or_default());
            let read = value.map(str::parse).transpose();
            read.map_err(|error| HttpError::new(ErrorKind::Invalid, format!("`{name}`: {error}")))
        };
        Ok(Self { own: read(INCARNATION_HEADER)?, rival: read(RIVAL_HEADER)? })
    }

    /// Has the core hear of it.
    ///
    /// # Errors
    /// Where another client works with the host's identity.
    pub(super) async fn check(self, app: &App, host: HostId) -> Result<(), HttpError> {
        let Self { own: Some(incarnation), rival } = self else { return Ok(()) };
        let heard = request::HearIncarnation { host, incarnation, rival };
        let heard = app.shell.request(heard).await;
        if let Err(error) = &heard
            && error.copied_identity
        {
            tracing::warn!(host = host.0, %incarnation, "another machine has this host's identity too, and is refused: it has to enrol anew");
        }
        Ok(heard?)
    }
}

impl FromRequest for CallerIncarnation {
    type Error = HttpError;
    type Future = Ready<Result<Self, HttpError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Self::of(request.headers()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::{HeaderName, HeaderValue};

    #[test]
    fn a_caller_may_name_no_incarnation_and_no_wrong_one() {
        let of = |text: &'static str| {
            let pair =
                (HeaderName::from_static(INCARNATION_HEADER), HeaderValue::from_static(text));
            CallerIncarnation::of(&std::iter::once(pair).collect())
        };
        let named = of("00000000000000ab").unwrap();
        assert_eq!(named, CallerIncarnation { own: Some(Incarnation(0xab)), rival: None });
        assert_eq!(of("ab").unwrap_err().kind(), ErrorKind::Invalid);
        let none = CallerIncarnation::of(&HeaderMap::new()).unwrap();
        assert_eq!(none, CallerIncarnation { own: None, rival: None });
    }
}
