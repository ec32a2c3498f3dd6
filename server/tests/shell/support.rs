//! A shell over a journal in memory, and commands for it.

use sojourn_core::{Answer, Command, Query};
use sojourn_protocol::{
    api::WorkRequest,
    digest::{BlobRef, Digest},
    error::ApiError,
    ids::HostId,
    inventory::{CPU, Demand, Device, Inventory},
    jobfile,
    manifest::{DataManifest, Labels, Scaling, Shard},
    time::Millis,
};
use sojourn_server::{
    journal::{Journal, JournalError, MemoryJournal, OpenJournal},
    shell::{Shell, ShellConfig, ShellHandle, SteadyClock},
};
use std::{collections::BTreeSet, sync::Arc};

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
        shape: vec![2],
        features: vec!["a".to_owned(), "b".to_owned()],
        labels: Labels::Classes(vec!["no".to_owned(), "yes".to_owned()]),
        scaling: Scaling::None,
        train: shards,
        valid,
        test: vec![],
    });
    let submitted =
        handle.call(|to| Command::Submit { to, spec, data, again: false, nonce: None }).await;
    assert!(matches!(submitted.unwrap(), Answer::Submitted(_)));
}
