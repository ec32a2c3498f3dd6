//! The cost of adaptive verification: a quiet fleet of three hosts of the operator's and one of a stranger's, in virtual time.
//!
//! Nothing goes wrong, and nobody lies. Hosts are equally fast and have one slot each; a row takes three times as long to train on as to
//! evaluate. Counted is the time for which slots work.

use super::{
    scenario::{data, spec},
    training,
};
use sojourn_core::{Answer, Command, Core, CoreConfig, Effect, Envelope, ReplyTo};
use sojourn_protocol::{
    api::WorkRequest,
    digest::{BlobRef, Digest},
    error::error_chain,
    ids::{HostId, JobId, TokenId},
    inventory::{CPU, Demand, Device, Inventory, Links},
    manifest::{DataManifest, Shard},
    names::TokenLabel,
    quotas::TokenQuotas,
    report::{Outcome, Report, Trained},
    seeds,
    spec::{JobSpec, OrderChoice, PlacementSpec, VerifyChoice},
    time::{Millis, UnixMillis},
    tokens::{TokenGrant, TokenRequest},
    unit::{Lease, Unit},
};
use sojourn_workgen::PolicyName;
use std::collections::BTreeMap;

/// Hosts of the operator.
const OPERATORS: u64 = 3;
/// Milliseconds for which a row is trained on.
const TRAIN_ROW: u64 = 3;
/// The same of an evaluation.
const EVALUATE_ROW: u64 = 1;
/// A host that is given nothing asks again after this.
const RETRY: u64 = 20;
/// Trials, epochs and shards of each job.
const TRIALS: u32 = 16;
/// See [`TRIALS`].
const EPOCHS: u32 = 4;
/// See [`TRIALS`].
const SHARDS: u32 = 8;
/// Rows of a shard, and of the validation data: a fifth of all.
const ROWS: u32 = 64;
/// See [`ROWS`].
const VALID_ROWS: u32 = 128;
/// Steps in which a job ends.
const MAX_STEPS: u32 = 1_000_000;

/// The fleet, with a server.
#[derive(Debug)]
pub struct VerifiedFleet {
    core: Core,
    now: u64,
    verify: VerifyChoice,
    jobs: u64,
    /// The lease of each host, by the time in milliseconds when it is done with that; `None` where it was granted none.
    hosts: BTreeMap<(u64, HostId), Option<Lease>>,
    /// Milliseconds for which slots have worked.
    busy: u64,
}

impl VerifiedFleet {
    /// A fleet that nobody has worked with yet, whose jobs say this of verification.
    ///
    /// # Errors
    /// What the core refuses.
    pub fn new(verify: VerifyChoice) -> Result<Self, String> {
        let config = CoreConfig {
            most_hops: Some(1),
            most_copied: 0,
            policy: PolicyName::Ltrp,
            ..CoreConfig::with_lease_term(Millis::from_secs(24 * 3600))
        };
        let hosts = (1..=OPERATORS + 1).map(|host| ((0, HostId(host)), None)).collect();
        let mut fleet =
            Self { core: Core::new(config), now: 1_000_000, verify, jobs: 0, hosts, busy: 0 };
        fleet.apply(Command::Started)?;
        let to = ReplyTo(1);
        for n in 1..=OPERATORS {
            let token_sha256 = Digest::of(&n.to_le_bytes());
            fleet.apply(Command::Enrol { to, name: format!("own-{n}"), token_sha256 })?;
        }
        let owner = "stranger".parse().map_err(|error| format!("{error}"))?;
        let grant = TokenGrant::Enrol { owner, hosts: 1, machine: None, trusted: false };
        let request = TokenRequest {
            label: TokenLabel::default(),
            grant,
            lifetime: None,
            quotas: TokenQuotas::default(),
        };
        fleet.apply(Command::CreateToken { to, request, sha256: Digest::of(b"t"), by: None })?;
        let (name, token_sha256, with) = ("theirs".into(), Digest::of(b"theirs"), TokenId(1));
        fleet.apply(Command::EnrolWithToken { to, name, token_sha256, with })?;
        Ok(fleet)
    }

    /// Confirmed hops of the stranger in a row.
    #[must_use]
    pub fn confirmed_in_row(&self) -> u32 {
        self.core.state().records.values().map(|record| record.in_row).max().unwrap_or(0)
    }

    /// Runs another job to its end. The milliseconds for which slots worked at it.
    ///
    /// # Errors
    /// What the core refuses, or that the job doesn't end.
    pub fn run_job(&mut self) -> Result<u64, String> {
        let before = self.busy;
        self.jobs += 1;
        let job = JobId(self.jobs);
        self.submit()?;
        for _ in 0..MAX_STEPS {
            if self.core.state().jobs.get(&job).is_some_and(|job| job.end.is_some()) {
                return Ok(self.busy - before);
            }
            self.step()?;
        }
        Err(format!("job {job} doesn't end"))
    }

