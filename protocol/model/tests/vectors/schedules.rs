//! The factor on the learning rate.

use crate::file::compare;
use serde_json::{Value, json};
use sojourn_protocol::spec::{Schedule, ScheduleName};

const TOTAL: u64 = 40;

#[test]
fn factors_are_those_of_the_file() {
    let constant = Schedule::CONSTANT;
    let step = Schedule { name: ScheduleName::Step, every: 10, gamma: 0.5, ..constant };
    let cosine = Schedule { name: ScheduleName::Cosine, floor: 0.2, ..constant };
    let schedules = [
        constant,
        step,
        cosine,
        Schedule { warmup: 4, ..constant },
        Schedule { warmup: 4, gamma: 0.1, ..step },
        Schedule { warmup: 4, ..cosine },
    ];
    let content = schedules.map(|schedule| {
        let steps = [0, 1, 3, 4, 9, 10, 13, 14, 20, 24, 39, 40, 100];
        let factors: Vec<Value> =
            steps.iter().map(|step| json!([step, factor(&schedule, *step)])).collect();
        json!({"schedule": schedule, "total_steps": TOTAL, "factors": factors})
    });
    compare("schedules.json", &json!({ "schedules": content }));
}

/// As the documentation of [`Schedule`] has it.
fn factor(schedule: &Schedule, step: u32) -> f64 {
    let Schedule { name, warmup, every, gamma, floor } = *schedule;
    if step < warmup {
        return f64::from(step + 1) / f64::from(warmup);
    }
    let after = step - warmup;
    match name {
        ScheduleName::Constant => 1.0,
        ScheduleName::Step => libm::pow(gamma, f64::from(after / every)),
        ScheduleName::Cosine => {
            let length = u32::try_from(TOTAL).unwrap() - warmup;
            let ratio = f64::from(after.min(length)) / f64::from(length);
            let wave = (1.0 + libm::cos(std::f64::consts::PI * ratio)) / 2.0;
            floor + (1.0 - floor) * wave
        }
    }
}
