//! The incarnation of this start of the client, which all of its requests name, and the other one of which the server has told it.

use parking_lot::Mutex;
use sojourn_http::CallError;
use sojourn_protocol::incarnation::{INCARNATION_HEADER, Incarnation, RIVAL_HEADER};

/// This start of the client.
#[derive(Debug)]
pub(super) struct OwnIncarnation {
    own: Incarnation,
    /// Another client with this one's identity, of which the server has told it last.
    rival: Mutex<Option<Incarnation>>,
}

impl OwnIncarnation {
    pub(super) fn new() -> Self {
        Self { own: Incarnation(rand::random()), rival: Mutex::new(None) }
    }

    /// The headers of a request.
    pub(super) fn headers(&self) -> Vec<(&'static str, String)> {
        let rival = self.rival.lock().map(|rival| (RIVAL_HEADER, rival.to_string()));
        std::iter::once((INCARNATION_HEADER, self.own.to_string())).chain(rival).collect()
    }

    /// Takes a failure in. True where the server has told of another client: the request is to be repeated at once, which shows that
    /// this one is there.
    pub(super) fn hear(&self, failure: &CallError) -> bool {
        let Some(rival) = failure.rival() else { return false };
        let mut known = self.rival.lock();
        let is_new = known.replace(rival) != Some(rival);
        if is_new {
            tracing::warn!("the server has heard of another client with this machine's identity");
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::error::ApiError;

    #[test]
    fn a_rival_is_named_once_the_server_has_told_of_it() {
        let own = OwnIncarnation::new();
        let names = |own: &OwnIncarnation| -> Vec<&str> {
            own.headers().iter().map(|(name, _)| *name).collect()
        };
        assert_eq!(names(&own), [INCARNATION_HEADER]);
        let told = |rival| {
            let error = ApiError::with_rival(Incarnation(rival));
            own.hear(&CallError::Refused {
                server: "http://a".to_owned(),
                error,
                retry_after: None,
            })
        };
        assert!(told(7) && !told(7), "it repeats its request once");
        assert_eq!(own.headers().last().unwrap(), &(RIVAL_HEADER, "0000000000000007".to_owned()));
        assert!(told(8));
        assert_ne!(own.own, OwnIncarnation::new().own);
    }
}
