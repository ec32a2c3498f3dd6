//! A trainer that trains nothing, quickly or as long as a test wants, and looks closely at its input.

use sojourn_client::{RunnerDevice, RunnerError, UnitRunner};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    engine::Engine,
    quantity::{Bytes, Micros},
    report::{Evaluated, Failure, FailureKind, Outcome, Sums, Trained},
    trainer::{
        Hello, InstructionSet, Pace, Progress, RunUnit, ShardArrived, TRAINER_PROTOCOL,
        TrainerUpdate, UsageSample,
    },
    unit::Unit,
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
};
use tokio::sync::{Semaphore, mpsc::UnboundedReceiver, watch};

/// The state that all slots of a test share.
pub struct Trainer {
    /// Units may end while there are permits.
    pub gate: Semaphore,
    pub greeted: watch::Sender<usize>,
    pub started: watch::Sender<usize>,
    pub stopped: watch::Sender<usize>,
    pub at_once: AtomicUsize,
    pub most_at_once: AtomicUsize,
    /// Names of the numeric classes of the slots, in the order of their hellos; `fake` where none is left.
    pub classes: Mutex<VecDeque<&'static str>>,
    /// The instruction sets that slots can be pinned to; none where nothing is said.
    pub instructions: Mutex<Vec<InstructionSet>>,
    /// The instruction set that each unit was run in.
    pub ran_in: Mutex<Vec<InstructionSet>>,
    /// The devices that slots are on; `cpu` where nothing is said.
    pub devices: Mutex<BTreeMap<u32, RunnerDevice>>,
    /// Units that were run on each device.
    pub ran: Mutex<BTreeMap<String, usize>>,
    /// Hops keep a part.
    pub keeps: AtomicBool,
    /// Batches that a unit has done when it keeps a part, or is told to stop.
    pub reached: AtomicU32,
    /// Units go on when they are told to stop.
    pub deaf: AtomicBool,
    /// The outcome that comes instead of training, once.
    pub instead: Mutex<Option<Instead>>,
}

/// The memory that units take, in bytes.
pub const PEAK: u64 = 12_345;
/// The sample of each unit.
pub const SAMPLE: UsageSample = UsageSample {
    span: Micros::from_secs(2),
    busy: Micros::from_secs(3),
    loss: Some(0.25),
    memory: Bytes(312),
    read: Bytes(10),
    written: Bytes(0),
};
/// As a class: the trainer is killed as it starts.
pub const KILLED: &str = "killed";

pub type Instead = Box<dyn FnOnce(&RunUnit) -> Result<Outcome, RunnerError> + Send>;

impl Trainer {
    /// Units end at once.
    pub fn free() -> Arc<Self> {
        Self::gated(Semaphore::MAX_PERMITS)
    }

    /// Units end when the test adds permits.
    pub fn gated(permits: usize) -> Arc<Self> {
        Arc::new(Self {
            gate: Semaphore::new(permits),
            greeted: watch::Sender::new(0),
            started: watch::Sender::new(0),
            stopped: watch::Sender::new(0),
            at_once: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
            classes: Mutex::default(),
            instructions: Mutex::default(),
            ran_in: Mutex::default(),
            devices: Mutex::default(),
            ran: Mutex::default(),
            keeps: AtomicBool::new(false),
            reached: AtomicU32::new(1),
            deaf: AtomicBool::new(false),
            instead: Mutex::default(),
        })
    }

    pub async fn until_started(&self, count: usize) {
        self.started.subscribe().wait_for(|started| *started >= count).await.unwrap();
    }

    pub async fn until_stopped(&self, count: usize) {
        self.stopped.subscribe().wait_for(|stopped| *stopped >= count).await.unwrap();
    }

    pub fn runner(self: &Arc<Self>, slot: u32) -> Runner {
        let device = self.devices.lock().unwrap().get(&slot).cloned();
        let device = device.unwrap_or(RunnerDevice { name: "cpu".into(), memory: None });
        Runner(Arc::clone(self), None, device, InstructionSet::COMMON)
    }
}

/// A slot of the fake, its class once it has said hello, what it is on, and what it is pinned to.
pub struct Runner(Arc<Trainer>, Option<&'static str>, RunnerDevice, InstructionSet);

/// The checkpoint that the fake makes of a unit: so many bytes, each unit's own.
pub fn checkpoint(seed: u64, bytes: u64) -> Vec<u8> {
    let text = format!("checkpoint of {seed};");
    text.bytes().cycle().take(usize::try_from(bytes).unwrap()).collect()
}

/// The checkpoint's size, which a test puts in the lease's shape.
pub fn size_of(unit: &Unit) -> u64 {
    unit.context().shape.iter().map(|side| u64::from(*side)).product()
}

struct Running<'a>(&'a Trainer, bool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.at_once.fetch_sub(1, Ordering::SeqCst);
        if !self.1 {
            self.0.stopped.send_modify(|stopped| *stopped += 1);
        }
    }
}

impl UnitRunner for Runner {
    fn device(&self) -> RunnerDevice {
        self.2.clone()
    }

    fn instructions(&self) -> Vec<InstructionSet> {
        self.0.instructions.lock().unwrap().clone()
    }

    fn set_instructions(&mut self, instructions: InstructionSet) {
        self.3 = instructions;
    }

