//! A program that is asked one thing. A driver that hangs takes it along, and nothing else.

use std::{
    process::{Output, Stdio},
    time::Duration,
};
use tokio::{process::Command, time::timeout};

/// How long a driver that wakes its GPUs may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the program says until it ends, or why there is nothing, as what it does: `can't be run: ...`.
pub(super) async fn said(program: &mut Command) -> Result<Output, String> {
    said_within(program, PATIENCE).await
}

async fn said_within(program: &mut Command, patience: Duration) -> Result<Output, String> {
    let output = program.stdin(Stdio::null()).kill_on_drop(true).output();
    match timeout(patience, output).await {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(error)) => Err(format!("can't be run: {error}")),
        Err(_) => Err(format!("has said nothing for {patience:?}, and was left alone")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_that_hangs_is_left_alone() {
        let mut hangs = Command::new("sleep");
        let error = said_within(hangs.arg("1000"), Duration::from_millis(50)).await.unwrap_err();
        assert_eq!(error, "has said nothing for 50ms, and was left alone");
    }
}
