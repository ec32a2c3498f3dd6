//! Requests of machines that enrol, and of hosts.

#[cfg(feature = "openapi")]
use crate::schemas::ContentEncoding;
#[cfg(feature = "openapi")]
use sojourn_protocol::digest::Digest;
use sojourn_protocol::{
    api::{
        EnrolAnswer, EnrolRequest, HeartbeatAnswer, HeartbeatRequest, ReleaseAnswer,
        ReleaseRequest, ReportAnswer, UploadState as UploadProgress, WorkAnswer, WorkRequest,
    },
    direct::{DirectAnswer, DirectRequest},
    ids::{HostId, JobId, LeaseId},
    report::Report as HostReport,
    view::{HostDetail, HostView},
};

endpoints! {
    HOSTS = "hosts";

    /// Makes this machine a host: each time another one, with a token of its own.
    Enrol: POST "/v1/enrol" for Enrollers {
        takes EnrolRequest;
        answers EnrolAnswer = "The machine is a host.";
    }

    /// Asks for work. Held open up to `wait` where there is none. Live leases that the request doesn't hold are
    /// given again, and new ones beside them, up to `wanted` in all.
    Work: POST "/v1/work" for Hosts {
        takes WorkRequest within MAX_LARGE_BODY;
        answers WorkAnswer = "Leases, and what else the host must hear.";
    }

    /// A sign of life for the leases that a host holds.
    Heartbeat: POST "/v1/heartbeat" for Hosts {
        takes HeartbeatRequest;
        answers HeartbeatAnswer = "Leases to drop, and ends of reports.";
    }

    /// Gives leases back unfinished.
    Release: POST "/v1/release" for Hosts {
        takes ReleaseRequest;
        answers ReleaseAnswer = "The leases that were given back.";
    }

    /// Reports the end of a lease; a checkpoint has been uploaded before. The same report again gets the same answer.
    Report: POST "/v1/results" for Hosts {
        takes HostReport within MAX_LARGE_BODY;
        answers ReportAnswer = "The report is journalled.";
        fails Forbidden, NotFound, Conflict;
    }

    /// Uploads a lease's checkpoint, or goes on with it; the body is what follows `offset`.
    PutCheckpoint: PUT "/v1/leases/" {lease: LeaseId = "The lease."} "/checkpoint" for Hosts {
        query offset: u64 = "Bytes that the server holds already; 0 if left out.";
        header "sojourn-sha256": Digest = "SHA-256 of the whole decoded content.";
        header "sojourn-bytes": u64 = "Size of the whole decoded content.";
        header optional "content-encoding": ContentEncoding = "`zstd`, where the body is compressed.";
        uploads "The bytes after `offset`, in one body or in several calls; as many in all as the lease says in `upload_bytes`.";
        answers UploadProgress = "How far the upload is.";
        fails Forbidden, NotFound, Conflict, WrongOffset, TooLarge, DigestMismatch, StorageFull;
    }

    /// How far the upload of a lease's checkpoint is.
    CheckpointState: GET "/v1/leases/" {lease: LeaseId = "The lease."} "/checkpoint" for Hosts {
        answers UploadProgress = "How far the upload is.";
        fails Forbidden, NotFound, Conflict, TooLarge;
    }

    /// Asks for a way to put a lease's checkpoint in the store, past the server.
    DirectCheckpoint: POST "/v1/leases/" {lease: LeaseId = "The lease."} "/checkpoint/direct" for Hosts {
        takes DirectRequest;
        answers DirectAnswer = "The way.";
        fails Forbidden, NotFound, Conflict, TooLarge;
    }

    /// Every host, or those that work for a job now.
    Hosts: GET "/v1/hosts" for Users(Read) {
        query job: JobId = "Only hosts that have live leases of this job; all if left out.";
        answers [HostView] = "The hosts.";
        fails NotFound;
    }

    /// A host, with what lies in its cache.
    Host: GET "/v1/hosts/" {host: HostId = "The host."} for Users(Read) {
        answers HostDetail = "The host.";
        fails NotFound;
    }

    /// Has a host get no new work until it is unblocked. What it holds goes on.
    BlockHost: POST "/v1/hosts/" {host: HostId = "The host."} "/block" for Users(Administer) {
        answers HostView = "The host, blocked.";
        fails NotFound, Conflict;
    }

    /// Takes a host off the list: one that is away, and has no work.
    ForgetHost: POST "/v1/hosts/" {host: HostId = "The host."} "/forget" for Users(Administer) {
        answers HostView = "The host, as it was.";
        fails NotFound, Conflict;
    }

    /// Has a host that was blocked work again.
    UnblockHost: POST "/v1/hosts/" {host: HostId = "The host."} "/unblock" for Users(Administer) {
        answers HostView = "The host, which gets work again.";
        fails NotFound, Conflict;
    }

    /// Ends a host's right to work; its leases go to others.
    RevokeHost: POST "/v1/hosts/" {host: HostId = "The host."} "/revoke" for Users(Administer) {
        answers HostView = "The host, revoked.";
        fails NotFound;
    }
}

endpoints! {
    DELTAS = "deltas";

    /// Uploads a lease's checkpoint as its difference from the base that the lease names, or goes on with it;
    /// the body is what follows `offset`. What is refused is to be sent whole.
    PutDelta: PUT "/v1/leases/" {lease: LeaseId = "The lease."} "/checkpoint/delta" for Hosts {
        query offset: u64 = "Bytes of the delta that the server holds already; 0 if left out.";
        header "sojourn-sha256": Digest = "SHA-256 of the delta.";
        header "sojourn-bytes": u64 = "Size of the delta; less than the checkpoint's.";
        header "sojourn-base": Digest = "The blob that it is the difference from.";
        header "sojourn-result-sha256": Digest = "SHA-256 of the checkpoint.";
        header "sojourn-result-bytes": u64 = "Size of the checkpoint.";
        uploads "The bytes after `offset`, in one body or in several calls; the checkpoint has at most 256 MiB.";
        answers UploadProgress = "How far the upload of the delta is; once complete, the checkpoint is there.";
        fails Forbidden, NotFound, Conflict, WrongOffset, TooLarge, DigestMismatch, StorageFull;
    }

    /// How far the upload of a lease's delta is.
    DeltaState: GET "/v1/leases/" {lease: LeaseId = "The lease."} "/checkpoint/delta" for Hosts {
        answers UploadProgress = "How far the upload of the delta is, or that the checkpoint is there.";
        fails Forbidden, NotFound, Conflict, TooLarge;
    }
}
