//! `sojourn serve`: the server of this machine. Everything that it does is in `sojourn-server`.

use super::{
    connection,
    failure::{Failure, with_sources},
    output,
};
use sojourn_core::CoreConfig;
use sojourn_protocol::time::Millis;
use sojourn_server::{ServeConfig, ServeError, ServeReady};
use sojourn_workgen::PolicyName;
use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where journal, blobs and tokens lie; for one server at a time.
    #[arg(long, env = "SOJOURN_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to listen. The connection isn't encrypted: let others in through a TLS proxy.
    #[arg(long, env = "SOJOURN_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:8642")]
    listen: SocketAddr,
    /// Seconds after which a machine that isn't heard of loses its work to others.
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    lease_seconds: u64,
    /// Which hop goes to which machine: the trial with the most work left first, or by chance.
    #[arg(long, value_enum, default_value = "ltrp")]
    policy: Policy,
}

/// The policies' words.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Policy {
    Ltrp,
    Randomized,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let data = args.data.clone().unwrap_or_else(|| connection::data_folder("server"));
    let mut config = ServeConfig::new(data, args.listen);
    config.shell.core = CoreConfig {
        policy: match args.policy {
            Policy::Ltrp => PolicyName::Ltrp,
            Policy::Randomized => PolicyName::Randomized,
        },
        ..CoreConfig::with_lease_term(Millis::from_secs(args.lease_seconds))
    };
    sojourn_server::serve(config, announce).await.map_err(|error| failure(&error))
}

/// Says on stdout where the server is and how machines and people come in.
fn announce(ready: &ServeReady) {
    let address = ready.address;
    let text = format!(
        "serving at http://{address}\n\
         a machine joins with:  {}\n\
         the admin token is in  {}",
        client_line(ready),
        ready.admin_token_file.display()
    );
    // The server runs on where nobody reads this.
    let _ = output::line(&text);
}

/// The line that starts a client; an address that means "every one of mine" can't be called.
fn client_line(ready: &ServeReady) -> String {
    let line = ready.client_line();
    let any = match ready.address.ip() {
        IpAddr::V4(ip) => ip.is_unspecified(),
        IpAddr::V6(ip) => ip.is_unspecified(),
    };
    if !any {
        return line;
    }
    let port = ready.address.port();
    line.replace(&ready.address.to_string(), &format!("ADDRESS-OF-THIS-MACHINE:{port}"))
}

fn failure(error: &ServeError) -> Failure {
    let message = with_sources(error);
    match error {
        ServeError::AddressInUse(_) | ServeError::Listen { .. } | ServeError::Folder(_) => {
            Failure::call(message)
        }
        _ => Failure::work(message),
    }
}
