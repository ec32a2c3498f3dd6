//! Verifies under which job records are listed. That isn't in the chain: it follows from the events.

use super::{EventJob, JournalError, Row, encoding::decode};
use sojourn_protocol::ids::{JobId, LeaseId};
use std::collections::HashMap;

/// The jobs of leases, as far as is known.
#[derive(Debug, Default)]
pub(super) struct Listing {
    leases: HashMap<LeaseId, JobId>,
}

impl Listing {
    /// These are the jobs of leases as the storage has them. Those of leases that were granted in records which are no longer
    /// kept are taken at its word.
    pub(super) fn new(leases: HashMap<LeaseId, JobId>) -> Self {
        Self { leases }
    }

    /// Verifies the next rows, in order, each listed under the job of the same place.
    pub(super) fn verify(
        &mut self,
        rows: &[Row],
        jobs: &[Option<JobId>],
    ) -> Result<(), JournalError> {
        for (row, listed) in rows.iter().zip(jobs) {
            let job = match EventJob::of(&decode(row)?.event) {
                EventJob::None => None,
                EventJob::Job(job) => Some(job),
                EventJob::Grants(lease, job) => {
                    if let Some(other) =
                        self.leases.insert(lease, job).filter(|other| *other != job)
                    {
                        let reason = format!(
                            "lease {lease} is kept as one of job {other}, and is one of job {job}"
                        );
                        return Err(JournalError::Corrupt { position: row.position, reason });
                    }
                    Some(job)
                }
                EventJob::Lease(lease) => match self.leases.get(&lease) {
                    Some(job) => Some(*job),
                    // Its lease was forgotten, before the record was written or since.
                    None => continue,
                },
            };
            if job != *listed {
                let name = |job: Option<JobId>| {
                    job.map_or("no job".to_owned(), |job| format!("job {job}"))
                };
                let reason =
                    format!("it is listed under {}, and is of {}", name(*listed), name(job));
                return Err(JournalError::Corrupt { position: row.position, reason });
            }
        }
        Ok(())
    }
}
