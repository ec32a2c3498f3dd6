//! `sojourn token new`: makes a token, and prints it once.

use super::quota::QuotaArgs;
use crate::cli::terminal::{connection::Connection, exit::Failure, output};
use sojourn_api::endpoints;
use sojourn_protocol::{
    names::{OwnerName, TokenLabel},
    time::Millis,
    tokens::{MAX_TOKEN_HOSTS, Rights, TokenGrant, TokenRequest},
};

/// Said of machines that are enrolled for another owner.
const VERIFIED: &str = "results of these machines are verified by default: another party trains them again, all at first and 1 in 20 \
    once the owner is trusted; a job with `verify = \"none\"` believes them";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The user for whom the token is. Without this, machines enrol with it.
    #[arg(long, value_name = "NAME", requires = "rights")]
    name: Option<TokenLabel>,
    /// The rights of the user: `read` (look at everything), `submit` (jobs, and control them too) or `administer`
    /// (everything).
    #[arg(long, value_name = "RIGHTS", requires = "name")]
    rights: Option<Rights>,
    /// How many machines may enrol with it [default: 1].
    #[arg(long, value_name = "N", conflicts_with = "name",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_TOKEN_HOSTS)))]
    hosts: Option<u32>,
    /// The person or group to whom these machines belong [default: the deployment itself].
    #[arg(long, value_name = "OWNER", conflicts_with = "name")]
    owner: Option<OwnerName>,
    /// Believe the owner's machines as your own: by default results of another owner's are verified.
    #[arg(long, requires = "owner")]
    trusted: bool,
    /// A name for the token, for people.
    #[arg(long, value_name = "TEXT", conflicts_with = "name")]
    label: Option<TokenLabel>,
    /// How long it is good for, e.g. `12h` or `7d`, up to a year [default: until it is revoked].
    #[arg(long = "for", value_name = "TIME")]
    lifetime: Option<Millis>,
    #[command(flatten)]
    quotas: QuotaArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let (label, grant) = match (&args.name, args.rights) {
        (Some(name), Some(rights)) => (name.clone(), TokenGrant::Access { rights }),
        _ => {
            let owner = args.owner.clone().unwrap_or_default();
            let hosts = args.hosts.unwrap_or(1);
            (
                args.label.clone().unwrap_or_default(),
                TokenGrant::Enrol { owner, hosts, machine: None, trusted: args.trusted },
            )
        }
    };
    let quotas = args.quotas.quotas();
    if !quotas.is_empty() && args.name.is_none() {
        return Err(Failure::call("quotas are for tokens of users: give `--name` and `--rights`"));
    }
    let request = TokenRequest { label, grant, lifetime: args.lifetime, quotas };
    let made = args.connection.client()?.call(endpoints::CreateToken::request(&request)).await?;
    if args.json {
        return output::json(&made);
    }
    output::line(&made.secret)?;
    if let TokenGrant::Enrol { owner, trusted: false, .. } = &made.token.grant
        && !owner.is_default()
    {
        output::remark(&format!("{VERIFIED} (`--trusted` says that they are your own people's)"));
    }
    let token = made.token.token;
    output::remark(&format!(
        "this is token {token}, and it isn't shown again; `sojourn token revoke {token}` takes it away"
    ));
    Ok(())
}
