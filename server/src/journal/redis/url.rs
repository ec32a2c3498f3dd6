//! The URL of a Redis: one server, or the one that a Sentinel names.
//!
//! ```text
//! redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE][?name=DEFAULT_DEPLOYMENT]          rediss:// over TLS
//! redis+unix:///PATH[?db=DATABASE&user=USER&pass=PASSWORD&name=DEFAULT_DEPLOYMENT]
//! redis+sentinel://[USER:PASSWORD@]HOST[:PORT],HOST[:PORT].../SERVICE[/DATABASE][?name=DEFAULT_DEPLOYMENT]
//! ```

use super::connection::RedisConnection;
use crate::journal::JournalError;
use parking_lot::Mutex;
use redis::{
    Client, Connection, ConnectionAddr, ErrorKind, IntoConnectionInfo as _, RedisError,
    ServerErrorKind, TlsMode, Value, cmd,
    sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType},
};
use sojourn_protocol::text::plain_line;
use std::{fmt, time::Duration};

/// The name of a deployment if the URL has none.
const DEFAULT_DEPLOYMENT: &str = "sojourn";
/// The port that Sentinels listen on.
const DEFAULT_SENTINEL_PORT: u16 = 26_379;
/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Characters of a URL that an error shows.
const MAX_SHOWN_CHARS: usize = 500;

/// Why a URL names no Redis.
#[derive(Debug, thiserror::Error)]
#[error("`{url}` names no Redis: {reason}")]
pub struct RedisUrlError {
    /// The URL that was given, without its password.
    url: String,
    reason: String,
}

/// The Redis of a deployment's journal.
pub struct RedisUrl {
    /// The URL without the password, for people.
    shown: String,
    pub(super) deployment: String,
    servers: Servers,
}

