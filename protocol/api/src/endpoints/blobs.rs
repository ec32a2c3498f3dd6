//! Blobs, and programs that machines fetch.

#[cfg(feature = "openapi")]
use crate::schemas::ContentEncoding;
use sojourn_protocol::{
    api::{
        CollectAnswer, CollectRequest, MissingAnswer, MissingRequest, UploadState as UploadProgress,
    },
    digest::Digest,
    view::ProgramView,
};

endpoints! {
    BLOBS = "blobs";

    /// Which of these blobs does the server lack?
    MissingBlobs: POST "/v1/blobs/missing" for Users(Submit) {
        takes MissingRequest within MAX_LARGE_BODY;
        answers MissingAnswer = "The blobs to upload.";
    }

    /// Throws away what lies in the store and the journal doesn't know, or says what that would be.
    CollectBlobs: POST "/v1/blobs/collect" for Users(Administer) {
        takes CollectRequest;
        answers CollectAnswer = "What was found.";
    }

    /// The bytes of a blob, or a range of them. A host reads what its leases name.
    Blob: GET "/v1/blobs/" {sha256: Digest = "The blob."} for HostsAndUsers(Read) {
        header optional "range": String = "One range, e.g. `bytes=100-199`.";
        header optional "sojourn-direct": String = "`follow`: a redirect to the store is followed, without the token.";
        header optional "accept-encoding": String = "`zstd`: all bytes may come compressed. With a range they come as they are.";
        gives 200 "application/octet-stream" = "All bytes, compressed where that was asked for and saves a tenth.";
        gives 206 "application/octet-stream" = "The range." with "content-range" = "Which bytes of how many.";
        gives 307 = "The store gives it, and ranges of it, for a short time; only where that was asked for." with "location" = "Where to. Whoever has it may use it.";
        fails Forbidden, NotFound, RangeNotSatisfiable;
    }

    /// Uploads a blob, or goes on with it; the body is what follows `offset`.
    PutBlob: PUT "/v1/blobs/" {sha256: Digest = "SHA-256 of the whole decoded content."} for Users(Submit) {
        query offset: u64 = "Bytes that the server holds already; 0 if left out.";
        header "sojourn-bytes": u64 = "Size of the whole decoded content.";
        header optional "content-encoding": ContentEncoding = "`zstd`, where the body is compressed.";
        uploads "The bytes after `offset`, in one body or in several calls; a blob has at most 16 TiB.";
        answers UploadProgress = "How far the upload is; once complete, the blob is stored.";
        fails Conflict, WrongOffset, TooLarge, DigestMismatch, StorageFull;
    }

    /// How far the upload of a blob is.
    UploadState: GET "/v1/uploads/" {sha256: Digest = "The blob."} for Users(Read) {
        answers UploadProgress = "How far the upload is.";
    }
}

endpoints! {
    PROGRAMS = "programs";

    /// The programs that machines can fetch.
    Programs: GET "/v1/programs" for Anyone {
        answers [ProgramView] = "Names, sizes and digests.";
    }

    /// A program, by its digest.
    Program: GET "/v1/programs/" {sha256: Digest = "Its digest."} for Anyone {
        gives 200 "application/octet-stream" = "Its bytes.";
        fails NotFound;
    }
}
