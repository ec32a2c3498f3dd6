//! The planner's thread: makes the plans that the core asks for, one after the other.

use super::{driver::Input, error::ShellError};
use sojourn_core::Command;
use sojourn_protocol::ids::JobId;
use sojourn_workgen::plan::{Iterations, Planner as _, Problem, Rollout};
use std::{
    sync::mpsc::{Receiver, Sender},
    thread::JoinHandle,
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

/// The thread; it ends when this is dropped, after the plan that it is at.
#[derive(Debug)]
pub(super) struct Planner {
    tasks: Option<Sender<Task>>,
    thread: Option<JoinHandle<()>>,
}

impl Planner {
    pub(super) fn start(inputs: Sender<Input>) -> Result<Self, ShellError> {
        let (tasks, inbox) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name("planner".into());
        let thread = thread.spawn(move || work(&inbox, &inputs)).map_err(ShellError::Thread)?;
        Ok(Self { tasks: Some(tasks), thread: Some(thread) })
    }

    /// Has a plan made. Where the thread has gone there will be none, and the policy decides alone.
    pub(super) fn make(&self, task: Task) {
        let sent = self.tasks.as_ref().is_some_and(|tasks| tasks.send(task).is_ok());
        if !sent {
            tracing::error!("the planner's thread has ended: units are handed out without a plan");
        }
    }
}

impl Drop for Planner {
    fn drop(&mut self) {
        self.tasks = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the planner's thread panicked");
        }
    }
}

fn work(inbox: &Receiver<Task>, inputs: &Sender<Input>) {
    while let Ok(Task { job, version, problem, seed, iterations }) = inbox.recv() {
        let mut budget = Iterations::new(iterations);
        let schedule = Rollout.plan(&problem, seed, &mut budget).map(Box::new);
        let command = Command::PlanReady { job, version, schedule };
        if inputs.send(Input::Command { command, reply: None }).is_err() {
            return;
        }
    }
}
