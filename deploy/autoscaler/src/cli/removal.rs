//! What removing has in common: asking, and repeating until nothing is left.

use super::Failure;
use sojourn_ec2::{Goes, Leaving};
use sojourn_protocol::error::error_chain;
use std::{
    error::Error,
    io::{IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

/// How long machines may take to end, and what they have to go.
const PATIENCE: Duration = Duration::from_secs(900);
/// Between two looks.
const PAUSE: Duration = Duration::from_secs(5);

/// Removes, pass by pass, until a pass finds nothing any more.
pub(super) async fn until_gone<E: Error + 'static>(
    pass: impl AsyncFn() -> Result<Vec<Leaving>, E>,
) -> Result<(), Failure> {
    let since = Instant::now();
    loop {
        let found = pass().await.map_err(|error| Failure::work(error_chain(&error)))?;
        if found.is_empty() {
            return Ok(());
        }
        if since.elapsed() > PATIENCE {
            let names: Vec<String> = found.iter().map(Leaving::to_string).collect();
            return Err(Failure::work(format!("still there: {}", names.join(", "))));
        }
        let ending = found.iter().filter(|leaving| leaving.goes == Goes::Itself).count();
        tracing::info!(there = found.len(), ending, "waiting for the rest to go");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Asks on the terminal. Programs say `--yes` instead.
pub(super) fn confirmed(question: &str) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::call("nobody is there to ask: say `--yes`".to_owned()));
    }
    let mut stderr = std::io::stderr().lock();
    let asked = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
    asked.map_err(|error| Failure::output(&error))?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|error| Failure::output(&error))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
