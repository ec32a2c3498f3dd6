//! The trainers of the machine.

pub(crate) mod pool;
