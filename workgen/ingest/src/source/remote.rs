//! Sources on other machines, copied once to a temporary file.

use super::{file::SourceFile, http, s3, spool::TemporaryCopy};
use crate::{
    bounds::SharedBounds,
    error::{FetchError, IngestError},
    progress::Progress,
};
use reqwest::Url;
use std::{path::Path, time::Duration};

/// A source on another machine.
pub(super) struct Remote {
    url: Url,
    shown: String,
}

impl Remote {
    /// Reads the URL that `key` of the job names.
    pub(super) fn parse(key: &'static str, text: &str) -> Result<Self, IngestError> {
        let mut url = Url::parse(text).map_err(|error| IngestError::Fetch {
            url: format!("{key} = {text}"),
            source: FetchError::BadUrl(error.to_string()),
        })?;
        let whole = url.clone();
        // A name, a password and a signature are nobody's business in a log.
        let _ = url.set_password(None);
        let _ = url.set_username("");
        url.set_query(None);
        url.set_fragment(None);
        Ok(Self { url: whole, shown: url.to_string() })
    }

    /// The error where it may not be fetched.
    pub(super) fn refused(&self) -> IngestError {
        let source = FetchError::Elsewhere(self.shown.clone());
        IngestError::Fetch { url: self.shown.clone(), source }
    }

    /// Copies it. Blocks; inside an async runtime it must be called where blocking is allowed.
    pub(super) fn fetch(
        &self,
        spool: &Path,
        bounds: &SharedBounds,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<SourceFile, IngestError> {
        let mut copy = TemporaryCopy::new(spool, &self.shown, bounds, progress)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(IngestError::io("start a download to", spool))?;
        let done = runtime.block_on(async {
            match self.url.scheme() {
                "s3" => {
                    let variables = std::env::vars_os();
                    let variables = variables.filter_map(|(name, value)| {
                        name.into_string().ok().zip(value.into_string().ok())
                    });
                    s3::fetch(&self.url, variables, &mut copy, progress).await
                }
                _ => http::fetch(&self.url, Duration::from_millis(500), &mut copy, progress).await,
            }
        });
        done.map_err(|error| error.of_source(&self.shown, spool))?;
        copy.finish(progress)
    }
}
