//! `sojourn client ctl log`.

use crate::ctl::unanswered;
use sojourn_client::{
    control::{Answer, Ask, CallError, LogEnd, LogPart, call},
    log::{Line, written},
};
use sojourn_programs::{exit::Failure, output};
use std::{path::Path, thread::sleep, time::Duration};

/// The pause between two requests for new lines.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The number of lines; the client keeps at most 500.
    #[arg(long, short = 'n', default_value_t = 500, value_name = "N")]
    lines: usize,
    /// Print new lines too, until the client ends.
    #[arg(long, short)]
    follow: bool,
}

/// Prints it; `json` for lines of JSON.
pub(super) fn run(args: &Args, data: &Path, json: bool) -> Result<(), Failure> {
    let mut part = LogPart::Last(args.lines);
    let mut last = None;
    loop {
        let LogEnd { lines, next } = match end(data, part) {
            Ok(end) => end,
            // It has ended: what it has written is there still.
            Err(error) if error.has_ended() => {
                if let LogPart::Last(most) = part {
                    return print_written(data, most, json, &error);
                }
                print(&after(last.as_ref(), written(data)), json)?;
                output::remark("the client has ended");
                return Ok(());
            }
            Err(error) => return Err(unanswered(&error)),
        };
        print(&lines, json)?;
        if !args.follow {
            return Ok(());
        }
        last = lines.into_iter().next_back().or(last);
        part = LogPart::Since(next);
        sleep(POLL_INTERVAL);
    }
}

fn end(data: &Path, part: LogPart) -> Result<LogEnd, CallError> {
    match call(data, &Ask::Log(part))? {
        Answer::Log(end) => Ok(end),
        // Of another version, perhaps.
        answer => Err(CallError::Silent {
            data: data.to_owned(),
            source: std::io::Error::other(crate::ctl::show::answer(&answer)),
        }),
    }
}

/// Prints the log of a client that doesn't run any more.
fn print_written(data: &Path, most: usize, json: bool, nobody: &CallError) -> Result<(), Failure> {
    let lines = written(data);
    if lines.is_empty() {
        return Err(unanswered(nobody));
    }
    output::remark(&format!("{nobody}; this is the end of what the last one has written"));
    print(lines.get(lines.len().saturating_sub(most)..).unwrap_or_default(), json)
}

/// The lines after `last`: those that the client logged as it ended. None where `last` isn't among them.
fn after(last: Option<&Line>, mut lines: Vec<Line>) -> Vec<Line> {
    let at = lines.iter().rposition(|line| Some(line) == last);
    at.map(|at| lines.split_off(at + 1)).unwrap_or_default()
}

fn print(lines: &[Line], json: bool) -> Result<(), Failure> {
    lines.iter().try_for_each(|line| {
        if json { output::json_line(line) } else { output::line(&line.to_string()) }
    })
}
