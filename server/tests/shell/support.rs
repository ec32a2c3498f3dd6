//! A shell over a journal in memory, and commands for it.

use sojourn_core::{Answer, Command, JournalPosition, Query, Record};
use sojourn_protocol::{
    api::WorkRequest,
    digest::{BlobRef, Digest},
    error::ApiError,
    ids::{HostId, JobId},
    inventory::{CPU, Demand, Device, Inventory},
    jobfile,
    manifest::{DataManifest, Labels, Scaling, Shard, Targets},
    time::Millis,
};
use sojourn_server::{
    journal::{Journal, JournalError, Mark, Marks, MemoryJournal, OpenJournal, Snapshot},
    shell::{Shell, ShellConfig, ShellHandle, SteadyClock},
};
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
};

pub(crate) type Opened = Result<Box<dyn Journal>, JournalError>;

pub(crate) fn opens(journal: &MemoryJournal) -> Arc<dyn OpenJournal> {
    let journal = journal.clone();
    Arc::new(move || -> Opened { Ok(Box::new(journal.clone())) })
}

pub(crate) fn start(open: Arc<dyn OpenJournal>, config: ShellConfig) -> Shell {
    Shell::start(open, config, Arc::new(SteadyClock::machine())).unwrap().0
}

pub(crate) async fn enrol(handle: &ShellHandle, number: usize) -> Result<HostId, ApiError> {
    let name = format!("host {number}");
    let token_sha256 = Digest::of(name.as_bytes());
    match handle.call(|to| Command::Enrol { to, name, token_sha256 }).await? {
        Answer::Enrolled(host) => Ok(host),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn hosts(handle: &ShellHandle) -> Result<BTreeSet<HostId>, ApiError> {
    match handle.call(|to| Command::Query { to, query: Query::Hosts }).await? {
        Answer::Hosts(hosts) => Ok(hosts.into_iter().map(|host| host.host).collect()),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn ask(to: sojourn_core::ReplyTo, host: HostId) -> Command {
    let inventory = Inventory {
        devices: vec![Device::new(CPU, Digest::of(b"class"), 1e9)],
        client: "test".to_owned(),
        ..Inventory::default()
    };
    let request = WorkRequest {
        demand: vec![Demand { device: CPU.into(), slots: 1, idle: 1, wanted: 1 }],
        holding: vec![],
        reported: vec![],
        wait: Millis::from_secs(20),
        inventory: Some(inventory),
    };
    Command::Ask { to, host, request }
}

/// Submits a job of one trial and one shard.
pub(crate) async fn submit(handle: &ShellHandle) {
    let text = "name = \"small\"\nseed = 1\n[data]\ntrain = \"x.csv\"\nlabel = \"y\"\nshards = 1\n\
        valid = 0.5\n[[model]]\narch = \"mlp\"\nhidden = [3]\n[training]\nepochs = 1\n\
        batch_size = 4\noptimizer = { name = \"sgd\", lr = 0.1 }\n[search]\nmethod = \"grid\"\n\
        metric = \"valid/accuracy\"\ngoal = \"max\"\n[placement]\norder = \"hop\"\n";
    let spec = Box::new(jobfile::parse(text).unwrap());
    let mut shards = Vec::new();
    for name in ["train", "valid"] {
        let blob = BlobRef { sha256: Digest::of(name.as_bytes()), bytes: 5 };
        handle.call(|to| Command::Published { to, blob }).await.unwrap();
        shards.push(Shard { blob, rows: 10 });
    }
    let valid = vec![shards.pop().unwrap()];
    let data = Box::new(DataManifest {
        columns: Vec::new(),
        shape: vec![2],
        features: vec!["a".to_owned(), "b".to_owned()],
        labels: Labels::Classes(vec!["no".to_owned(), "yes".to_owned()]),
        categories: Vec::new(),
        fill: Vec::new(),
        scaling: Scaling::None,
        targets: Targets::Plain,
        train: shards,
        valid,
        test: vec![],
    });
    let submitted =
        handle.call(|to| Command::Submit { to, spec, data, again: false, nonce: None }).await;
    assert!(matches!(submitted.unwrap(), Answer::Submitted(_)));
}

/// A journal whose appends wait until they are let through.
pub(crate) struct Gated {
    pub(crate) journal: MemoryJournal,
    pub(crate) gate: mpsc::Receiver<()>,
    pub(crate) appended: Arc<AtomicBool>,
}

impl Gated {
    /// Opens it, once; later the journal behind it, without the gate.
    pub(crate) fn opens(self) -> Arc<dyn OpenJournal> {
        let journal = self.journal.clone();
        let gated = Mutex::new(Some(self));
        Arc::new(move || -> Opened {
            match gated.lock().unwrap().take() {
                Some(gated) => Ok(Box::new(gated)),
                None => Ok(Box::new(journal.clone())),
            }
        })
    }
}

impl Journal for Gated {
    fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        self.gate.recv().unwrap();
        self.journal.append(records)?;
        self.appended.store(true, Ordering::SeqCst);
        Ok(())
    }
    fn read(&mut self, after: JournalPosition, limit: usize) -> Result<Vec<Record>, JournalError> {
        self.journal.read(after, limit)
    }
    fn marks(&self) -> Marks {
        self.journal.marks()
    }
    fn begin_after(&mut self, anchor: Mark) -> Result<(), JournalError> {
        self.journal.begin_after(anchor)
    }
    fn save_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), JournalError> {
        self.journal.save_snapshot(snapshot)
    }
    fn load_snapshot(&mut self) -> Result<Option<Snapshot>, JournalError> {
        self.journal.load_snapshot()
    }
    fn load_snapshot_below(
        &mut self,
        below: JournalPosition,
    ) -> Result<Option<Snapshot>, JournalError> {
        self.journal.load_snapshot_below(below)
    }
    fn trim(&mut self, below: JournalPosition) -> Result<(), JournalError> {
        self.journal.trim(below)
    }
    fn events(
        &mut self,
        job: JobId,
        after: JournalPosition,
        limit: usize,
    ) -> Result<Vec<Record>, JournalError> {
        self.journal.events(job, after, limit)
    }
}
