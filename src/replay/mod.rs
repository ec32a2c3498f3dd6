//! Trains a trial's history again on this machine and compares every checkpoint.
//!
//! A history says which part of which shard made which version. In the numeric class that made it, the
//! same parts in the same order give the same bytes; so a run on machines that died, were late or sent
//! things twice can be shown to be the run that one machine would have done. Where results were merged it says from
//! which base each was trained and how it was merged, and both are done again. Before a clone the trials
//! are trained again from which it goes on, so the lineage of a population is shown to be the same, too.

pub(crate) mod alone;
mod files;
pub(crate) mod lineage;
mod merging;
pub(crate) mod trial;

use crate::{
    api_client::ApiClient,
    cli::terminal::{causes::slot_failure, exit::Failure},
};
use files::Files;
use lineage::Lineage;
use merging::Merging;
use serde::Serialize;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, ShardId, TrialId, Version},
    report::Outcome,
    trainer::{CLASS_THREADS, RunUnit},
    unit::{Base, Unit},
    view::{HopRecord, TrialHistory},
};
use sojourn_slot::{Slot, full_pace};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    future::pending,
    path::{Path, PathBuf},
};

/// The verdict of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// Every checkpoint came out the same, byte for byte.
    Identical,
    /// One didn't.
    Different,
    /// This machine's arithmetic isn't that of the machines that trained.
    NotJudgeable,
}

impl Verdict {
    /// The word for people.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Verdict::Identical => "identical",
            Verdict::Different => "different",
            Verdict::NotJudgeable => "not judgeable here",
        }
    }
}

/// The first version that came out otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    /// The trial that it is of, where that is one from which the replayed trial goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trial: Option<TrialId>,
    pub(crate) version: Version,
    pub(crate) epoch: Epoch,
    pub(crate) shard: ShardId,
    /// Shards that were trained after it for the same version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) then: Vec<ShardId>,
    /// Which of the version's files. Of a result that was merged only what was made of it is recorded, so a
    /// checkpoint may have come out otherwise in training or in merging.
    #[serde(skip_serializing_if = "MadeFile::is_checkpoint")]
    pub(crate) file: MadeFile,
    pub(crate) recorded: Digest,
    pub(crate) replayed: Digest,
}

/// A file of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MadeFile {
    Checkpoint,
    /// Of the merge rule.
    MergeState,
}

impl MadeFile {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_checkpoint(&self) -> bool {
        *self == Self::Checkpoint
    }
}

/// A replay's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Replayed {
    pub(crate) verdict: Verdict,
    /// Versions that were made again, with those of the trials from which it goes on.
    pub(crate) versions: u64,
    /// The last checkpoint that was made.
    pub(crate) sha256: Option<Digest>,
    pub(crate) first_difference: Option<Difference>,
    /// Why it can't be judged.
    pub(crate) reason: Option<String>,
    /// Every checkpoint of the trial's own that was made, in order.
    #[serde(skip)]
    pub(crate) made: Vec<Digest>,
}

/// Trains the histories of a lineage again in `slot`, one after the other, with data fetched into `folder`; `progress` hears how many
/// versions are made.
///
/// # Errors
/// Where data can't be fetched or the trainer fails.
pub(crate) async fn replay(
    client: &ApiClient,
    lineage: &Lineage,
    slot: &mut Slot,
    folder: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<Replayed, Failure> {
    let mut replayed = Replayed {
        verdict: Verdict::NotJudgeable,
        versions: 0,
        sha256: None,
        first_difference: None,
        reason: None,
        made: Vec::new(),
    };
    let own = lineage.own()?;
    let unjudged = |reason: String| Replayed { reason: Some(reason), ..replayed.clone() };
    if own.context.pinned_threads.is_none() {
        return Ok(unjudged("its job isn't reproducible: nothing pinned the arithmetic".into()));
    }
    // What a clone goes on from is of its own class, whatever became of the other trial later.
    let Some(there) = own.numeric_class else {
        return Ok(unjudged("hosts of several numeric classes trained it".into()));
    };
    let here = slot.hello(Some(CLASS_THREADS)).await.map_err(slot_failure)?.numeric_class;
    if here != there {
        let (here, there) = (here.short(), there.short());
        let reason = format!("it was trained in numeric class {there}, this machine is {here}");
        return Ok(unjudged(reason));
    }
    let (mut known, mut last) = (BTreeMap::new(), None);
    for history in lineage.histories() {
        if let Some(origin) = history.origin.filter(|origin| Some(origin.checkpoint) != last) {
            let (of, clone, epochs) = (origin.trial, history.trial, origin.epochs);
            return Ok(Replayed {
                reason: Some(format!(
                    "trial {of} was taken back since trial {clone} went on from it: what it was after epoch {epochs} is not in its history"
                )),
                ..replayed
            });
        }
        replayed.made.clear();
        let own_folder = folder.join(format!("trial-{}", history.trial));
        fs::create_dir_all(&own_folder)
            .map_err(|error| Failure::work(format!("`{}`: {error}", own_folder.display())))?;
        let mut files = Files::fetch(client, history, &own_folder, known).await?;
        let mut again = Again { slot: &mut *slot, progress: &mut *progress, last };
        if let Some(difference) = again.train(history, &mut files, &mut replayed).await? {
            let trial = Some(history.trial).filter(|trial| *trial != own.trial);
            replayed.verdict = Verdict::Different;
            replayed.first_difference = Some(Difference { trial, ..difference });
            return Ok(replayed);
        }
        last = again.last;
        known = files.into_known();
    }
    replayed.verdict = Verdict::Identical;
    Ok(replayed)
}

/// A slot that trains histories again.
struct Again<'a> {
    slot: &'a mut Slot,
    progress: &'a mut dyn FnMut(u64),
    /// The last checkpoint that was made.
    last: Option<BlobRef>,
}

