//! The fence around what the servers of a journal share besides it: only the active server deletes, and nothing that it has
//! begun goes on once another may be active.
//!
//! A blob's hold ([`sojourn_blobs::BlobStore::hold`]) protects it within one process. After a take-over the other server may be
//! given the blob again, and no hold of this process keeps the two apart. A store doesn't know of leases, so that the deletion
//! must end before the lease can pass on.

use crate::journal::OpenJournal;
use std::{fmt, sync::Arc, time::Duration};

/// The time before the lease could pass on at which work under it is given up: a request that was sent just before has that
/// time to arrive.
const LEASE_MARGIN: Duration = Duration::from_millis(500);

/// The lease over the journal, to be looked at.
#[derive(Clone)]
pub struct JournalLease {
    journals: Arc<dyn OpenJournal>,
}

impl fmt::Debug for JournalLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JournalLease")
    }
}

/// Another server may be active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the lease over the journal has run out, or is about to: another server may be active")]
pub struct LeaseLost;

impl JournalLease {
    pub(super) fn new(journals: Arc<dyn OpenJournal>) -> Self {
        Self { journals }
    }

    /// Whether no other server can be active.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.journals.is_ours()
    }

    /// Does work while the lease is held, however often it must be renewed meanwhile. Where it isn't renewed in time, the work
    /// is dropped before another server can have the lease.
    ///
    /// # Errors
    /// [`LeaseLost`]; the work wasn't begun, or wasn't finished.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, LeaseLost> {
        let mut work = std::pin::pin!(work);
        loop {
            let left = self.journals.held_for().saturating_sub(LEASE_MARGIN);
            if left.is_zero() {
                return Err(LeaseLost);
            }
            if let Ok(done) = tokio::time::timeout(left, &mut work).await {
                return Ok(done);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Journal, JournalError};
    use parking_lot::Mutex;
    use std::future::pending;

    /// The lease as it is found when it is looked at, one time after the other.
    struct Leases(Mutex<Vec<Duration>>);

    impl OpenJournal for Leases {
        fn open(&self) -> Result<Box<dyn Journal>, JournalError> {
            Err(JournalError::Fenced)
        }
        fn is_shared(&self) -> bool {
            true
        }
        fn held_for(&self) -> Duration {
            self.0.lock().pop().unwrap_or_default()
        }
    }

    fn lease(mut found: Vec<Duration>) -> JournalLease {
        found.reverse();
        JournalLease::new(Arc::new(Leases(Mutex::new(found))))
    }

    #[tokio::test(start_paused = true)]
    async fn work_is_not_begun_without_a_lease_and_ends_in_time_where_it_is_not_renewed() {
        let second = Duration::from_secs(1);
        for found in [vec![], vec![LEASE_MARGIN]] {
            let begun = Mutex::new(false);
            let work = async { *begun.lock() = true };
            assert_eq!(lease(found).run(work).await, Err(LeaseLost));
            assert!(!*begun.lock());
        }
        let start = tokio::time::Instant::now();
        let renewed_once = lease(vec![second * 3, second * 3]);
        assert_eq!(renewed_once.run(pending::<()>()).await, Err(LeaseLost));
        assert_eq!(start.elapsed(), (second * 3 - LEASE_MARGIN) * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn long_work_goes_on_as_long_as_the_lease_is_renewed() {
        let second = Duration::from_secs(1);
        let work = async {
            tokio::time::sleep(second * 10).await;
            7
        };
        assert_eq!(lease(vec![second * 3; 9]).run(work).await, Ok(7));
        // A journal that isn't shared.
        assert_eq!(lease(vec![Duration::MAX]).run(async { 8 }).await, Ok(8));
    }
}
