//! The steps that all removals have in common: asking, and repeating until nothing is left.

use sojourn_clouds::{Goes, Leaving};
use sojourn_programs::exit::Failure;
use std::{
    io::{IsTerminal as _, Write as _},
    time::Duration,
};
use tokio::time::Instant;

/// How long machines may take to end, and what they have to go.
const PATIENCE: Duration = Duration::from_secs(900);
/// Between two looks.
const PAUSE: Duration = Duration::from_secs(5);

/// Removes, pass by pass, until two passes in a row find nothing: the cloud may list what was just made a moment late.
pub(super) async fn until_gone(
    mut pass: impl AsyncFnMut() -> Result<Vec<Leaving>, Failure>,
) -> Result<(), Failure> {
    let since = Instant::now();
    let mut was_empty = false;
    loop {
        let found = pass().await?;
        if found.is_empty() && was_empty {
            return Ok(());
        }
        was_empty = found.is_empty();
        if !was_empty && since.elapsed() > PATIENCE {
            let names: Vec<String> = found.iter().map(Leaving::to_string).collect();
            return Err(Failure::work(format!("still there: {}", names.join(", "))));
        }
        if !was_empty {
            let ending = found.iter().filter(|leaving| leaving.goes == Goes::Itself).count();
            tracing::info!(there = found.len(), ending, "waiting for the rest to go");
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Leaving {
        Leaving {
            region: "eu-west-1".into(),
            kind: "machine",
            id: "i-1".into(),
            goes: Goes::Stays,
            has_models: false,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_listed_late_goes_too() {
        // A machine that was bought as the last pass began.
        let mut passes = vec![1, 0, 1, 0, 0, 9].into_iter();
        until_gone(async || Ok(vec![machine(); passes.next().unwrap()])).await.unwrap();
        assert_eq!(passes.next(), Some(9), "two empty passes end it");
        until_gone(async || Ok(vec![machine()])).await.unwrap_err();
    }
}