impl Again<'_> {
    /// Trains a history from its first base on. Ends at the first version that differs.
    async fn train(
        &mut self,
        history: &TrialHistory,
        files: &mut Files<'_>,
        replayed: &mut Replayed,
    ) -> Result<Option<Difference>, Failure> {
        let mut merging = Merging::new(history)?;
        let mut current = history.first_base();
        for record in &history.hops {
            let (result, output) = train(history, record, current, files, self.slot).await?;
            let (made, state) = match &record.merged {
                None => {
                    merging.replaced();
                    files.keep(record.version, result, output);
                    (result, None)
                }
                Some(merged) => {
                    let base = files.checkpoint(files.version(merged.base, record)?)?;
                    let version = files.checkpoint(current)?;
                    let result = files.take(&output)?;
                    let made =
                        merging.merge(record, merged, current, [&base, &version, &result])?;
                    let state = Some((merged.state, made.state));
                    (files.write(record.version, &made.checkpoint)?, state)
                }
            };
            replayed.made.push(made.sha256);
            replayed.sha256 = Some(made.sha256);
            replayed.versions += 1;
            self.last = Some(made);
            (self.progress)(replayed.versions);
            if let Some(difference) = difference(record, made, state) {
                return Ok(Some(difference));
            }
            current = Base::Checkpoint { version: record.version, blob: made };
        }
        Ok(None)
    }
}

/// Trains a record's hop; gives its checkpoint and where that lies.
async fn train(
    history: &TrialHistory,
    record: &HopRecord,
    current: Base,
    files: &Files<'_>,
    slot: &mut Slot,
) -> Result<(BlobRef, PathBuf), Failure> {
    let version = record.version;
    let base = match &record.merged {
        None => current,
        Some(merged) => files.version(merged.base, record)?,
    };
    let hop = history.hop_of(record, base);
    let missing = || Failure::work(format!("the job lacks a shard of version {version}"));
    let run = RunUnit {
        files: files.known().clone(),
        output: files.output(version),
        pending: BTreeSet::new(),
        until: Some(record.end.batch),
        keep_every: None,
        unit: Unit::Train(hop.ok_or_else(missing)?),
    };
    let output = run.output.clone();
    match slot.run(run, |_| {}, pending(), full_pace()).await.map_err(slot_failure)? {
        Outcome::Trained(trained) => Ok((trained.checkpoint, output)),
        Outcome::Failed(failure) => {
            let why = failure.message;
            Err(Failure::work(format!("version {version} can't be made again: {why}")))
        }
        Outcome::Evaluated(_) => Err(Failure::work("the trainer evaluated instead of training")),
    }
}

/// The first file that differs from the recorded one. `state` has the digests of the merge state, recorded and made.
fn difference(
    record: &HopRecord,
    made: BlobRef,
    state: Option<(BlobRef, BlobRef)>,
) -> Option<Difference> {
    let files = std::iter::once((MadeFile::Checkpoint, record.checkpoint, made))
        .chain(state.map(|(recorded, made)| (MadeFile::MergeState, recorded, made)));
    let mut other = files.filter(|(_, recorded, made)| recorded != made);
    other.next().map(|(file, recorded, made)| Difference {
        trial: None,
        version: record.version,
        epoch: record.epoch(),
        shard: record.start.shard,
        then: record.then.clone(),
        file,
        recorded: recorded.sha256,
        replayed: made.sha256,
    })
}
