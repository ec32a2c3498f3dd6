//! `s3://bucket/key`, in a program that was built without it.

use super::spool::{CopyError, TemporaryCopy};
use crate::{error::FetchError, progress::Progress};
use reqwest::Url;

/// Refuses `url`.
pub(super) async fn fetch(
    _: &Url,
    _: impl Iterator<Item = (String, String)>,
    _: &mut TemporaryCopy,
    _: &mut dyn FnMut(Progress<'_>),
) -> Result<(), CopyError> {
    Err(FetchError::NotBuilt.into())
}
