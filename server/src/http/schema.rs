//! Types that only the API's document needs.

use utoipa::ToSchema;

/// A body of bytes, as they are.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "it is there for its schema")]
pub(super) struct Bytes(Vec<u8>);

/// How the body of an upload is encoded, where it isn't sent as it is.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "it is there for its schema")]
pub(super) enum ContentEncoding {
    /// Compressed by Zstandard.
    Zstd,
}
