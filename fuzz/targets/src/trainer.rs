//! The JSON lines between a slot and its trainer, in both directions, and those of the client's control socket.

use crate::expect::round_trip;
use sojourn_client::control::{Answer, Ask};
use sojourn_protocol::trainer::{TrainerLine, TrainerRequest};

pub(crate) fn lines(input: &[u8]) -> bool {
    let mut taken = false;
    for line in input.split(|byte| *byte == b'\n') {
        taken |= round_trip::<TrainerLine>(line).is_some();
        taken |= round_trip::<TrainerRequest>(line).is_some();
        taken |= round_trip::<Ask>(line).is_some();
        taken |= round_trip::<Answer>(line).is_some();
    }
    taken
}