    async fn hello(&mut self) -> Result<Hello, RunnerError> {
        let class = *self.1.get_or_insert_with(|| {
            self.0.greeted.send_modify(|greeted| *greeted += 1);
            self.0.classes.lock().unwrap().pop_front().unwrap_or("fake")
        });
        if class == KILLED {
            self.1 = None;
            return Err(RunnerError::new("killed before it said hello"));
        }
        Ok(Hello {
            protocol: TRAINER_PROTOCOL,
            engine: Engine {
                name: "none".into(),
                framework: "none".into(),
                models: vec!["mlp".into()],
            },
            threads: 1,
            numeric_class: match self.3 {
                InstructionSet::COMMON => Digest::of(class.as_bytes()),
                set => Digest::of(format!("{class} {set}").as_bytes()),
            },
            flops: if self.3 == InstructionSet::COMMON { 1e9 } else { 1.25e9 },
            device: "cpu".into(),
        })
    }

    async fn run(
        &mut self,
        unit: RunUnit,
        mut on_update: impl FnMut(TrainerUpdate) + Send,
        stop: impl Future<Output = ()> + Send,
        pace: watch::Receiver<Pace>,
        mut files: UnboundedReceiver<ShardArrived>,
    ) -> Result<Outcome, RunnerError> {
        let trainer = &*self.0;
        trainer.ran_in.lock().unwrap().push(self.3);
        let now = trainer.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        trainer.most_at_once.fetch_max(now, Ordering::SeqCst);
        *trainer.ran.lock().unwrap().entry(self.2.name.clone()).or_default() += 1;
        let mut running = Running(trainer, false);
        for blob in unit.unit.blobs() {
            let later = unit.pending.contains(&blob.sha256);
            assert_ne!(later, unit.files.contains_key(&blob.sha256));
            if !later {
                look_at(blob.sha256, &unit.files[&blob.sha256]);
            }
        }
        // Half-written when a unit is stopped, as a real one's may be.
        if matches!(unit.unit, Unit::Train(_)) {
            fs::write(&unit.output, b"half").unwrap();
        }
        on_update(TrainerUpdate::Progress(Progress { done: 1, of: 2 }));
        on_update(TrainerUpdate::Usage(SAMPLE));
        let reached = trainer.reached.load(Ordering::SeqCst);
        if trainer.keeps.load(Ordering::SeqCst) {
            let Unit::Train(hop) = &unit.unit else { panic!("a part of no hop") };
            let output = unit.part(hop.position_after(reached));
            let part = RunUnit { output, ..unit.clone() };
            let Outcome::Trained(part) = trained_to(&part, reached) else {
                panic!("a part of no hop")
            };
            on_update(TrainerUpdate::PartSaved(part));
        }
        trainer.started.send_modify(|started| *started += 1);
        // It stands still while its pace is 0.
        let goes = async {
            let mut pace = pace;
            let permit = trainer.gate.acquire().await;
            pace.wait_for(|pace| *pace > Pace::PAUSED).await.unwrap();
            let Unit::Train(hop) = &unit.unit else { return permit };
            let mut here: BTreeSet<Digest> = unit.files.keys().copied().collect();
            for leg in &hop.then {
                let blob = leg.shard.blob.sha256;
                if !here.contains(&blob) {
                    // Perhaps it has been said already.
                    on_update(TrainerUpdate::ShardNeeded(blob));
                }
                while !here.contains(&blob) {
                    let file = files.recv().await.unwrap();
                    look_at(file.blob, &file.path);
                    here.insert(file.blob);
                }
            }
            permit
        };
        let whole = tokio::select! {
            permit = goes => {
                permit.unwrap().forget();
                true
            }
            () = stop, if !trainer.deaf.load(Ordering::SeqCst) => false,
        };
        running.1 = true;
        on_update(TrainerUpdate::PeakMemory(PEAK));
        if !whole {
            return Ok(trained_to(&unit, reached));
        }
        if let Some(instead) = trainer.instead.lock().unwrap().take() {
            return instead(&unit);
        }
        Ok(trained(&unit))
    }
}

fn look_at(blob: Digest, path: &Path) {
    assert_eq!(Digest::of(&fs::read(path).unwrap()), blob, "a trainer was given other bytes");
}

/// The outcome that the fake says of a unit, with the file that it promises.
pub fn trained(run: &RunUnit) -> Outcome {
    trained_to(run, u32::MAX)
}

/// The same, of a unit that ended after so many batches.
pub fn trained_to(run: &RunUnit, batches: u32) -> Outcome {
    match &run.unit {
        Unit::Train(hop) => {
            let bytes = checkpoint(hop.seed, size_of(&run.unit));
            if let Err(error) = fs::write(&run.output, &bytes) {
                let message = format!("can't write `{}`: {error}", run.output.display());
                return Outcome::Failed(Failure { kind: FailureKind::Trainer, message });
            }
            let blob = BlobRef { sha256: Digest::of(&bytes), bytes: bytes.len() as u64 };
            Outcome::Trained(Trained {
                base: hop.base.version(),
                checkpoint: blob,
                end: hop.position_after(batches),
                sums: Sums::default(),
                train_micros: 1,
            })
        }
        Unit::Evaluate(evaluation) => Outcome::Evaluated(Evaluated {
            version: evaluation.version,
            shards: vec![Sums::default(); evaluation.shards.len()],
            by_class: None,
            arrays: [].into(),
            train_micros: 1,
        }),
    }
}
