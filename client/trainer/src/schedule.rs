//! The learning rate of a step, as `Schedule` in the protocol defines it.

use sojourn_protocol::spec::{Schedule, ScheduleName};

/// The factor on the learning rate for step `step` (from 0) of `total`.
///
/// `libm` rather than the system's mathematics: the factor is the same on any machine.
#[expect(clippy::cast_precision_loss, reason = "steps are far below 2^53")]
pub(crate) fn factor(schedule: &Schedule, step: u64, total: u64) -> f64 {
    let warmup = u64::from(schedule.warmup);
    if step < warmup {
        return (step + 1) as f64 / warmup as f64;
    }
    let after = step - warmup;
    match schedule.name {
        ScheduleName::Constant => 1.0,
        ScheduleName::Step => {
            let drops = after / u64::from(schedule.every.max(1));
            libm::pow(schedule.gamma, drops as f64)
        }
        ScheduleName::Cosine => {
            let length = total.saturating_sub(warmup).max(1);
            let ratio = after.min(length) as f64 / length as f64;
            let wave = (1.0 + libm::cos(std::f64::consts::PI * ratio)) / 2.0;
            schedule.floor + (1.0 - schedule.floor) * wave
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(name: ScheduleName, warmup: u32) -> Schedule {
        Schedule { name, warmup, every: 10, gamma: 0.5, floor: 0.2 }
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    #[test]
    fn warm_up_is_linear_and_ends_at_one() {
        for name in [ScheduleName::Constant, ScheduleName::Step, ScheduleName::Cosine] {
            let schedule = schedule(name, 4);
            let rates: Vec<f64> = (0..5).map(|step| factor(&schedule, step, 100)).collect();
            assert_eq!(rates, [0.25, 0.5, 0.75, 1.0, 1.0]);
        }
    }

    #[test]
    fn steps_drop_and_cosines_end_at_the_floor() {
        let step = schedule(ScheduleName::Step, 4);
        close(factor(&step, 13, 100), 1.0);
        close(factor(&step, 14, 100), 0.5);
        close(factor(&step, 24, 100), 0.25);
        let cosine = schedule(ScheduleName::Cosine, 0);
        close(factor(&cosine, 0, 100), 1.0);
        close(factor(&cosine, 50, 100), 0.6);
        close(factor(&cosine, 100, 100), 0.2);
        close(factor(&cosine, 1000, 100), 0.2);
        close(factor(&schedule(ScheduleName::Constant, 0), 99, 100), 1.0);
    }

    #[test]
    fn factors_are_those_of_the_vectors() {
        let known = include_str!("../../../protocol/vectors/schedules.json");
        let known: serde_json::Value = serde_json::from_str(known).unwrap();
        for case in known["schedules"].as_array().unwrap() {
            let schedule: Schedule = serde_json::from_value(case["schedule"].clone()).unwrap();
            let total = case["total_steps"].as_u64().unwrap();
            for pair in case["factors"].as_array().unwrap() {
                let step = pair[0].as_u64().unwrap();
                close(factor(&schedule, step, total), pair[1].as_f64().unwrap());
            }
        }
    }
}
