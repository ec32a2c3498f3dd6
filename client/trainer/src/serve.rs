//! The process: requests from stdin, answers to stdout, one unit at a time.
//!
//! A thread reads stdin so that its end ends the process at once, in the middle of a unit too: a
//! trainer must not outlive the daemon that started it. It also hears at once that a unit is to stop, or to
//! go at another pace, or that a file has come which it may wait for.

use crate::{
    calibrate::calibrate,
    data::Shards,
    device::finish,
    engine::{engine, refusal},
    error::{TrainError, kind_of},
    listener::Listener,
    memory::PeakMemory,
    options::Options,
    pace::{Meter, Pacer},
    predict::{LastModel, predict},
    unit,
    unit_control::{UnitControl, UnitMessages},
    usage::UsageMeter,
};
use rustix::process::{Signal, getpid, kill_process};
use sojourn_protocol::{
    digest::Digest,
    quantity::SaturatingFrom as _,
    report::Failure,
    trainer::{Hello, RunUnit, TRAINER_PROTOCOL, TrainerLine, TrainerRequest, TrainerUpdate},
};
use std::{
    io::{self, BufRead, Write},
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// The shortest time between two progress lines.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// Runs until stdin ends, or stdout can't be written any more.
#[must_use]
pub fn serve(options: &Options) -> ExitCode {
    let life = Arc::new(Life::default());
    life.busy.store(true, Ordering::SeqCst);
    let control = Arc::new(UnitControl::default());
    let requests = read_requests(Arc::clone(&life), Arc::clone(&control));
    let threads = i32::saturating_from(options.threads);
    tch::set_num_interop_threads(1);
    tch::set_num_threads(threads);
    let opened = catch(|| {
        let device = options.device.open(options.determinism)?;
        Ok((device, calibrate(device)?))
    });
    let (device, hello) = match opened {
        Ok((device, calibration)) => {
            let hello = Hello {
                protocol: TRAINER_PROTOCOL,
                engine: engine(),
                threads: options.threads,
                numeric_class: calibration.numeric_class,
                flops: calibration.flops,
                device: options.device.to_string(),
            };
            (device, hello)
        }
        Err(failure) => {
            eprintln!("the calibration training failed: {}", failure.message);
            return ExitCode::FAILURE;
        }
    };
    match answer_all(&requests, hello, Shards::on(device), &life, &control) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stdout can't be written: {error}");
            ExitCode::FAILURE
        }
    }
}

fn answer_all(
    requests: &mpsc::Receiver<Incoming>,
    hello: Hello,
    mut shards: Shards,
    life: &Life,
    control: &UnitControl,
) -> io::Result<()> {
    // Idle before a line is written, not after: who has read the answer may end stdin at once, and
    // then finds the process ended in order.
    life.busy.store(false, Ordering::SeqCst);
    put(&TrainerLine::Hello(hello))?;
    let mut last = LastModel::default();
    while let Ok(Incoming { request, messages }) = requests.recv() {
        life.busy.store(true, Ordering::SeqCst);
        if life.ended.load(Ordering::SeqCst) {
            break;
        }
        let answer = match request {
            Ok(TrainerRequest::Run(request)) => {
                let gpu = shards.device().is_cuda();
                let meter = if gpu { Meter::Wall } else { Meter::Processor };
                answer(&request, &mut shards, Pacer::new(control, messages, meter))
            }
            Ok(TrainerRequest::Predict(request)) => {
                catch(|| predict(&request, &mut last, shards.device()))
                    .map_or_else(TrainerLine::Failed, TrainerLine::Predicted)
            }
            // The reader keeps these to itself.
            Ok(
                TrainerRequest::Stop | TrainerRequest::Pace(_) | TrainerRequest::ShardArrived(_),
            ) => {
                continue;
            }
            Err(refusal) => TrainerLine::Failed(refusal),
        };
        life.busy.store(false, Ordering::SeqCst);
        put(&answer)?;
    }
    Ok(())
}

fn answer(request: &RunUnit, shards: &mut Shards, pacer: Pacer<'_>) -> TrainerLine {
    let device = shards.device();
    let (sent_at, usage) = (Instant::now(), UsageMeter::new());
    let mut listener = SlotListener { device, pacer, sent_at, unsent: None, usage };
    let peak = PeakMemory::of_unit(device);
    let answer =
        catch(|| unit::run(request, shards, &mut listener)).unwrap_or_else(TrainerLine::Failed);
    if let Some(bytes) = peak.and_then(PeakMemory::bytes) {
        send(&TrainerUpdate::PeakMemory(bytes));
    }
    answer
}

