//! The cost of adaptive verification for a fleet of one stranger in four. Hours that slots work stand beside those of the same
//! job where everybody is believed. Virtual time alone has a part in it, so the figures are the same on every machine.
//!
//! Prints JSON lines.

#![expect(clippy::unwrap_used, reason = "a bench ends at what it did not expect")]

#[path = "../../../benches/size.rs"]
mod size;

use sojourn_protocol::spec::VerifyChoice;
use sojourn_sim::chaos::VerifiedFleet;

/// Confirmed hops in a row with which a party is verified as seldom as any.
const TRUSTED: u32 = 200;
/// Milliseconds of an hour.
const HOUR: f64 = 3_600_000.0;

fn main() {
    let anchor = hours(VerifiedFleet::new(VerifyChoice::NONE).unwrap().run_job().unwrap());
    let mut fleet = VerifiedFleet::new(VerifyChoice::STRANGERS).unwrap();
    line("a stranger's first job", hours(fleet.run_job().unwrap()), anchor);
    while fleet.confirmed_in_row() < size::of(TRUSTED, 12) {
        fleet.run_job().unwrap();
    }
    line("once the stranger is trusted", hours(fleet.run_job().unwrap()), anchor);
}

fn hours(millis: u64) -> f64 {
    f64::from(u32::try_from(millis).unwrap()) / HOUR
}

fn line(when: &str, value: f64, anchor: f64) {
    println!(
        "{{\"name\":\"hours of a job, 1 stranger in 4, {when}\",\"value\":{value:.4},\"unit\":\"h\",\
         \"anchor\":{anchor:.4},\"ratio\":{:.4}}}",
        value / anchor
    );
}
