//! `sojourn hosts forget`: takes machines off the list that are gone.

use crate::cli::{
    render::text,
    terminal::{connection::Connection, exit::Failure, output},
};
use sojourn_api::endpoints;
use sojourn_protocol::{
    error::ErrorKind,
    ids::HostId,
    time::{Millis, UnixMillis},
    view::{HostState, HostView},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Numbers of machines, as `sojourn hosts` shows them.
    #[arg(value_name = "HOST", required_unless_present = "gone_for", conflicts_with = "gone_for")]
    hosts: Vec<HostId>,
    /// All machines that have been away for at least so long, e.g. `30d`. Those that had work within the last day, or were revoked
    /// and might enrol again, stay.
    #[arg(long, value_name = "TIME")]
    gone_for: Option<Millis>,
    /// Print the forgotten machines as a JSON array.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let client = args.connection.client()?;
    let mut forgotten: Vec<HostView> = Vec::new();
    match args.gone_for {
        None => {
            for host in &args.hosts {
                forgotten.push(client.call(endpoints::ForgetHost::request(*host)).await?);
            }
        }
        Some(length) => {
            let hosts = client.call(endpoints::Hosts::request()).await?;
            let now = text::now();
            for host in hosts.iter().filter(|host| is_gone(host, length, now)) {
                match client.call(endpoints::ForgetHost::request(host.host)).await {
                    Ok(host) => forgotten.push(host),
                    Err(error) if error.kind() == Some(ErrorKind::Conflict) => {
                        output::remark(&format!("kept: {error}"));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
    if args.json {
        return output::json(&forgotten);
    }
    output::line(&said(&forgotten))
}

/// Has the machine been away for so long?
fn is_gone(host: &HostView, length: Millis, now: UnixMillis) -> bool {
    host.state != HostState::Live && host.away_since.is_some_and(|since| since + length <= now)
}

fn said(forgotten: &[HostView]) -> String {
    if forgotten.is_empty() {
        return "no machine is forgotten".to_owned();
    }
    let lines =
        forgotten.iter().map(|host| format!("host {} `{}` is forgotten", host.host, host.name));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_machine_is_gone_once_it_has_been_away_for_so_long() {
        let host = |state: &str, away_since: Option<u64>| -> HostView {
            let host = json!({
                "host": 1, "name": "a", "state": state, "seen_at": null, "slots": 0, "devices": [], "cached": 0, "leases": [],
                "used": 0, "expired": 0, "failures": 0, "last_error": null, "train_micros": 0, "away_since": away_since
            });
            serde_json::from_value(host).unwrap()
        };
        let gone = |host: &HostView| is_gone(host, Millis(1_000), UnixMillis(5_000));
        assert!(gone(&host("away", Some(4_000))) && gone(&host("revoked", Some(0))));
        assert!(!gone(&host("away", Some(4_001))) && !gone(&host("away", None)));
        assert!(!gone(&host("live", Some(0))));
    }
}
