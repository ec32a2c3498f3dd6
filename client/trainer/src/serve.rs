//! The process: requests from stdin, answers to stdout, one unit at a time.
//!
//! A thread reads stdin so that its end ends the process at once, in the middle of a unit too: a
//! trainer must not outlive the daemon that started it. It also hears at once that a unit is to stop, or to
//! go at another pace, or that a file has come which it may wait for.

use crate::{
    calibrate::calibrate,
    data::Shards,
    device::finish,
    error::{TrainError, kind_of},
    listener::Listener,
    memory::PeakMemory,
    options::Options,
    orders::{Orders, Said},
    pace::{Meter, Pacer},
    predict::{LastModel, predict},
    unit,
};
use rustix::process::{Signal, getpid, kill_process};
use sojourn_protocol::{
    digest::Digest,
    quantity::SaturatingFrom as _,
    report::{Failure, FailureKind},
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

/// The version of libtorch that the program is built with.
const LIBTORCH: &str = "2.11.0";
/// The shortest time between two progress lines.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// Runs until stdin ends, or stdout can't be written any more.
#[must_use]
pub fn serve(options: &Options) -> ExitCode {
    let life = Arc::new(Life::default());
    life.busy.store(true, Ordering::SeqCst);
    let orders = Arc::new(Orders::default());
    let requests = read_requests(Arc::clone(&life), Arc::clone(&orders));
    let threads = i32::saturating_from(options.threads);
    tch::set_num_interop_threads(1);
    tch::set_num_threads(threads);
    let opened = catch(|| {
        let device = options.device.open()?;
        Ok((device, calibrate(device)?))
    });
    let (device, hello) = match opened {
        Ok((device, calibration)) => {
            let hello = Hello {
                protocol: TRAINER_PROTOCOL,
                libtorch: LIBTORCH.into(),
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
    match answer_all(&requests, hello, Shards::on(device), &life, &orders) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stdout can't be written: {error}");
            ExitCode::FAILURE
        }
    }
}

fn answer_all(
    requests: &mpsc::Receiver<Asked>,
    hello: Hello,
    mut shards: Shards,
    life: &Life,
    orders: &Orders,
) -> io::Result<()> {
    // Idle before a line is written, not after: who has read the answer may end stdin at once, and
    // then finds the process ended in order.
    life.busy.store(false, Ordering::SeqCst);
    put(&TrainerLine::Hello(hello))?;
    let mut last = LastModel::default();
    while let Ok(Asked { request, said }) = requests.recv() {
        life.busy.store(true, Ordering::SeqCst);
        if life.ended.load(Ordering::SeqCst) {
            break;
        }
        let answer = match request {
            Ok(TrainerRequest::Run(request)) => {
                let gpu = shards.device().is_cuda();
                let meter = if gpu { Meter::Wall } else { Meter::Processor };
                answer(&request, &mut shards, Pacer::new(orders, said, meter))
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
            Err(error) => TrainerLine::Failed(Failure {
                kind: FailureKind::Trainer,
                message: format!("the request can't be understood: {error}"),
            }),
        };
        life.busy.store(false, Ordering::SeqCst);
        put(&answer)?;
    }
    Ok(())
}

fn answer(request: &RunUnit, shards: &mut Shards, pacer: Pacer<'_>) -> TrainerLine {
    let device = shards.device();
    let mut teller = Teller { device, pacer, shown: Instant::now(), untold: None };
    let peak = PeakMemory::of_unit(device);
    let answer =
        catch(|| unit::run(request, shards, &mut teller)).unwrap_or_else(TrainerLine::Failed);
    if let Some(bytes) = peak.and_then(PeakMemory::bytes) {
        tell(&TrainerUpdate::PeakMemory(bytes));
    }
    answer
}

/// Tells the slot of a running unit, and has it do what the slot says.
struct Teller<'a> {
    device: tch::Device,
    pacer: Pacer<'a>,
    /// When progress was told last.
    shown: Instant,
    /// Progress since.
    untold: Option<TrainerUpdate>,
}

impl Listener for Teller<'_> {
    fn update(&mut self, told: TrainerUpdate) -> ControlFlow<(), Duration> {
        let TrainerUpdate::Progress(_) = told else {
            tell(&told);
            return ControlFlow::Continue(Duration::ZERO);
        };
        self.untold = if self.shown.elapsed() >= PROGRESS_EVERY {
            self.shown = Instant::now();
            tell(&told);
            None
        } else {
            Some(told.clone())
        };
        if !self.pacer.is_full() {
            // A GPU works off what it is given; its time is over when it has.
            finish(self.device);
        }
        // Of a unit that stands still it is known where.
        let still = self.pacer.rest(|| tell(&told));
        if self.pacer.stops() { ControlFlow::Break(()) } else { ControlFlow::Continue(still) }
    }

    fn wait_for(&mut self, blob: Digest) -> Option<PathBuf> {
        self.pacer.file(blob, || {
            // Of a unit that waits too.
            self.untold.take().iter().for_each(tell);
            tell(&TrainerUpdate::ShardNeeded(blob));
        })
    }
}

/// Where nobody reads any more, the unit's answer will find out.
fn tell(told: &TrainerUpdate) {
    put(&TrainerLine::Update(told.clone())).ok();
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

/// What the two threads know of each other: each sets its own flag before it reads the other's, so
/// that at the end of stdin at least one of them ends the process.
#[derive(Default)]
struct Life {
    /// The main thread is at work.
    busy: AtomicBool,
    /// stdin has ended.
    ended: AtomicBool,
}

/// A request, and what is said later of what it asks for.
struct Asked {
    request: Result<TrainerRequest, serde_json::Error>,
    said: Arc<Said>,
}

/// The requests of stdin as they come.
fn read_requests(life: Arc<Life>, orders: Arc<Orders>) -> mpsc::Receiver<Asked> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        // That of the last request: a slot asks for one thing at a time.
        let mut said = Said::nothing();
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let request = match serde_json::from_str(&line) {
                Ok(TrainerRequest::Stop) => {
                    orders.stop(&said);
                    continue;
                }
                Ok(TrainerRequest::Pace(pace)) => {
                    orders.pace(pace);
                    continue;
                }
                Ok(TrainerRequest::ShardArrived(file)) => {
                    orders.here(&said, file);
                    continue;
                }
                request => request,
            };
            said = Said::nothing();
            if sender.send(Asked { request, said: Arc::clone(&said) }).is_err() {
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
