//! The same search as plain Python programs, where a Python with `torch` is named.

use serde_json::Value;
use std::{path::Path, process::Command};

/// The name of each program, and its file in `benches/anchors`.
const PROGRAMS: [(&str, &str); 3] =
    [("plain PyTorch", "plain.py"), ("Optuna", "with_optuna.py"), ("Ray Tune", "with_ray.py")];

/// Seconds that each program takes, its start-up included; none where there is no Python for it.
pub(crate) fn searches(epochs: u32) -> Vec<(&'static str, f64)> {
    let Some(python) = std::env::var_os("SOJOURN_BENCH_PYTHON") else {
        eprintln!("no anchors in Python: SOJOURN_BENCH_PYTHON names none");
        return Vec::new();
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/anchors");
    let mut seconds = Vec::new();
    for (name, file) in PROGRAMS {
        let mut command = Command::new(&python);
        command.arg(folder.join(file)).args(["--epochs", &epochs.to_string()]);
        let output = command.output().unwrap();
        let line: Option<Value> = serde_json::from_slice(&output.stdout).ok();
        match line.and_then(|line| line.get("seconds").and_then(Value::as_f64)) {
            Some(took) => seconds.push((name, took)),
            None => eprintln!("no anchor in {name}: {}", said(&output.stderr)),
        }
    }
    seconds
}

/// The last line of an error.
fn said(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    text.lines().last().unwrap_or("it says nothing").to_owned()
}
