//! The planner's thread: makes the plans that the core asks for, one after the other.

use super::{error::ShellError, message::Input};
use sojourn_core::Command;
use sojourn_protocol::ids::JobId;
use sojourn_workgen::plan::{Budget, Iterations, Planner as _, Problem, Rollout};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc::{Receiver, Sender},
};

/// A plan to make.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) job: JobId,
    pub(super) version: u64,
    pub(super) problem: Box<Problem>,
    pub(super) seed: u64,
    pub(super) iterations: u64,
}

/// The thread; it ends when this is dropped, after the iteration that it is at. Nobody waits for that: an iteration over a large
/// job takes long, and what comes of it nobody hears.
#[derive(Debug)]
pub(super) struct PlannerThread {
    stop: Arc<AtomicBool>,
    tasks: Sender<Task>,
}

impl PlannerThread {
    pub(super) fn start(inputs: Sender<Input>) -> Result<Self, ShellError> {
        let (tasks, inbox) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name("planner".into());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread.spawn(move || work(&inbox, &inputs, &stopped));
        thread.map_err(ShellError::Thread)?;
        Ok(Self { stop, tasks })
    }

    /// Has a plan made. Where the thread has gone there will be none, and the policy decides alone.
    pub(super) fn make(&self, task: Task) {
        if self.tasks.send(task).is_err() {
            tracing::error!("the planner's thread has ended: units are handed out without a plan");
        }
    }
}

impl Drop for PlannerThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// A count of iterations, and no more of them once the server stops: what comes of that plan nobody hears.
struct UntilStopped<'a> {
    iterations: Iterations,
    stopped: &'a AtomicBool,
}

impl Budget for UntilStopped<'_> {
    fn next(&mut self) -> Option<u32> {
        if self.stopped.load(Ordering::Acquire) { None } else { self.iterations.next() }
    }
}

fn work(inbox: &Receiver<Task>, inputs: &Sender<Input>, stopped: &AtomicBool) {
    while let Ok(Task { job, version, problem, seed, iterations }) = inbox.recv() {
        if stopped.load(Ordering::Acquire) {
            return;
        }
        let mut budget = UntilStopped { iterations: Iterations::new(iterations), stopped };
        let schedule = Rollout.plan(&problem, seed, &mut budget).map(Box::new);
        let command = Command::PlanReady { job, version, schedule };
        if inputs.send(Input::Command { command: Box::new(command), reply: None }).is_err() {
            return;
        }
    }
}
