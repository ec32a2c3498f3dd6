//! Carries out the agent's actions. Each executor is a task that ends with one final message to the driver, which
//! aborts it where its end isn't wanted any more; each step leaves nothing behind when it is cut.

pub(crate) mod calls;
pub(crate) mod deliver;
pub(crate) mod fetch;
mod partial_checkpoint;
pub(crate) mod run;
