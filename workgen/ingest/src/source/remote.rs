//! Sources on other machines, copied once to a temporary file.

use super::{
    file::SourceFile,
    http, s3,
    spool::{CopyError, TemporaryCopy},
};
use crate::{
    bounds::{SharedBounds, Step},
    error::{FetchError, IngestError},
    progress::Progress,
};
use futures::future::{Either, select};
use reqwest::Url;
use std::{path::Path, pin::pin, time::Duration};

/// The time between two questions whether a download may go on, beside those at each of its bytes.
const ASK_INTERVAL: Duration = Duration::from_secs(1);

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
        let done = runtime.block_on(asked_by_time(bounds, async {
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
        }));
        done.map_err(|error| error.of_source(&self.shown, spool))?;
        copy.finish(progress)
    }
}

/// The end of a download. Its bounds are asked by time as well, since a server that sends nothing would never have them asked.
pub(super) async fn asked_by_time<T>(
    bounds: &SharedBounds,
    download: impl Future<Output = Result<T, CopyError>>,
) -> Result<T, CopyError> {
    let refused = async {
        loop {
            tokio::time::sleep(ASK_INTERVAL).await;
            if let Err(refusal) = bounds.admit(Step::Read(0)) {
                return Err(CopyError::Refused(refusal));
            }
        }
    };
    match select(pin!(download), pin!(refused)).await {
        Either::Left((end, _)) | Either::Right((end, _)) => end,
    }
}