/// Sends the slot updates of a running unit, and applies the slot's messages to it.
struct SlotListener<'a> {
    device: tch::Device,
    pacer: Pacer<'a>,
    /// When progress was last sent.
    sent_at: Instant,
    /// The latest progress, if it wasn't sent.
    unsent: Option<TrainerUpdate>,
    usage: UsageMeter,
}

impl Listener for SlotListener<'_> {
    fn update(&mut self, update: TrainerUpdate) -> ControlFlow<(), Duration> {
        let TrainerUpdate::Progress(_) = update else {
            send(&update);
            return ControlFlow::Continue(Duration::ZERO);
        };
        self.unsent = if self.sent_at.elapsed() >= PROGRESS_EVERY {
            self.sent_at = Instant::now();
            send(&update);
            None
        } else {
            Some(update.clone())
        };
        if !self.pacer.is_full() {
            // A GPU computes asynchronously: its time is known once it has finished.
            finish(self.device);
        }
        // The server must know the progress of a paused unit.
        let paused = self.pacer.pause(|| send(&update));
        self.usage.paused(paused);
        if self.pacer.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(paused) }
    }

    fn wants_usage(&self) -> bool {
        self.usage.is_due()
    }

    fn say_usage(&mut self, loss: Option<f64>) {
        send(&TrainerUpdate::Usage(self.usage.sample(loss)));
    }

    fn wait_for(&mut self, blob: Digest) -> Option<PathBuf> {
        self.pacer.file(blob, || {
            // The server must know the progress of a waiting unit.
            self.unsent.take().iter().for_each(send);
            send(&TrainerUpdate::ShardNeeded(blob));
        })
    }
}

/// Sends an update to the slot. If the slot has gone, sending the unit's outcome fails later.
fn send(update: &TrainerUpdate) {
    put(&TrainerLine::Update(update.clone())).ok();
}

/// A panic is a failed unit, not the end of the process.
fn catch<T>(work: impl FnOnce() -> Result<T, TrainError>) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|error| error.to_failure()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("without a message");
            // Most calls of libtorch panic where it refuses.
            let kind = kind_of(text);
            Err(Failure { kind, message: format!("the trainer panicked: {text}") })
        }
    }
}

fn put(line: &TrainerLine) -> io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// The state that the two threads share. Each sets its own flag before it reads the other's, so that at least one of
/// them ends the process after the end of stdin.
#[derive(Default)]
struct Life {
    /// The main thread is at work.
    busy: AtomicBool,
    /// stdin has ended.
    ended: AtomicBool,
}

/// A request, and the later messages about its unit.
struct Incoming {
    request: Result<TrainerRequest, Failure>,
    messages: Arc<UnitMessages>,
}

/// The requests of stdin as they come.
fn read_requests(life: Arc<Life>, control: Arc<UnitControl>) -> mpsc::Receiver<Incoming> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        // The messages about the last request: a slot sends one request at a time.
        let mut messages = Arc::<UnitMessages>::default();
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let request = match serde_json::from_str(&line) {
                Ok(TrainerRequest::Stop) => {
                    control.stop(&messages);
                    continue;
                }
                Ok(TrainerRequest::Pace(pace)) => {
                    control.set_pace(pace);
                    continue;
                }
                Ok(TrainerRequest::ShardArrived(file)) => {
                    control.shard_arrived(&messages, file);
                    continue;
                }
                request => request.map_err(|error| refusal(&line, &error)),
            };
            messages = Arc::default();
            let incoming = Incoming { request, messages: Arc::clone(&messages) };
            if sender.send(incoming).is_err() {
                return;
            }
        }
        life.ended.store(true, Ordering::SeqCst);
        drop(sender);
        if life.busy.load(Ordering::SeqCst) {
            // Not `exit`: libtorch's destructors don't expect its own threads to be at work.
            kill_process(getpid(), Signal::KILL).ok();
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::report::FailureKind;
    use tch::{Device, Kind, Tensor};

    #[test]
    fn a_tensor_for_which_there_is_no_memory_is_told_from_other_refusals() {
        let failed = |work: fn() -> Result<Tensor, TrainError>| catch(work).unwrap_err();
        let huge = failed(|| Ok(Tensor::f_zeros([1 << 50], (Kind::Float, Device::Cpu))?));
        assert_eq!(huge.kind, FailureKind::OutOfMemory, "{}", huge.message);
        let huge = failed(|| Ok(Tensor::zeros([1 << 50], (Kind::Float, Device::Cpu))));
        assert_eq!(huge.kind, FailureKind::OutOfMemory, "{}", huge.message);
        let odd = failed(|| Ok(Tensor::f_zeros([-1], (Kind::Float, Device::Cpu))?));
        assert_eq!(odd.kind, FailureKind::Trainer, "{}", odd.message);
    }
}
