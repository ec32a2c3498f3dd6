//! The journal of a server after a while, as the core itself decides it from the reports of hosts and
//! assimilators would tell it, and written as the server writes it.

use sojourn_core::{
    Answer, Command, Core, CoreConfig, Effect, Envelope, JournalPosition, Record, ReplyTo,
};
use sojourn_protocol::{
    api::WorkRequest,
    digest::{BlobRef, Digest},
    ids::HostId,
    inventory::{CPU, Demand, Device, Inventory},
    jobfile,
    manifest::{DataManifest, Labels, Scaling, Shard, Targets},
    report::{Evaluated, Outcome, Report, Sums, Trained},
    time::{Millis, UnixMillis},
    unit::{Lease, Unit},
};
use sojourn_server::{
    DataFolder,
    journal::{Journal as _, Snapshot, SqliteJournal},
    shell::ShellConfig,
};
use sojourn_workgen::PolicyName;
use std::{
    ops::RangeInclusive,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Hosts, each with a token that [`token`] says.
pub(crate) const HOSTS: u64 = 64;
/// Rows of a shard.
const ROWS: u32 = 64;
/// Time that passes from one command to the next: a hundred events a second or so.
const STEP: u64 = 20;
/// How long ago it all began: more than it takes.
const AGO: Duration = Duration::from_secs(24 * 3600);
/// Records written at once.
const GROUP: usize = 1_000;

/// How large a job is.
pub(crate) struct Shape {
    pub(crate) trials: u32,
    pub(crate) epochs: u32,
    pub(crate) shards: u32,
}

/// A journal that is being written.
pub(crate) struct Past {
    core: Core,
    journal: SqliteJournal,
    at: u64,
    records: Vec<Record>,
    _folder: DataFolder,
}

/// The token of a host.
pub(crate) fn token(host: u64) -> String {
    format!("token-of-host-{host}")
}

impl Past {
    /// Enrols the hosts and submits a job.
    pub(crate) fn begin(folder: &Path, shape: &Shape) -> Self {
        let folder = DataFolder::take(folder).unwrap();
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() - AGO;
        let mut past = Self {
            // One that needs no plans: nobody makes them here, and hosts would wait for them.
            core: Core::new(CoreConfig { policy: PolicyName::Ltrp, ..CoreConfig::default() }),
            journal: SqliteJournal::open(&folder.journal()).unwrap(),
            at: u64::try_from(began.as_millis()).unwrap(),
            records: Vec::new(),
            _folder: folder,
        };
        past.enrol(1..=HOSTS);
        let data = manifest(shape);
        for blob in data.blobs() {
            past.apply(|to| Command::Published { to, blob });
        }
        let Shape { trials, epochs, .. } = shape;
        let text = format!(
            "name = \"bench\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\n\
             hidden = [4]\n[training]\nepochs = {epochs}\n\
             optimizer = {{ name = \"adam\", lr = {{ log_uniform = [1e-4, 1.0] }} }}\n\
             [search]\nmethod = \"random\"\ntrials = {trials}\n"
        );
        let (spec, data) = (Box::new(jobfile::parse(&text).unwrap()), Box::new(data));
        past.apply(|to| Command::Submit { to, spec, data, again: false, nonce: None });
        past
    }

    /// Enrols more hosts.
    pub(crate) fn enrol(&mut self, hosts: RangeInclusive<u64>) {
        for host in hosts {
            let token_sha256 = Digest::of(token(host).as_bytes());
            self.apply(|to| Command::Enrol { to, name: format!("host-{host}"), token_sha256 });
        }
    }

    /// Trains every trial to its end, and evaluates none.
    pub(crate) fn train_all(&mut self) {
        for host in (1..=HOSTS).map(HostId).cycle() {
            // So many slots that no backlog of evaluations comes before hops.
            match self.lease(host, 1024) {
                Some(lease) if matches!(lease.unit, Unit::Train(_)) => self.finish(host, &lease),
                _ => return,
            }
        }
    }

    /// Trains and evaluates until so many trials have ended.
    pub(crate) fn train_trials(&mut self, trials: usize) {
        let ended = |core: &Core| {
            let jobs = core.state().jobs.values();
            jobs.flat_map(|job| &job.trials).filter(|trial| !trial.is_running()).count()
        };
        for host in (1..=HOSTS).map(HostId).cycle() {
            if ended(&self.core) >= trials {
                return;
            }
            let lease = self.lease(host, 1).unwrap();
            self.finish(host, &lease);
        }
    }

    /// Does what there is to do until there are so many events, with the snapshots that a server makes:
    /// the last one as far back as possible.
    pub(crate) fn train_until(&mut self, events: u64) {
        let every = ShellConfig::default().snapshot_every;
        let mut snapshot_at = (events + 1).saturating_sub(2 * every);
        for host in (1..=HOSTS).map(HostId).cycle() {
            let lease = self.lease(host, 1).unwrap();
            self.finish(host, &lease);
            let position = self.core.position();
            if position.0 >= snapshot_at {
                self.write();
                let bytes = self.core.snapshot().unwrap();
                self.journal.save_snapshot(&Snapshot { position, bytes }).unwrap();
                snapshot_at += every;
            }
            if position.0 >= events {
                return;
            }
        }
    }

    /// Writes what is left.
    pub(crate) fn end(mut self) {
        self.write();
    }

    fn lease(&mut self, host: HostId, slots: u32) -> Option<Lease> {
        let inventory = Inventory {
            devices: vec![Device::new(CPU, Digest::of(b"class"), 1e9)],
            client: "bench".to_owned(),
            ..Inventory::default()
        };
        let request = WorkRequest {
            demand: vec![Demand { device: CPU.into(), slots, idle: 1, wanted: 1 }],
            holding: Vec::new(),
            reported: Vec::new(),
            wait: Millis(0),
            inventory: Some(inventory),
        };
        match self.apply(|to| Command::Ask { to, host, request }) {
            Some(Answer::Work(mut work)) => work.leases.pop(),
            _ => None,
        }
    }

    /// Reports a unit; an assimilator takes the result in.
    fn finish(&mut self, host: HostId, lease: &Lease) {
        let (outcome, uploaded) = outcome(lease);
        let report = Report { lease: lease.id, outcome };
        self.apply(|to| Command::Report { to, host, report, uploaded });
        if uploaded.is_none() {
            return;
        }
        let Some(Answer::Assimilation(Some(unit))) =
            self.apply(|to| Command::TakeAssimilation { to, losses: true })
        else {
            return;
        };
        let (lease, version, checkpoint) = (unit.lease, unit.version, unit.trained.checkpoint);
        self.apply(|to| Command::OfferAssimilated { to, lease, version, checkpoint, merged: None });
    }

    fn apply(&mut self, command: impl FnOnce(ReplyTo) -> Command) -> Option<Answer> {
        let mut answered = None;
        for effect in self.step(command(ReplyTo(1))) {
            match effect {
                Effect::Persist(record) => self.records.push(record),
                Effect::Reply { answer, .. } => answered = Some(*answer.unwrap()),
                Effect::Delete(blob) => {
                    for effect in self.step(Command::Deleted { blob }) {
                        if let Effect::Persist(record) = effect {
                            self.records.push(record);
                        }
                    }
                }
                _ => {}
            }
        }
        // Where a deletion came among them, their order is that of their positions.
        if self.records.len() >= GROUP {
            self.write();
        }
        answered
    }

    fn step(&mut self, command: Command) -> Vec<Effect> {
        self.at += STEP;
        let input = Envelope { at: UnixMillis(self.at), seed: self.at, command };
        self.core.apply(input).unwrap()
    }

    fn write(&mut self) {
        self.records.sort_by_key(|record| record.position);
        self.journal.append(&self.records).unwrap();
        self.records.clear();
        assert_eq!(self.journal.tail(), self.core.position().max(JournalPosition(0)));
    }
}

/// A job's data: small shards of no real rows, which nobody reads.
fn manifest(shape: &Shape) -> DataManifest {
    let shard = |n: u32| Shard {
        blob: BlobRef { sha256: Digest::of(&n.to_le_bytes()), bytes: 100 },
        rows: ROWS,
    };
    DataManifest {
        columns: Vec::new(),
        shape: vec![4],
        features: ["a", "b", "c", "d"].map(String::from).to_vec(),
        labels: Labels::Classes(vec!["0".to_owned(), "1".to_owned()]),
        categories: Vec::new(),
        fill: Vec::new(),
        scaling: Scaling::None,
        targets: Targets::Plain,
        train: (0..shape.shards).map(shard).collect(),
        valid: vec![shard(shape.shards)],
        test: Vec::new(),
    }
}

/// A plausible result of a lease's unit, and its upload.
pub(crate) fn outcome(lease: &Lease) -> (Outcome, Option<BlobRef>) {
    match &lease.unit {
        Unit::Train(hop) => {
            let sha256 = Digest::of(&lease.id.0.to_le_bytes());
            let checkpoint = BlobRef { sha256, bytes: lease.upload_bytes };
            let end = hop.position_after(hop.to_train());
            let rows = hop.rows_to(end).unwrap();
            let trained = Trained {
                base: hop.base.version(),
                checkpoint,
                end,
                sums: sums(rows),
                train_micros: 1_000,
            };
            (Outcome::Trained(trained), Some(checkpoint))
        }
        Unit::Evaluate(evaluation) => {
            let evaluated = Evaluated {
                version: evaluation.version,
                shards: evaluation.shards.iter().map(|shard| sums(shard.rows.into())).collect(),
                by_class: None,
                arrays: [].into(),
                train_micros: 1_000,
            };
            (Outcome::Evaluated(evaluated), None)
        }
    }
}

fn sums(rows: u64) -> Sums {
    Sums { rows, loss: 40.0, correct: Some(30), ..Sums::default() }
}
