//! Jobs whose files a browser has sent to the server: they are made here, in the server's process, by the code of `sojourn submit`.

use crate::cli::{
    submit::{
        command::cut,
        graphs::PythonArgs,
        jobfile::{self, Problem},
        sharding::{Chosen, Known},
    },
    terminal::exit::Failure,
};
use sojourn_ingest::{Bounds, Progress, Refusal, Step};
use sojourn_server::{BytesRead, DataBounds, DataStep, JobFiles, PrepareJob, PreparedJob};
use std::sync::Arc;

/// Makes such jobs.
#[derive(Debug)]
pub(crate) struct SentJobs;

/// The server's bounds, as the readers of data ask them.
#[derive(Debug)]
struct OfServer(Arc<dyn DataBounds>);

impl Bounds for OfServer {
    fn admit(&self, step: Step) -> Result<(), Refusal> {
        let step = match step {
            Step::Read(bytes) => DataStep::Read(bytes),
            Step::Unpacked(bytes) => DataStep::Unpacked(bytes),
            Step::Decoded(bytes) => DataStep::Decoded(bytes),
            Step::Written(bytes) => DataStep::Written(bytes),
        };
        self.0.admit(step).map_err(Refusal)
    }

    fn admits_url(&self, url: &str) -> bool {
        self.0.admits_url(url)
    }
}

impl PrepareJob for SentJobs {
    fn prepare(
        &self,
        files: JobFiles<'_>,
        tell: &mut dyn FnMut(BytesRead),
    ) -> Result<PreparedJob, Vec<String>> {
        let mut told = |progress: Progress<'_>| {
            let read = match progress {
                Progress::Reading { bytes, of } => BytesRead { bytes, of },
                Progress::Loading { bytes, of, .. } => BytesRead { bytes, of: of.unwrap_or(bytes) },
                _ => return,
            };
            tell(read);
        };
        prepare(files, &mut told)
    }
}

fn prepare(
    files: JobFiles<'_>,
    tell: &mut dyn FnMut(Progress<'_>),
) -> Result<PreparedJob, Vec<String>> {
    let JobFiles { text, folder, shards, hosts, earlier, bounds } = files;
    let problems = |all: Vec<Problem>| all.into_iter().map(|of| of.message).collect::<Vec<_>>();
    let failed = |failure: Failure| failure.messages().to_vec();
    let mut job = jobfile::of_text(text, "job.toml", folder.to_owned())
        .map_err(|(_, found)| problems(found))?;
    let known = Known::among(&job, hosts, earlier);
    let python = PythonArgs::default();
    let (ingested, chosen) =
        cut(&mut job, &python, &known, (shards, Arc::new(OfServer(bounds))), tell)
            .map_err(failed)?;
    let Chosen { shards: count, visits, .. } = chosen;
    job.spec.data.shards = Some(count);
    job.spec.placement.visits = Some(visits.visits);
    Ok(PreparedJob { spec: job.spec, data: ingested.manifest, files: ingested.files })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        path::Path,
        sync::atomic::{AtomicU64, Ordering},
    };

    const FILE: &str = "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshards = 2\n[[model]]\n\
                        arch = \"mlp\"\nhidden = [4]\n[training]\nepochs = 1\n";

    /// Bounds that end it at a question, or never.
    #[derive(Debug)]
    struct Until(Option<u64>, AtomicU64);

    impl DataBounds for Until {
        fn admit(&self, _: DataStep) -> Result<(), String> {
            let asked = self.1.fetch_add(1, Ordering::Relaxed);
            match self.0 {
                Some(end) if asked >= end => Err("it was ended".to_owned()),
                _ => Ok(()),
            }
        }

        fn admits_url(&self, _: &str) -> bool {
            false
        }
    }

    fn made(
        folder: &Path,
        text: &str,
        end: Option<u64>,
        tell: &mut dyn FnMut(BytesRead),
    ) -> Result<PreparedJob, Vec<String>> {
        let (data, shards) = (folder.join("data"), folder.join("shards"));
        let files = JobFiles {
            text,
            folder: &data,
            shards: &shards,
            hosts: Vec::new(),
            earlier: Vec::new(),
            bounds: Arc::new(Until(end, AtomicU64::new(0))),
        };
        SentJobs.prepare(files, tell)
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir_all(folder.path().join("shards")).unwrap();
        fs::create_dir_all(&data).unwrap();
        let rows = (0..100).map(|row| format!("{row},{}\n", row % 2)).collect::<String>();
        fs::write(data.join("t.csv"), format!("x,y\n{rows}")).unwrap();
        folder
    }

    #[test]
    fn the_job_and_its_shards_are_those_of_submit() {
        let folder = folder();
        let mut last = None;
        let mut tell = |read| last = Some(read);
        let made = made(folder.path(), FILE, None, &mut tell).unwrap();
        assert_eq!((made.data.train.len(), made.spec.data.shards), (2, Some(2)));
        assert!(made.spec.placement.visits.is_some());
        assert!(made.data.blobs().all(|blob| made.files[&blob.sha256].exists()));
        let BytesRead { bytes, of } = last.unwrap();
        assert_eq!(bytes, of);
    }

    #[test]
    fn what_is_wrong_with_the_data_is_said() {
        let folder = folder();
        let mut tell = |_| {};
        let missing = made(folder.path(), &FILE.replace("t.csv", "other.csv"), None, &mut tell);
        assert!(missing.unwrap_err()[0].contains("data.train"));
        let label =
            made(folder.path(), &FILE.replace("\"y\"", "\"z\""), None, &mut tell).unwrap_err();
        assert!(label[0].contains('z'), "{label:?}");
        let both = FILE.replace("epochs", "epocs").replace("hidden", "hiden");
        assert!(made(folder.path(), &both, None, &mut tell).unwrap_err().len() > 1);
    }

    #[test]
    fn reading_ends_when_it_is_told_to_and_leaves_nothing() {
        let folder = folder();
        for end in 0..6 {
            let ended = made(folder.path(), FILE, Some(end), &mut |_| {});
            let why = ended.unwrap_err();
            assert!(why[0].contains("it was ended"), "{end}: {why:?}");
            assert_eq!(fs::read_dir(folder.path().join("shards")).unwrap().count(), 0);
        }
    }
}
