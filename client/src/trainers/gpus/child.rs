//! A program that is asked one thing. A driver that hangs takes it along, and nothing else.

use std::{
    io,
    process::{Output, Stdio},
    time::Duration,
};
use tokio::{process::Command, time::timeout};

/// How long a driver that wakes its GPUs may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why a program says nothing.
#[derive(Debug)]
pub(super) enum Silence {
    /// There is no such program.
    Missing,
    /// As what it does: `can't be run: ...`.
    Other(String),
}

/// The program's output until it ends.
pub(super) async fn said(program: &mut Command) -> Result<Output, Silence> {
    said_within(program, PATIENCE).await
}

async fn said_within(program: &mut Command, patience: Duration) -> Result<Output, Silence> {
    let output = program.stdin(Stdio::null()).kill_on_drop(true).output();
    match timeout(patience, output).await {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => Err(Silence::Missing),
        Ok(Err(error)) => Err(Silence::Other(format!("can't be run: {error}"))),
        Err(_) => {
            let why = format!("has said nothing for {patience:?}, and was left alone");
            Err(Silence::Other(why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_that_hangs_is_left_alone() {
        let mut hangs = Command::new("sleep");
        let error = said_within(hangs.arg("1000"), Duration::from_millis(50)).await.unwrap_err();
        let Silence::Other(why) = error else { panic!("{error:?}") };
        assert_eq!(why, "has said nothing for 50ms, and was left alone");
    }
}