    fn submit(&mut self) -> Result<(), String> {
        let to = ReplyTo(1);
        let data = self.data();
        for blob in data.blobs() {
            self.apply(Command::Published { to, blob })?;
        }
        let placement = PlacementSpec {
            verify: Some(self.verify),
            ..PlacementSpec::new(OrderChoice::Hop, true, 1)
        };
        let spec = JobSpec { placement, ..spec(self.jobs, TRIALS, EPOCHS, SHARDS) };
        let (spec, data) = (Box::new(spec), Box::new(data));
        self.apply(Command::Submit { to, spec, data, again: false, nonce: None })?;
        Ok(())
    }

    fn data(&self) -> DataManifest {
        let mut chance = seeds::stream("verified-hours", &[self.jobs]);
        let rows: Vec<u32> = (0..SHARDS).map(|_| ROWS).collect();
        let made = data(&mut chance, &rows, 0);
        let sha256 = Digest::of(&self.jobs.to_le_bytes());
        let valid = Shard { blob: BlobRef { sha256, bytes: 1000 }, rows: VALID_ROWS };
        DataManifest { valid: vec![valid], ..made }
    }

    /// The next host is done with what it does, and asks for more.
    fn step(&mut self) -> Result<(), String> {
        let Some(((at, host), lease)) = self.hosts.pop_first() else {
            return Err("there is no host".into());
        };
        self.now = self.now.max(at);
        if let Some(lease) = lease {
            let report = Report { lease: lease.id, outcome: outcome_of(&lease) };
            let uploaded = match &report.outcome {
                Outcome::Trained(trained) => Some(trained.checkpoint),
                Outcome::Evaluated(_) | Outcome::Failed(_) => None,
            };
            self.apply(Command::Report { to: ReplyTo(1), host, report, uploaded })?;
            self.assimilate()?;
        }
        let request = WorkRequest {
            demand: vec![Demand { device: CPU.into(), slots: 1, idle: 1, wanted: 1 }],
            holding: Vec::new(),
            reported: Vec::new(),
            wait: Millis(0),
            inventory: Some(Inventory {
                cached: Vec::new(),
                devices: vec![Device::new(CPU, Digest::of(b"class"), 1e9)],
                client: "sim".into(),
                links: Links::default(),
                cache: None,
                disk_is_low: false,
            }),
        };
        let answers = self.apply(Command::Ask { to: ReplyTo(1), host, request })?;
        let granted = answers.into_iter().find_map(|answer| match answer {
            Answer::Work(work) => work.leases.into_iter().next(),
            _ => None,
        });
        let takes = granted.as_ref().map(time_of);
        self.busy += takes.unwrap_or(0);
        self.hosts.insert((self.now + takes.unwrap_or(RETRY), host), granted);
        Ok(())
    }

    /// Takes in all results that wait.
    fn assimilate(&mut self) -> Result<(), String> {
        loop {
            let to = ReplyTo(1);
            let answers = self.apply(Command::TakeAssimilation { to, losses: false })?;
            let unit = answers.into_iter().find_map(|answer| match answer {
                Answer::Assimilation(unit) => unit,
                _ => None,
            });
            let Some(unit) = unit else { return Ok(()) };
            let (lease, version, checkpoint) = (unit.lease, unit.version, unit.trained.checkpoint);
            let merged = None;
            self.apply(Command::OfferAssimilated { to, lease, version, checkpoint, merged })?;
        }
    }

    /// Has the core take a command in. Its answers.
    fn apply(&mut self, command: Command) -> Result<Vec<Answer>, String> {
        let (at, seed) = (UnixMillis(self.now), self.core.position().0);
        let effects = self.core.apply(Envelope { at, seed, command });
        let effects = effects.map_err(|fault| error_chain(&fault))?;
        let answers = effects.into_iter().filter_map(|effect| match effect {
            Effect::Reply { answer, .. } => {
                Some(answer.map(|answer| *answer).map_err(|error| error.to_string()))
            }
            _ => None,
        });
        answers.collect()
    }
}

/// Milliseconds that a unit takes.
fn time_of(lease: &Lease) -> u64 {
    match &lease.unit {
        Unit::Train(hop) => {
            let end = hop.position_after(hop.to_train());
            hop.rows_to(end).unwrap_or(0) * TRAIN_ROW
        }
        Unit::Evaluate(evaluation) => {
            let rows = evaluation.shards.iter().map(|shard| u64::from(shard.rows));
            rows.sum::<u64>() * EVALUATE_ROW
        }
    }
}

/// The outcome of an honest host.
fn outcome_of(lease: &Lease) -> Outcome {
    match &lease.unit {
        Unit::Train(hop) => {
            let end = hop.position_after(hop.to_train());
            let rows = u32::try_from(hop.rows_to(end).unwrap_or(0)).unwrap_or(0);
            Outcome::Trained(Trained {
                base: hop.base.version(),
                checkpoint: training::train(hop, end, lease.upload_bytes),
                end,
                sums: training::sums(&Digest::of(b"sums"), rows),
                train_micros: time_of(lease) * 1000,
            })
        }
        Unit::Evaluate(evaluation) => Outcome::Evaluated(training::evaluated(evaluation)),
    }
}
