//! Trains a trial's history again on this machine and compares every checkpoint (DESIGN section 8).
//!
//! A history says which part of which shard made which version. In the numeric class that made it, the
//! same parts in the same order give the same bytes; so a run on machines that died, were late or sent
//! things twice can be shown to be the run that one machine would have done.

use crate::{api_client::ApiClient, cli::Failure};
use serde::Serialize;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, ShardId, Version},
    report::Outcome,
    trainer::{CLASS_THREADS, RunUnit},
    unit::{Base, Unit, shard_index},
    view::{HopRecord, TrialHistory},
};
use sojourn_slot::{Slot, full_pace};
use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    path::{Path, PathBuf},
};

/// What a replay says.
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
    pub(crate) version: Version,
    pub(crate) epoch: Epoch,
    pub(crate) shard: ShardId,
    /// Shards that were trained after it for the same version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) then: Vec<ShardId>,
    pub(crate) recorded: Digest,
    pub(crate) replayed: Digest,
}

/// A replay's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Replayed {
    pub(crate) verdict: Verdict,
    /// Versions that were made again.
    pub(crate) versions: u64,
    /// The last checkpoint that was made.
    pub(crate) sha256: Option<Digest>,
    pub(crate) first_difference: Option<Difference>,
    /// Why it can't be judged.
    pub(crate) reason: Option<String>,
    /// Every checkpoint that was made, in order.
    #[serde(skip)]
    pub(crate) made: Vec<Digest>,
}

/// Trains the history again in `slot`, with data fetched into `folder`; `progress` hears how many
/// versions are made.
///
/// # Errors
/// Where data can't be fetched or the trainer fails.
pub(crate) async fn replay(
    client: &ApiClient,
    history: &TrialHistory,
    slot: &mut Slot,
    folder: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<Replayed, Failure> {
    let replayed = Replayed {
        verdict: Verdict::NotJudgeable,
        versions: 0,
        sha256: None,
        first_difference: None,
        reason: None,
        made: Vec::new(),
    };
    let unjudged = |reason: &str| Ok(Replayed { reason: Some(reason.into()), ..replayed.clone() });
    if history.context.pinned_threads.is_none() {
        return unjudged("its job isn't reproducible: nothing pinned the arithmetic");
    }
    let Some(there) = history.numeric_class else {
        return unjudged("hosts of several numeric classes trained it");
    };
    let here = slot.hello(Some(CLASS_THREADS)).await?.numeric_class;
    if here != there {
        let (here, there) = (here.short(), there.short());
        let reason = format!("it was trained in numeric class {there}, this machine is {here}");
        return Ok(Replayed { reason: Some(reason), ..replayed });
    }
    let mut replayed = replayed;
    let mut files = Files::fetch(client, history, folder).await?;
    let mut base = history.first_base();
    for record in &history.hops {
        let missing =
            || Failure::work(format!("the job lacks a shard of version {}", record.version));
        let unit = Unit::Train(history.hop_of(record, base).ok_or_else(missing)?);
        let run = RunUnit {
            files: files.known.clone(),
            output: files.output(record),
            coming: BTreeSet::new(),
            until: Some(record.end.batch),
            keep_every: None,
            unit,
        };
        let output = run.output.clone();
        let made = match slot.run(run, |_| {}, pending(), full_pace()).await? {
            Outcome::Trained(trained) => trained.checkpoint,
            Outcome::Failed(failure) => {
                let version = record.version;
                let why = failure.message;
                return Err(Failure::work(format!("version {version} can't be made again: {why}")));
            }
            Outcome::Evaluated(_) => {
                return Err(Failure::work("the trainer evaluated instead of training"));
            }
        };
        files.keep(made, output);
        replayed.made.push(made.sha256);
        replayed.sha256 = Some(made.sha256);
        replayed.versions += 1;
        progress(replayed.versions);
        if made != record.checkpoint {
            replayed.verdict = Verdict::Different;
            replayed.first_difference = Some(Difference {
                version: record.version,
                epoch: record.epoch(),
                shard: record.start.shard,
                then: record.then.clone(),
                recorded: record.checkpoint.sha256,
                replayed: made.sha256,
            });
            return Ok(replayed);
        }
        base = Base::Checkpoint { version: record.version, blob: made };
    }
    replayed.verdict = Verdict::Identical;
    Ok(replayed)
}

/// Where the blobs lie: the data for good, checkpoints only while the next hop needs them.
struct Files {
    folder: PathBuf,
    known: BTreeMap<Digest, PathBuf>,
    last: Option<Digest>,
}

impl Files {
    async fn fetch(
        client: &ApiClient,
        history: &TrialHistory,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let visited =
            history.hops.iter().flat_map(HopRecord::shards).filter_map(|shard| {
                history.data.train.get(shard_index(shard)).map(|shard| shard.blob)
            });
        let scaling = match history.context.scaling {
            sojourn_protocol::manifest::Scaling::Standard(blob) => Some(blob),
            _ => None,
        };
        let mut known = BTreeMap::new();
        for blob in visited.chain(scaling).chain(history.given) {
            if known.contains_key(&blob.sha256) {
                continue;
            }
            let path = folder.join(blob.sha256.to_string());
            let bytes = client.download(blob, &mut |_| {}).await?;
            std::fs::write(&path, bytes)
                .map_err(|error| Failure::work(format!("`{}`: {error}", path.display())))?;
            known.insert(blob.sha256, path);
        }
        Ok(Self { folder: folder.to_owned(), known, last: None })
    }

    fn output(&self, record: &HopRecord) -> PathBuf {
        self.folder.join(format!("version-{}", record.version))
    }

    fn keep(&mut self, made: BlobRef, path: PathBuf) {
        if let Some(last) = self.last.replace(made.sha256)
            && last != made.sha256
            && let Some(path) = self.known.remove(&last)
        {
            // Only space is lost where it can't be removed.
            let _ = std::fs::remove_file(path);
        }
        self.known.insert(made.sha256, path);
    }
}
