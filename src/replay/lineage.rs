//! The histories that a trial's checkpoints follow from: its own, and those of the trials from which clones go on.
//!
//! ```text
//!   trial 0: version 1 .. 8          began anew
//!                 | origin of 7: trial 0, version 4
//!   trial 7:      '--> version 1 .. 4 .. 6
//!                             | origin of 9: trial 7, version 4
//!   trial 9:                  '--> version 1 .. 2
//!
//!   the lineage of 9: trial 0 up to version 4, trial 7 up to version 4, trial 9
//! ```

use crate::{api_client::ApiClient, cli::terminal::exit::Failure};
use sojourn_api::endpoints;
use sojourn_protocol::{
    ids::{JobId, TrialId},
    quantity::to_u64,
    view::TrialHistory,
};

/// Histories, each of a trial that goes on from the one before; the first began anew.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lineage {
    histories: Vec<TrialHistory>,
}

impl Lineage {
    /// Asks the server for the histories of a trial and of those before it.
    ///
    /// # Errors
    /// Where it can't be asked, or says that a trial goes on from one that came after it.
    pub(crate) async fn fetch(
        client: &ApiClient,
        job: JobId,
        trial: TrialId,
    ) -> Result<Self, Failure> {
        let mut lineage =
            Self { histories: vec![client.call(endpoints::History::request(job, trial)).await?] };
        while let Some(before) = lineage.before()? {
            lineage.add(client.call(endpoints::History::request(job, before)).await?);
        }
        Ok(lineage)
    }

    /// The trial from which the earliest one goes on. Clones have higher ids, so the histories come to an end.
    fn before(&self) -> Result<Option<TrialId>, Failure> {
        let Some(first) = self.histories.first() else { return Ok(None) };
        match first.origin {
            Some(origin) if origin.trial >= first.trial => Err(Failure::work(format!(
                "trial {} goes on from trial {}, which isn't before it",
                first.trial, origin.trial
            ))),
            origin => Ok(origin.map(|origin| origin.trial)),
        }
    }

    /// Adds the history of that trial, as far as the clone goes on from it.
    fn add(&mut self, mut history: TrialHistory) {
        let origin = self.histories.first().and_then(|first| first.origin);
        history.hops.retain(|hop| origin.is_some_and(|origin| hop.version <= origin.version));
        self.histories.insert(0, history);
    }

    /// The trial's own history, which is the last.
    ///
    /// # Errors
    /// Where there is none.
    pub(crate) fn own(&self) -> Result<&TrialHistory, Failure> {
        self.histories.last().ok_or_else(|| Failure::work("there is no history to replay"))
    }

    /// From the first that began anew to the trial's own.
    pub(crate) fn histories(&self) -> &[TrialHistory] {
        &self.histories
    }

    /// Versions in all.
    pub(crate) fn versions(&self) -> u64 {
        to_u64(self.histories.iter().map(|history| history.hops.len()).sum())
    }
}
