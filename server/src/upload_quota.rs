//! How much hosts may upload that no report has named yet: for a lease, a host and all hosts together.
//!
//! ```text
//!   PUT or signed URL --admit--> counted --report acknowledged, lease of no use any more--> not counted
//! ```
//!
//! A lease counts with the size that it declares from its first request on, so neither connections that are cut nor signed URLs
//! that aren't used get around it. It is kept in memory: a start and each sweep count anew what lies in the spool folder and in
//! the store.

use parking_lot::Mutex;
use sojourn_protocol::{
    digest::BlobRef,
    error::{ApiError, ErrorKind},
    ids::{HostId, LeaseId},
};
use std::{collections::BTreeMap, sync::Arc};

/// Uploads of one host that no report has named.
pub const DEFAULT_MAX_HOST_UPLOADS: u64 = 4_096;
/// Bytes of these.
pub const DEFAULT_MAX_HOST_UPLOAD_BYTES: u64 = 256 << 30;
/// Uploads of all hosts that no report has named.
pub const DEFAULT_MAX_UPLOADS: u64 = 1 << 20;
/// Bytes of these.
pub const DEFAULT_MAX_UPLOAD_BYTES: u64 = 4 << 40;
/// Checkpoints that a host may name for one lease, one after the other: a host that has lost one trains it again.
pub const MAX_CHECKPOINTS_PER_LEASE: u32 = 4;

/// How much may be uploaded that no report has named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadLimits {
    /// By one host.
    pub host: Uploaded,
    /// By all hosts together.
    pub all: Uploaded,
}

impl Default for UploadLimits {
    fn default() -> Self {
        Self {
            host: Uploaded {
                uploads: DEFAULT_MAX_HOST_UPLOADS,
                bytes: DEFAULT_MAX_HOST_UPLOAD_BYTES,
            },
            all: Uploaded { uploads: DEFAULT_MAX_UPLOADS, bytes: DEFAULT_MAX_UPLOAD_BYTES },
        }
    }
}

/// A number of uploads, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Uploaded {
    /// How many.
    pub uploads: u64,
    /// The sum of the uploads' declared sizes, in bytes.
    pub bytes: u64,
}

impl Uploaded {
    const fn and(self, bytes: u64) -> Self {
        Self { uploads: self.uploads.saturating_add(1), bytes: self.bytes.saturating_add(bytes) }
    }

    const fn without(self, bytes: u64) -> Self {
        Self { uploads: self.uploads.saturating_sub(1), bytes: self.bytes.saturating_sub(bytes) }
    }

    /// Is there room for one more? Always for the first, however large it is.
    const fn has_room(self, bytes: u64, limit: Self) -> bool {
        let with = self.and(bytes);
        self.uploads == 0 || (with.uploads <= limit.uploads && with.bytes <= limit.bytes)
    }
}

/// Why an upload isn't taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QuotaError {
    #[error(
        "the server holds {} uploads of this host ({} bytes) that no report has named, of {} ({} bytes) at most: report them first",
        held.uploads, held.bytes, limit.uploads, limit.bytes
    )]
    Host { held: Uploaded, limit: Uploaded },
    #[error(
        "the server holds {} uploads ({} bytes) that no report has named, of {} ({} bytes) at most: try again later",
        held.uploads, held.bytes, limit.uploads, limit.bytes
    )]
    All { held: Uploaded, limit: Uploaded },
    #[error("{MAX_CHECKPOINTS_PER_LEASE} checkpoints were named for lease {0}: no other is taken")]
    Lease(LeaseId),
}

impl From<QuotaError> for ApiError {
    fn from(error: QuotaError) -> Self {
        let kind = match error {
            QuotaError::Host { .. } | QuotaError::All { .. } => ErrorKind::StorageFull,
            QuotaError::Lease(_) => ErrorKind::Conflict,
        };
        Self::new(kind, error.to_string())
    }
}

/// Counts uploads that no report has named; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct UploadQuota {
    limits: UploadLimits,
    counted: Arc<Mutex<Counted>>,
}

#[derive(Debug, Default)]
struct Counted {
    leases: BTreeMap<LeaseId, Upload>,
    hosts: BTreeMap<HostId, Uploaded>,
    all: Uploaded,
}

#[derive(Debug, Clone, Copy)]
struct Upload {
    host: HostId,
    blob: BlobRef,
    /// Checkpoints that were named for it so far.
    named: u32,
}

impl UploadQuota {
    pub(crate) fn new(limits: UploadLimits) -> Self {
        Self { limits, counted: Arc::default() }
    }

    /// May a host upload this for its lease? Then it is counted, once for each lease.
    ///
    /// # Errors
    /// The limit that is reached.
    pub(crate) fn admit(
        &self,
        host: HostId,
        lease: LeaseId,
        blob: BlobRef,
    ) -> Result<(), QuotaError> {
        let mut counted = self.counted.lock();
        let before = counted.leases.get(&lease).copied();
        let named = match before {
            Some(upload) if upload.blob == blob => return Ok(()),
            Some(upload) if upload.named >= MAX_CHECKPOINTS_PER_LEASE => {
                return Err(QuotaError::Lease(lease));
            }
            // The one before may lie in the store until the lease is of no use.
            Some(upload) => upload.named.saturating_add(1),
            None => 1,
        };
        let UploadLimits { host: of_host, all } = self.limits;
        let held = counted.hosts.get(&host).copied().unwrap_or_default();
        if !held.has_room(blob.bytes, of_host) {
            return Err(QuotaError::Host { held, limit: of_host });
        }
        if !counted.all.has_room(blob.bytes, all) {
            return Err(QuotaError::All { held: counted.all, limit: all });
        }
        counted.insert(lease, Upload { host, blob, named });
        Ok(())
    }

