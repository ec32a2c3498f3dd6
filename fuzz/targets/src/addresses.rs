//! Short texts: addresses of servers and journals, headers, digests, ids and lengths of time.

use crate::expect::{is_said, shows_itself};
use sojourn_http::{
    Servers,
    byte_range::{Wanted, content_range},
};
use sojourn_protocol::{
    digest::Digest,
    ids::{JobId, LeaseId},
    names::{OwnerName, TokenLabel},
    time::Millis,
    trace::TraceContext,
};
use sojourn_server::journal::{Durability, RedisUrl};

/// Sizes of blobs of which ranges are asked for.
const SIZES: [u64; 4] = [0, 1, 100, u64::MAX];

pub(crate) fn addresses(input: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(input) else { return false };
    let mut taken = content_range(text).is_some();
    for bytes in SIZES {
        if let Wanted::Part(part) = Wanted::read(Some(text), bytes) {
            assert!(part.start < part.end && part.end <= bytes, "{part:?} of {bytes}");
            taken = true;
        }
    }
    taken |= servers(text);
    match RedisUrl::of(text) {
        Ok(url) => {
            let again = RedisUrl::of(&url.to_string());
            assert!(again.is_ok(), "`{text}` is shown as `{url}`, which names no Redis: {again:?}");
            taken = true;
        }
        Err(error) => is_said(&error, input),
    }
    taken |= shows_itself::<Durability>(text);
    taken |= shows_itself::<Digest>(text);
    taken |= shows_itself::<JobId>(text);
    taken |= shows_itself::<LeaseId>(text);
    taken |= shows_itself::<OwnerName>(text);
    taken |= shows_itself::<TokenLabel>(text);
    taken |= shows_itself::<Millis>(text);
    taken |= shows_itself::<TraceContext>(text);
    taken
}

fn servers(text: &str) -> bool {
    let mut taken = false;
    for tls in [false, true] {
        let servers = match Servers::parse(text, tls) {
            Ok(servers) => servers,
            Err(error) => {
                is_said(&error, text.as_bytes());
                continue;
            }
        };
        taken = true;
        for url in servers.urls() {
            assert!(url.path().ends_with('/'), "`{url}` has no folder as its path");
            assert!(matches!(url.scheme(), "http" | "https"), "`{url}` is no address of a server");
            assert!(!tls || url.scheme() == "https", "`{url}` would send a token in the clear");
        }
        let again: Vec<String> = servers.urls().iter().map(ToString::to_string).collect();
        // A comma of a path divides addresses.
        if again.iter().all(|url| !url.contains(',')) {
            let again =
                Servers::parse(&again.join(","), tls).map(|again| again.urls() == servers.urls());
            assert_eq!(again, Ok(true), "`{text}` isn't read again as it is shown");
        }
    }
    taken
}
