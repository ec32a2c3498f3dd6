//! `sojourn-autoscaler up`: makes a fleet's server in the cloud, with its network, its rights and the autoscaler.

use super::{read, removal::confirmed, site as say};
use crate::{
    clouds,
    config::{Config, Filling, filled},
};
use serde_json::json;
use sojourn_ec2::{ADDRESS_PLACEHOLDER, PORT, PartState, Placement, ServerFiles, State};
use sojourn_programs::{exit::Failure, output::line};
use sojourn_protocol::error::error_chain;
use std::{fs, path::PathBuf};
use toml_edit::{DocumentMut, TomlError};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The fleet's file, with a table `[ec2.server]`.
    file: PathBuf,
    /// Don't ask; programs need it.
    #[arg(long, short)]
    yes: bool,
    /// Only say what would be made, and what it costs.
    #[arg(long)]
    preview: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The files that go to the server's machine, as far as they are known before anything is made.
struct Files {
    /// The fleet's file as its owner wrote it.
    fleet: DocumentMut,
    /// The owner's own user data for the fleet's machines.
    user_data: Option<String>,
}

pub(super) async fn run(args: &Args) -> Result<(), Failure> {
    let config = read(&args.file)?;
    let site = clouds::site(&config).await;
    let site = site.map_err(|error| Failure::call(error_chain(&error)))?;
    site.check().map_err(|error| say::failure(&error))?;
    let files = files(args, &config)?;
    let (fleet, region, costs) = (&config.fleet, site.region().to_owned(), site.costs());
    let found = site.look().await.map_err(|error| say::failure(&error))?;
    let complete = found.iter().all(|one| one.state == State::There);
    if !args.json {
        line(&format!("fleet `{fleet}` in {region}"))?;
        say::parts(&found, fleet).iter().try_for_each(|text| line(text))?;
        say::costs(&costs, &config).iter().try_for_each(|text| line(text))?;
    }
    let todo = found.iter().filter(|one| one.state != State::There).count();
    let goes_on = complete
        || (!args.preview && (args.yes || confirmed(&format!("make or finish {todo} of them?"))?));
    let parts =
        |parts: &[_]| parts.iter().map(|one| say::part_json(one, fleet)).collect::<Vec<_>>();
    let report = json!({ "fleet": fleet, "region": region, "costs": say::costs_json(&costs) });
    let with = |key: &str, value| {
        let mut report = report.clone();
        if let Some(report) = report.as_object_mut() {
            report.insert(key.to_owned(), value);
        }
        report
    };
    if args.preview || !goes_on {
        if args.json {
            return line(&with("parts", parts(&found).into()).to_string());
        }
        return line("nothing was made");
    }
    let mut made = vec![];
    let server = site.up(
        |placement| sent(files, placement),
        |one| {
            if one.state != State::There && !args.json {
                let id = one.id.as_deref().unwrap_or_default();
                // Where nobody reads any more, the work goes on.
                let _ = line(&format!("  there   {} {id}", one.part));
            }
            made.push(PartState { state: State::There, ..one });
        },
    );
    let server = server.await.map_err(|error| say::failure(&error))?;
    if args.json {
        let mut report = with("parts", parts(&made).into());
        if let Some(report) = report.as_object_mut() {
            let server = json!({ "url": server.url(), "instance": server.instance, "address": server.address });
            report.insert("server".to_owned(), server);
        }
        return line(&report.to_string());
    }
    line(if complete {
        "All of it is there: nothing was changed. What has changed in the file since isn't sent to the server's machine."
    } else {
        "The fleet is up."
    })?;
    say::next(&server, &region, &args.file).iter().try_for_each(|text| line(text))
}

/// Reads what goes to the server's machine.
fn files(args: &Args, config: &Config) -> Result<Files, Failure> {
    let unread = |path: &PathBuf| {
        let path = path.display().to_string();
        move |error: std::io::Error| Failure::call(format!("`{path}`: {error}"))
    };
    let text = fs::read_to_string(&args.file).map_err(unread(&args.file))?;
    let given = |file: &toml::Table| file.get("ec2")?.as_table()?.get("user_data").cloned();
    let has_own = text.parse::<toml::Table>().ok().as_ref().and_then(given).is_some();
    // Resolved from the folder of the file.
    let path =
        config.ec2.as_ref().and_then(|ec2| ec2.get("user_data")?.as_str().map(PathBuf::from));
    let user_data = match path.filter(|_| has_own) {
        Some(path) => Some(fs::read_to_string(&path).map_err(unread(&path))?),
        None => None,
    };
    let wrong = |error| Failure::call(format!("`{}`: {error}", args.file.display()));
    let fleet: DocumentMut = text.parse().map_err(|error: TomlError| wrong(error))?;
    Ok(Files { fleet, user_data })
}

fn sent(files: Files, placement: &Placement) -> ServerFiles {
    let with = Filling {
        server: &format!("https://{ADDRESS_PLACEHOLDER}:{PORT}"),
        region: &placement.region,
        subnets: &placement.subnets,
        security_groups: &placement.security_groups,
        sends_user_data: files.user_data.is_some(),
    };
    ServerFiles { fleet: filled(files.fleet, &with), user_data: files.user_data }
}