enum Servers {
    One(Box<Client>),
    Sentinel(Box<Mutex<SentinelClient>>),
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisUrl").field(&self.shown).finish()
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl RedisUrl {
    /// Parses a URL. Nothing is connected yet.
    ///
    /// # Errors
    /// Where it names no Redis.
    pub fn of(url: &str) -> Result<Self, RedisUrlError> {
        let shown = shown(url);
        let refuse =
            |reason: String| RedisUrlError { url: plain_line(&shown, MAX_SHOWN_CHARS), reason };
        // They are trimmed where a URL is read: what is shown would be read as another one.
        if url.contains(|symbol: char| symbol.is_control() || symbol.is_whitespace()) {
            return Err(refuse("it has a space or a control character".to_owned()));
        }
        // What is behind it counts for nothing, and may look like the host.
        if url.contains('#') {
            return Err(refuse("it has a `#`; a password has `%23` for it".to_owned()));
        }
        let (url, deployment) = split_name(url);
        let deployment = deployment.unwrap_or(DEFAULT_DEPLOYMENT).to_owned();
        let plain = |symbol: char| symbol.is_ascii_alphanumeric() || "-_.".contains(symbol);
        if deployment.is_empty() || !deployment.chars().all(plain) {
            let reason = "a deployment's name has letters, digits, `-`, `_` and `.`";
            return Err(refuse(reason.to_owned()));
        }
        let sentinels =
            [("redis+sentinel://", None), ("rediss+sentinel://", Some(TlsMode::Secure))];
        let sentinel = sentinels
            .into_iter()
            .find_map(|(scheme, tls)| url.strip_prefix(scheme).map(|rest| (rest, tls)));
        let servers = match sentinel {
            Some((rest, tls)) => {
                sentinel_of(rest, tls).map_err(|error| refuse(error.to_string()))?
            }
            None => Servers::One(Box::new(
                Client::open(url.as_str())
                    .map_err(|error| refuse(format!("{error}; e.g. redis://127.0.0.1:6379/0")))?,
            )),
        };
        Ok(Self { shown, deployment, servers })
    }

    /// A connection to the server that takes writes. An answer may take as long as `answer`.
    pub(super) fn connect(&self, answer: Duration) -> Result<RedisConnection, JournalError> {
        let connect = || -> Result<_, RedisError> {
            let client = match &self.servers {
                Servers::One(client) => Client::clone(client),
                Servers::Sentinel(sentinel) => sentinel.lock().get_client()?,
            };
            let mut connection = client.get_connection_with_timeout(CONNECT_TIMEOUT)?;
            connection.set_read_timeout(Some(answer))?;
            connection.set_write_timeout(Some(answer))?;
            is_loaded(&mut connection)?;
            Ok(connection)
        };
        connect().map(RedisConnection::new).map_err(|error| {
            let place = self.shown.clone();
            match error.kind() {
                ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => {
                    JournalError::Refused { place, source: Box::new(error) }
                }
                _ => JournalError::Unreachable { place, source: Box::new(error) },
            }
        })
    }
}

/// Fails while Redis still reads its file: it takes connections by then, and answers nothing.
fn is_loaded(connection: &mut Connection) -> Result<(), RedisError> {
    match cmd("PING").query::<Value>(connection) {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::BusyLoading) => Err(error),
        // Whatever else is wrong, the command that is needed says.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// `[USER:PASSWORD@]HOST[:PORT],.../SERVICE[/DATABASE]`.
fn sentinel_of(rest: &str, tls: Option<TlsMode>) -> Result<Servers, Box<dyn std::error::Error>> {
    let (rest, _) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').ok_or("the service's name is missing")?;
    let (user, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (service, database) = path.split_once('/').unwrap_or((path, "0"));
    if service.is_empty() {
        return Err("the service's name is missing".into());
    }
    let address = |host: &str| -> Result<ConnectionAddr, Box<dyn std::error::Error>> {
        let last = host.rsplit(':').next().unwrap_or(host);
        let has_port = !host.ends_with(']') && host.contains(':') && last.parse::<u16>().is_ok();
        let host =
            if has_port { host.to_owned() } else { format!("{host}:{DEFAULT_SENTINEL_PORT}") };
        Ok(format!("redis://{host}").into_connection_info()?.addr().clone())
    };
    let hosts = hosts.split(',').map(address).collect::<Result<Vec<_>, _>>()?;
    // Users, passwords and their escapes are read as in other URLs.
    let node = format!("redis://{user}{}any/{database}", if user.is_empty() { "" } else { "@" });
    let node = node.as_str().into_connection_info()?;
    let node = node.redis_settings();
    let mut builder = SentinelClientBuilder::new(hosts, service, SentinelServerType::Master)?
        .set_client_to_redis_db(node.db());
    if let Some(user) = node.username() {
        builder = builder.set_client_to_redis_username(user);
    }
    if let Some(password) = node.password() {
        builder = builder.set_client_to_redis_password(password);
    }
    if let Some(tls) = tls {
        builder = builder.set_client_to_redis_tls_mode(tls);
    }
    Ok(Servers::Sentinel(Box::new(Mutex::new(builder.build()?))))
}

/// The URL without `name=`, which Redis' own URLs don't have, and the name.
fn split_name(url: &str) -> (String, Option<&str>) {
    let Some((before, query)) = url.split_once('?') else { return (url.to_owned(), None) };
    let name = query.split('&').find_map(|part| part.strip_prefix("name="));
    let rest: Vec<&str> = query.split('&').filter(|part| !part.starts_with("name=")).collect();
    let url =
        if rest.is_empty() { before.to_owned() } else { format!("{before}?{}", rest.join("&")) };
    (url, name)
}

/// The URL without user and password.
fn shown(url: &str) -> String {
    let (before, query) = url.split_once('?').unwrap_or((url, ""));
    let before = match before.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/').map_or((rest, ""), |(a, p)| (a, p));
            let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
            let slash = if rest.contains('/') { "/" } else { "" };
            format!("{scheme}://{hosts}{slash}{path}")
        }
        None => before.to_owned(),
    };
    let open =
        |part: &&str| !part.is_empty() && !part.starts_with("pass=") && !part.starts_with("user=");
    let query: Vec<&str> = query.split('&').filter(open).collect();
    if query.is_empty() { before } else { format!("{before}?{}", query.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_all_kinds_are_read_and_shown_without_their_password() {
        for (url, shown, deployment) in [
            ("redis://127.0.0.1:6379", "redis://127.0.0.1:6379", "sojourn"),
            ("redis://ada:secret@db:6380/3?name=lab-2", "redis://db:6380/3?name=lab-2", "lab-2"),
            ("redis://:secret@db/0", "redis://db/0", "sojourn"),
            ("rediss://:s%40crt@db.example.org", "rediss://db.example.org", "sojourn"),
            (
                "redis+unix:///run/r.sock?db=1&pass=secret&name=x",
                "redis+unix:///run/r.sock?db=1&name=x",
                "x",
            ),
            (
                "redis+sentinel://ada:secret@a:1,b,[::1]:7/main/2?name=x",
                "redis+sentinel://a:1,b,[::1]:7/main/2?name=x",
                "x",
            ),
            ("rediss+sentinel://a/main", "rediss+sentinel://a/main", "sojourn"),
        ] {
            let redis = RedisUrl::of(url).unwrap();
            assert_eq!(
                (redis.to_string().as_str(), redis.deployment.as_str()),
                (shown, deployment)
            );
        }
    }

    #[test]
    fn an_invalid_redis_url_is_refused_without_showing_its_password() {
        for url in [
            "redis://",
            "http://:secret@db/0",
            "redis://:secret@db/x",
            "redis+sentinel://a:1",
            "redis+sentinel://a:1/",
            "redis+sentinel://ada:secret@a/main/x",
            "redis://db?name=",
            "redis://db?name=a:b",
            "redis+unix:///run/r.sock?db\0&pass=secret",
            "redis://:secret@db/0 ",
            // Another host would be shown than is meant.
            "redis://ada:secret@db:6#8@other",
            "redis://ada:p#secret@db",
            "sqlite:x",
        ] {
            let error = RedisUrl::of(url).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
