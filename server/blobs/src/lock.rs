//! Locks that a panic doesn't spoil.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks what is consistent between any two statements that can panic: a poisoned lock is as good as another.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
