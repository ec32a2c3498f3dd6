//! A job as event files that TensorBoard reads: a run folder for each trial, and the experiment for the HPARAMS tab.
//!
//! ```text
//! DIR/events.out.tfevents...                  the experiment: names of hyper-parameters and metrics
//! DIR/trial-0-mlp-.../events.out.tfevents...  a trial: its hyper-parameters, scalars by epoch, its end
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `record` | the framing of a file's records |
//! | `event` | events and summaries |
//! | `hparams` | the data of the HPARAMS tab |
//! | `run` | the events of one trial, and those of the experiment |
//! | `folder` | the files in `DIR` |
//!
//! The crates `tensorboard-rs` 0.5 and `tfrecord` 0.15 rest on `protobuf` 2 and `prost` 0.12, which are superseded, and write nothing for
//! the HPARAMS tab. So the few messages are declared here, and encoded by `prost` 0.14.

mod event;
mod folder;
mod hparams;
mod record;
mod run;

use super::answers::Answers;
use crate::cli::terminal::exit::Failure;
use folder::EventFolder;
use sojourn_protocol::view::JobView;
use std::path::Path;

/// The event files of a job, which may be brought up to date while it runs.
pub(super) struct TensorBoard {
    folder: EventFolder,
}

impl TensorBoard {
    /// Opens the folder, which is made where it is missing. One that has another job's event files is refused.
    pub(super) fn open(path: &Path, answers: &Answers) -> Result<Self, Failure> {
        let summary = &answers.detail.summary;
        Ok(Self { folder: EventFolder::open(path, summary.job, summary.submitted_at)? })
    }

    /// The folder of a job among those of others: `job-3-digits`.
    pub(super) fn folder_of(view: &JobView) -> String {
        format!("job-{}-{}", view.job, run::safe_name(&view.name))
    }

    /// Writes what isn't written yet. Returns the number of trials that have a run.
    pub(super) fn update(&mut self, answers: &Answers) -> Result<usize, Failure> {
        if let Some(events) = run::experiment(answers) {
            self.folder.put("", events)?;
        }
        let mut runs = 0;
        for trial in &answers.trials {
            if let Some(events) = run::trial(answers, trial) {
                self.folder.put(&run::folder_name(trial), events)?;
                runs += 1;
            }
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests;
