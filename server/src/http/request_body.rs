//! The JSON body of a request, within the bounds of its fields. Handlers take no other.

use actix_web::{Error, FromRequest, HttpRequest, dev::Payload, web::Json};
use futures::future::LocalBoxFuture;
use serde::{Serialize, de::DeserializeOwned};
use sojourn_protocol::bounds::Bounded;

/// The body of a request.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned + Serialize + 'static> FromRequest for Body<T> {
    type Error = Error;
    type Future = LocalBoxFuture<'static, Result<Self, Error>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let read = Json::<Bounded<T>>::from_request(request, payload);
        Box::pin(async move { Ok(Self(read.await?.into_inner().into_inner())) })
    }
}
