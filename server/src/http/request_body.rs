//! The JSON body of a request, within the bounds of its fields. Handlers take no other.

use super::objects::Objects;
use actix_web::{Error, FromRequest, HttpRequest, dev::Payload, web::Json};
use futures::future::LocalBoxFuture;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use sojourn_protocol::bounds::Bounded;

/// The body of a request.
pub(super) struct Body<T>(pub(super) T);

/// The same as it is read: each struct from an object.
struct Strict<T>(Bounded<T>);

impl<'de, T: Deserialize<'de> + Serialize> Deserialize<'de> for Strict<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Bounded::deserialize(Objects(deserializer)).map(Self)
    }
}

impl<T: DeserializeOwned + Serialize + 'static> FromRequest for Body<T> {
    type Error = Error;
    type Future = LocalBoxFuture<'static, Result<Self, Error>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let read = Json::<Strict<T>>::from_request(request, payload);
        Box::pin(async move { Ok(Self(read.await?.into_inner().0.into_inner())) })
    }
}
