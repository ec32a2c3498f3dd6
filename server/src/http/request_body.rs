//! The JSON body of a request, within the bounds of its fields. Handlers take no other.
//!
//! Messages between programs may have fields that this server doesn't know, from a later version: they are left out, and the answer
//! names them. Requests of people are of types that refuse such fields, since a misspelt option would be left out as well.

use super::objects::Objects;
use actix_web::{
    Error, FromRequest, HttpMessage as _, HttpRequest,
    body::BoxBody,
    dev::{Payload, ServiceResponse},
    http::header::{HeaderName, HeaderValue},
    web::Json,
};
use futures::future::LocalBoxFuture;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use sojourn_protocol::{api::UNKNOWN_FIELDS_HEADER, bounds::Bounded};

/// The body of a request.
pub(super) struct Body<T>(pub(super) T);

/// Most fields that an answer names, and most characters of one of them.
const MAX_NAMED: usize = 16;
const MAX_NAME_CHARS: usize = 64;

/// The fields of a request that this server doesn't know.
#[derive(Debug, Clone)]
struct UnknownFields(String);

/// The body as it is read: each struct from an object.
struct Read<T> {
    body: Bounded<T>,
    unknown: Vec<String>,
}

impl<'de, T: Deserialize<'de> + Serialize> Deserialize<'de> for Read<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut unknown = Vec::new();
        let mut take = |path: serde_ignored::Path<'_>| {
            if unknown.len() < MAX_NAMED {
                unknown.push(path.to_string());
            }
        };
        let deserializer = serde_ignored::Deserializer::new(Objects(deserializer), &mut take);
        Ok(Self { body: Bounded::deserialize(deserializer)?, unknown })
    }
}

impl UnknownFields {
    /// The names that can stand in a header.
    fn of(names: &[String]) -> Option<Self> {
        let is_plain = |name: &&String| {
            name.len() <= MAX_NAME_CHARS
                && name.chars().all(|one| one.is_ascii_alphanumeric() || "._-".contains(one))
        };
        let names: Vec<&str> = names.iter().filter(is_plain).map(String::as_str).collect();
        (!names.is_empty()).then(|| Self(names.join(", ")))
    }
}

/// Names the fields of a request that weren't known in the headers of its answer.
pub(super) fn name_unknown_fields(answer: &mut ServiceResponse<BoxBody>) {
    let unknown = answer.request().extensions().get::<UnknownFields>().cloned();
    let value = unknown.and_then(|UnknownFields(names)| HeaderValue::from_str(&names).ok());
    if let Some(value) = value {
        answer.headers_mut().insert(HeaderName::from_static(UNKNOWN_FIELDS_HEADER), value);
    }
}

impl<T: DeserializeOwned + Serialize + 'static> FromRequest for Body<T> {
    type Error = Error;
    type Future = LocalBoxFuture<'static, Result<Self, Error>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let read = Json::<Read<T>>::from_request(request, payload);
        let request = request.clone();
        Box::pin(async move {
            let Read { body, unknown } = read.await?.into_inner();
            if let Some(unknown) = UnknownFields::of(&unknown) {
                request.extensions_mut().insert(unknown);
            }
            Ok(Self(body.into_inner()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::api::{HeartbeatRequest, NoteRequest};

    fn read<T: DeserializeOwned + Serialize>(text: &str) -> Result<Vec<String>, String> {
        let read = serde_json::from_str::<Read<T>>(text);
        read.map(|read| read.unknown).map_err(|error| error.to_string())
    }

    #[test]
    fn programs_may_send_fields_of_later_versions_and_people_may_not() {
        let held = r#"{"lease": 1, "state": "waiting", "mood": {"is": "good"}}"#;
        let beat = format!(r#"{{"holding": [{held}], "reported": [], "weather": 3}}"#);
        let unknown = read::<HeartbeatRequest>(&beat).unwrap();
        assert_eq!(unknown, ["holding.0.mood", "weather"]);
        let shown = UnknownFields::of(&unknown).unwrap();
        assert_eq!(shown.0, "holding.0.mood, weather");
        let error = read::<NoteRequest>(r#"{"note": "a", "colour": 1}"#).unwrap_err();
        assert!(error.contains("unknown field `colour`"), "{error}");
    }

    #[test]
    fn names_that_no_header_can_have_are_left_out() {
        let long = "x".repeat(MAX_NAME_CHARS + 1);
        let unknown = ["a\r\nb", "ü", "a b", long.as_str()].map(str::to_owned);
        assert!(UnknownFields::of(&unknown).is_none());
        let many: Vec<String> = (0..100).map(|number| format!(r#""f{number}": 0"#)).collect();
        let many = format!(r#"{{"holding": [], "reported": [], {}}}"#, many.join(", "));
        assert_eq!(read::<HeartbeatRequest>(&many).unwrap().len(), MAX_NAMED);
    }
}
