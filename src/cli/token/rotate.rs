//! `sojourn token rotate`: replaces a token while the server runs.

use crate::cli::terminal::{connection::Connection, exit::Failure, output};
use sojourn_api::endpoints;
use sojourn_protocol::{ids::TokenId, tokens::ServerToken};
use std::str::FromStr;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The token's number, as `sojourn token list` shows it; or `admin`, `enrol` or `assimilator` for the server's own.
    #[arg(value_name = "TOKEN")]
    which: Which,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

/// A token that can be replaced.
#[derive(Debug, Clone, Copy)]
enum Which {
    Issued(TokenId),
    Own(ServerToken),
}

impl FromStr for Which {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(own) = ServerToken::ALL.into_iter().find(|own| own.name() == text) {
            return Ok(Self::Own(own));
        }
        let token = text.parse().map(Self::Issued);
        token.map_err(|_| "a token's number, `admin`, `enrol` or `assimilator` is wanted")
    }
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let client = args.connection.client()?;
    let secret = match args.which {
        Which::Issued(token) => {
            let made = client.call(endpoints::RotateToken::request(token)).await?;
            if args.json {
                return output::json(&made);
            }
            made.secret
        }
        Which::Own(own) => {
            let made = client.call(endpoints::RotateServerToken::request(own)).await?;
            if args.json {
                return output::json(&made);
            }
            made.secret
        }
    };
    output::line(&secret)?;
    let kept = match args.which {
        Which::Issued(_) => "and this one isn't shown again".to_owned(),
        Which::Own(own) => {
            let file = own.file();
            format!("and this one is in the file `{file}` of the server's data folder too")
        }
    };
    output::remark(&format!("the token before opens nothing any more, {kept}"));
    Ok(())
}
