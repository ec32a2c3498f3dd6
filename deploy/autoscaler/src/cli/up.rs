//! `sojourn-autoscaler up`: makes a fleet's server in the cloud, with its network, its rights and the autoscaler.

use super::{account, failure, read, removal::confirmed, site as say};
use crate::config::filled;
use serde_json::json;
use sojourn_clouds::{PartState, Providers, Site, State};
use sojourn_programs::{exit::Failure, output::line};
use std::{
    fs,
    path::{Path, PathBuf},
};
use toml_edit::{DocumentMut, TomlError};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The fleet's file, whose cloud's table has the server.
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

pub(super) async fn run(args: &Args, providers: Providers<'_>) -> Result<(), Failure> {
    let config = read(&args.file, providers)?;
    let site = account(&config, providers)?.site().await.map_err(failure)?;
    site.check().map_err(failure)?;
    let file = file(&args.file, &*site)?;
    let (fleet, region, costs) = (&config.fleet, site.region().to_owned(), site.costs());
    let found = site.look().await.map_err(failure)?;
    let complete = found.iter().all(|one| one.state == State::There);
    if !args.json {
        line(&format!("fleet `{fleet}` in {region}"))?;
        say::parts(&found).iter().try_for_each(|text| line(text))?;
        say::costs(&costs, site.price_key(), &config).iter().try_for_each(|text| line(text))?;
    }
    let todo = found.iter().filter(|one| one.state != State::There).count();
    let goes_on = complete
        || (!args.preview && (args.yes || confirmed(&format!("make or finish {todo} of them?"))?));
    let parts = |parts: &[_]| parts.iter().map(say::part_json).collect::<Vec<_>>();
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
    let mut seen = |one: PartState| {
        if one.state != State::There && !args.json {
            let id = one.id.as_deref().unwrap_or_default();
            // Where nobody reads any more, the work goes on.
            let _ = line(&format!("  there   {} {id}", one.part));
        }
        made.push(PartState { state: State::There, ..one });
    };
    let server = site.up(&file, &mut seen).await.map_err(failure)?;
    if args.json {
        let mut report = with("parts", parts(&made).into());
        if let Some(report) = report.as_object_mut() {
            let server = json!({ "url": server.url, "instance": server.instance, "address": server.address });
            report.insert("server".to_owned(), server);
        }
        return line(&report.to_string());
    }
    line(if complete {
        "All of it is there: nothing was changed. What has changed in the file since isn't sent to the server's machine."
    } else {
        "The fleet is up."
    })?;
    say::next(&server, &site.login(&server), &args.file).iter().try_for_each(|text| line(text))
}

/// The fleet's file as the server's machine gets it, but for the table of its cloud.
fn file(path: &Path, site: &dyn Site) -> Result<String, Failure> {
    let wrong =
        |error: &dyn std::error::Error| Failure::call(format!("`{}`: {error}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let file: DocumentMut = text.parse().map_err(|error: TomlError| wrong(&error))?;
    Ok(filled(file, &site.server_address(), &site.defaults()))
}
