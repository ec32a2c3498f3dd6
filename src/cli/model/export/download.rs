//! Blobs of a job, from its server.

use crate::{
    api_client::ApiClient,
    cli::{
        render::progress::{Meter, Unit},
        terminal::exit::Failure,
    },
};
use sojourn_protocol::digest::BlobRef;

/// Downloads a blob, and shows how far it is.
pub(super) async fn fetch(client: &ApiClient, blob: BlobRef) -> Result<Vec<u8>, Failure> {
    let mut meter = Meter::new("downloading", Unit::Bytes, blob.bytes);
    Ok(client.download(blob, &mut |received| meter.set(received, blob.bytes, "")).await?)
}