    /// The uploads of all hosts that no report has named, and how much they may be.
    pub(crate) fn held(&self) -> (Uploaded, Uploaded) {
        (self.counted.lock().all, self.limits.all)
    }

    /// A lease's upload was reported, or is of no use any more.
    pub(crate) fn forget(&self, lease: LeaseId) {
        self.counted.lock().remove(lease);
    }

    /// Counts what was found to lie there, and forgets the leases that aren't live.
    pub(crate) fn recount(
        &self,
        found: impl IntoIterator<Item = (HostId, LeaseId, BlobRef)>,
        is_live: impl Fn(LeaseId) -> bool,
    ) {
        let mut counted = self.counted.lock();
        let gone: Vec<LeaseId> =
            counted.leases.keys().filter(|lease| !is_live(**lease)).copied().collect();
        gone.into_iter().for_each(|lease| counted.remove(lease));
        for (host, lease, blob) in found {
            if is_live(lease) && !counted.leases.contains_key(&lease) {
                counted.insert(lease, Upload { host, blob, named: 1 });
            }
        }
    }
}

impl Counted {
    fn insert(&mut self, lease: LeaseId, upload: Upload) {
        let bytes = upload.blob.bytes;
        let held = self.hosts.entry(upload.host).or_default();
        *held = held.and(bytes);
        self.all = self.all.and(bytes);
        self.leases.insert(lease, upload);
    }

    fn remove(&mut self, lease: LeaseId) {
        let Some(Upload { host, blob, named }) = self.leases.remove(&lease) else { return };
        let without = |held: Uploaded| (0..named).fold(held, |held, _| held.without(blob.bytes));
        self.all = without(self.all);
        if let Some(held) = self.hosts.get_mut(&host) {
            *held = without(*held);
            if held.uploads == 0 {
                self.hosts.remove(&host);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::digest::Digest;

    fn blob(number: u64, bytes: u64) -> BlobRef {
        BlobRef { sha256: Digest::of(&number.to_le_bytes()), bytes }
    }

    fn quota(host: (u64, u64), all: (u64, u64)) -> UploadQuota {
        let of = |(uploads, bytes)| Uploaded { uploads, bytes };
        UploadQuota::new(UploadLimits { host: of(host), all: of(all) })
    }

    #[test]
    fn a_host_is_refused_over_its_number_or_bytes_until_something_was_reported() {
        let quota = quota((2, 100), (100, 10_000));
        let admit = |host, lease, bytes| {
            quota
                .admit(HostId(host), LeaseId(lease), blob(lease, bytes))
                .map_err(|error| error.to_string())
        };
        assert_eq!(admit(1, 1, 60), Ok(()));
        assert!(admit(1, 2, 41).unwrap_err().contains("holds 1 uploads of this host (60 bytes)"));
        assert_eq!(admit(1, 2, 40), Ok(()));
        assert_eq!(admit(1, 1, 60), Ok(()), "it is counted already");
        assert!(admit(1, 3, 0).unwrap_err().contains("of 2 (100 bytes) at most"));
        assert_eq!(admit(2, 4, 1_000), Ok(()), "the first of a host, however large it is");
        quota.forget(LeaseId(1));
        quota.forget(LeaseId(1));
        assert_eq!(admit(1, 3, 60), Ok(()));
    }

    #[test]
    fn hosts_together_have_a_limit_that_one_upload_alone_may_pass() {
        let quota = quota((10, 1_000), (10, 100));
        let admit = |host, bytes| quota.admit(HostId(host), LeaseId(host), blob(host, bytes));
        assert_eq!(admit(1, 500), Ok(()));
        let refused = ApiError::from(admit(2, 1).unwrap_err());
        assert_eq!(refused.kind, ErrorKind::StorageFull);
        assert!(refused.message.contains("try again later"), "{refused}");
        quota.forget(LeaseId(1));
        assert_eq!(admit(2, 1), Ok(()));
    }

    #[test]
    fn few_checkpoints_may_be_named_for_a_lease_and_each_is_counted() {
        let quota = quota((4, 40), (4, 40));
        for number in 0..u64::from(MAX_CHECKPOINTS_PER_LEASE) {
            assert_eq!(quota.admit(HostId(1), LeaseId(1), blob(number, 10)), Ok(()));
        }
        let refused = quota.admit(HostId(1), LeaseId(1), blob(99, 10)).unwrap_err();
        assert_eq!(ApiError::from(refused).kind, ErrorKind::Conflict);
        let last = u64::from(MAX_CHECKPOINTS_PER_LEASE) - 1;
        assert_eq!(quota.admit(HostId(1), LeaseId(1), blob(last, 10)), Ok(()));
        assert!(quota.admit(HostId(1), LeaseId(2), blob(0, 10)).is_err());
        quota.forget(LeaseId(1));
        assert_eq!(quota.admit(HostId(1), LeaseId(2), blob(0, 10)), Ok(()));
    }

    #[test]
    fn what_lies_there_is_counted_anew_and_what_is_of_no_use_is_not() {
        let quota = quota((2, 100), (100, 10_000));
        let found = |lease| (HostId(1), LeaseId(lease), blob(lease, 10));
        quota.recount([found(1), found(2), found(3)], |lease| lease != LeaseId(3));
        assert!(quota.admit(HostId(1), LeaseId(4), blob(4, 10)).is_err());
        quota.recount([found(1)], |lease| lease == LeaseId(1));
        assert_eq!(quota.admit(HostId(1), LeaseId(4), blob(4, 10)), Ok(()));
        assert!(quota.admit(HostId(1), LeaseId(5), blob(5, 10)).is_err());
    }
}
