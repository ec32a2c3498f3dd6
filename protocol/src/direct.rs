//! Bytes that go past the server: between hosts and the store that its blobs lie in.

use crate::{digest::BlobRef, time::UnixMillis};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Header of a request for a blob: who asks goes on, without its token, where a redirect (307) leads.
pub const DIRECT_HEADER: &str = "sojourn-direct";
/// Header of such a redirect: how the bytes that it leads to are encoded, where they aren't as the blob has them. `zstd`.
pub const ENCODING_HEADER: &str = "sojourn-encoding";
/// A feature: `POST /v1/leases/{lease}/checkpoint/direct`.
pub const DIRECT_UPLOADS: &str = "direct-uploads";

/// A host would put a lease's checkpoint in the store itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DirectRequest {
    /// The checkpoint to upload.
    pub checkpoint: BlobRef,
}

/// How it gets there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "way", rename_all = "snake_case")]
pub enum DirectAnswer {
    /// By one PUT, which the store takes for these bytes alone.
    Put {
        /// Where to; whoever has it may use it, so it goes into no log.
        url: String,
        /// Headers that must be sent with it.
        headers: BTreeMap<String, String>,
        /// From then on another must be asked for.
        expires_at: UnixMillis,
    },
    /// The checkpoint has been uploaded already.
    There,
    /// Through the server, as always.
    Through,
}
