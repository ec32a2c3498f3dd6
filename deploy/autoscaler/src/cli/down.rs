//! `sojourn-autoscaler down`: removes a fleet with its server and everything else that has its tag in the account.

use super::{
    account, failure, read,
    removal::{confirmed, until_gone},
    site as say,
};
use serde_json::json;
use sojourn_clouds::Providers;
use sojourn_programs::{exit::Failure, output::line};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The fleet's file, whose cloud's table has the server.
    file: PathBuf,
    /// Don't ask; programs need it.
    #[arg(long, short)]
    yes: bool,
    /// Only say what would go.
    #[arg(long)]
    preview: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: &Args, providers: Providers<'_>) -> Result<(), Failure> {
    let config = read(&args.file, providers)?;
    let site = account(&config, providers)?.site().await.map_err(failure)?;
    let (fleet, region) = (&config.fleet, site.region().to_owned());
    let found = site.leavings().await.map_err(failure)?;
    let all: Vec<_> = found.iter().map(say::leaving_json).collect();
    let report = |removed: bool| json!({ "fleet": fleet, "region": region, "found": all, "removed": removed });
    if found.is_empty() {
        let nothing = format!("nothing in {region} has the tag of the fleet `{fleet}`");
        return line(&if args.json { report(false).to_string() } else { nothing });
    }
    if !args.json {
        found.iter().try_for_each(|leaving| line(&format!("  remove  {leaving}")))?;
        line(&format!(
            "As long as it is there, an hour costs about {}, and machines besides; `sojourn jobs --cost` says what jobs have cost.",
            say::hour(&site.costs())
        ))?;
        if found.iter().any(|leaving| leaving.has_models) {
            line(
                "THE SERVER'S DISK GOES TOO: its journal, its data and ALL MODELS. Nobody can bring them back. What you want to \
                 keep, fetch before: `sojourn export JOB --best -o best.safetensors`.",
            )?;
        }
    }
    let question = format!("remove all {}?", found.len());
    if args.preview || !(args.yes || confirmed(&question)?) {
        return line(&if args.json {
            report(false).to_string()
        } else {
            "nothing was removed".to_owned()
        });
    }
    until_gone(async || site.remove_all().await.map_err(failure)).await?;
    line(&if args.json {
        report(true).to_string()
    } else {
        format!(
            "All of it is gone: nothing in {region} has the tag of the fleet `{fleet}` any more."
        )
    })
}
