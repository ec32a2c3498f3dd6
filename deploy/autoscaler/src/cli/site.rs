//! The texts of `up` and `down` on a fleet's site: its parts, its costs, and what comes next.

use crate::config::Config;
use serde_json::{Value, json};
use sojourn_clouds::{Costs, Leaving, PartState, ServerMachine, State};
use sojourn_protocol::money::MicroUsd;
use std::path::Path;

/// The parts, one a line, with what is to be done about each.
pub(super) fn parts(parts: &[PartState]) -> Vec<String> {
    let line = |one: &PartState| {
        let id = one.id.as_deref().unwrap_or_default();
        match one.state {
            State::Missing => format!("  make    {} `{}`", one.part, one.name),
            State::Unfinished => format!("  finish  {} `{}` {id}", one.part, one.name),
            State::There => format!("  keep    {} `{}` {id}", one.part, one.name),
        }
    };
    parts.iter().map(line).collect()
}

/// The costs of the site, and what machines may cost besides. `price_key` is the key with the price of the server's machine.
pub(super) fn costs(costs: &Costs, price_key: &str, config: &Config) -> Vec<String> {
    let server = costs.server.map_or_else(
        || format!("a price that the file doesn't say (`{price_key}`)"),
        |price| price.to_string(),
    );
    let limits = &config.settings.limits;
    let hourly =
        limits.hourly.map_or("without a limit".to_owned(), |most| format!("at most {most}"));
    let total = limits.total.map_or("without a limit".to_owned(), |most| format!("at most {most}"));
    vec![
        format!(
            "An hour costs about {}, a month {}: the server's machine {server}, its disk {}, its public address {}.",
            hour(costs),
            costs.month(),
            about(costs.disk),
            costs.address
        ),
        format!(
            "Machines cost besides, while there is work (`[limits]`): {} of them, {hourly} an hour, {total} in all.",
            limits.machines
        ),
    ]
}

/// An hour of what has a price.
pub(super) fn hour(costs: &Costs) -> String {
    let besides = if costs.server.is_some() { "" } else { " without the server's machine" };
    format!("{}{besides}", about(costs.hour()))
}

/// To a tenth of a cent.
const fn about(price: MicroUsd) -> MicroUsd {
    MicroUsd(price.0.saturating_add(500) / 1_000 * 1_000)
}

/// The server that there is now, and the next steps of its owner, who logs in by a command of the cloud.
pub(super) fn next(server: &ServerMachine, login: &str, file: &Path) -> Vec<String> {
    let (url, instance) = (&server.url, &server.instance);
    let file = file.display();
    vec![
        format!(
            "The server is {url}, machine {instance}. It serves some minutes after its first start."
        ),
        "Its certificate and the admin token are on that machine:".to_owned(),
        format!("  {login}"),
        "  sudo cat /etc/sojourn/server.pem                      # copy it into server.pem here"
            .to_owned(),
        "  sudo cat /var/lib/private/sojourn-server/admin-token  # copy it into admin-token here"
            .to_owned(),
        "Then, on this machine:".to_owned(),
        format!(
            "  export SOJOURN_SERVER={url} SOJOURN_CA=server.pem SOJOURN_TOKEN_FILE=admin-token"
        ),
        "  sojourn hosts".to_owned(),
        format!("All of it is removed by `sojourn cloud down {file}`."),
    ]
}

/// A part for programs.
pub(super) fn part_json(one: &PartState) -> Value {
    let state = match one.state {
        State::Missing => "missing",
        State::Unfinished => "unfinished",
        State::There => "there",
    };
    json!({ "part": one.part, "name": one.name, "id": one.id, "state": state })
}

/// A thing that is left, for programs.
pub(super) fn leaving_json(leaving: &Leaving) -> Value {
    json!({ "kind": leaving.kind, "id": leaving.id, "region": leaving.region })
}

/// Costs for programs, in millionths of a dollar.
pub(super) fn costs_json(costs: &Costs) -> Value {
    json!({
        "server_hour": costs.server, "disk_hour": costs.disk, "address_hour": costs.address,
        "hour": costs.hour(), "month": costs.month(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_say_what_is_done_about_them() {
        let part = |part: &str, name: &str, id: Option<&str>, state| PartState {
            part: part.to_owned(),
            name: name.to_owned(),
            id: id.map(str::to_owned),
            state,
        };
        let all = [
            part("network", "sojourn-night", Some("vpc-1"), State::There),
            part("subnet in eu-west-1a", "sojourn-night", None, State::Missing),
            part(
                "security group of the server",
                "sojourn-night-server",
                Some("sg-1"),
                State::Unfinished,
            ),
        ];
        assert_eq!(
            parts(&all),
            [
                "  keep    network `sojourn-night` vpc-1",
                "  make    subnet in eu-west-1a `sojourn-night`",
                "  finish  security group of the server `sojourn-night-server` sg-1",
            ]
        );
        let json = part_json(&all[1]);
        assert_eq!((&json["state"], &json["id"]), (&json!("missing"), &Value::Null));
    }

    #[test]
    fn a_price_that_is_not_known_is_said() {
        let text = "fleet = 'night'\nserver = 'https://server'\ntoken_file = 'token'\n\
                    [limits]\nmachines = 16\nhourly = '2 usd'\n[cloud]\n";
        let config = Config::parse(text, Path::new(""), &[]).unwrap();
        let known = Costs {
            server: Some(MicroUsd(20_000)),
            disk: MicroUsd(5_000),
            address: MicroUsd(5_000),
        };
        let lines = costs(&known, "[cloud.server] price", &config);
        assert!(
            lines[0].starts_with(
                "An hour costs about $0.03, a month $21.90: the server's machine $0.02,"
            ),
            "{lines:?}"
        );
        assert!(
            lines[1].ends_with("16 of them, at most $2.00 an hour, without a limit in all."),
            "{lines:?}"
        );
        let lines = costs(&Costs { server: None, ..known }, "[cloud.server] price", &config);
        assert!(lines[0].contains("about $0.01 without the server's machine"), "{lines:?}");
        assert!(lines[0].contains("`[cloud.server] price`"), "{lines:?}");
    }
}
