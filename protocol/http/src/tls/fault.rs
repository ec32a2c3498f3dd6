//! Why a connection isn't secure, or isn't one that both sides understand.

use rustls::CertificateError;
use std::{error::Error, io, time::Duration};

/// A fault of a server's certificate or its TLS. The messages say what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum TlsFault {
    /// Nobody who is trusted has signed the certificate.
    #[error(
        "its certificate isn't signed by anybody who is trusted here; where its authority is your \
         own, name the authority's certificate with `--ca` or SOJOURN_CA"
    )]
    UnknownAuthority,
    #[error(
        "its certificate is not for `{asked}` but for {names}; use an address with a name that it has"
    )]
    WrongName { asked: String, names: String },
    #[error("its certificate expired {ago} ago; renew it on the server")]
    Expired { ago: String },
    #[error("its certificate isn't valid yet; compare this machine's clock with the server's")]
    NotYetValid,
    #[error("its certificate is refused ({0})")]
    Certificate(String),
    #[error("the two can't agree on TLS ({0})")]
    Handshake(String),
    #[error("it doesn't speak TLS there; its address may begin with `http://`")]
    Without,
    #[error("it doesn't speak HTTP there; if it speaks TLS, its address begins with `https://`")]
    NoHttp,
}

impl TlsFault {
    /// The fault behind an HTTP client's error, if it is one of these.
    #[must_use]
    pub fn of(error: &reqwest::Error) -> Option<Self> {
        let mut next: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(error) = next {
            if let Some(error) = tls_error(error) {
                return Some(Self::from_rustls(error));
            }
            // The parser's error has no public type; a test holds its words.
            if error.to_string() == "invalid HTTP version parsed" {
                return Some(Self::NoHttp);
            }
            next = error.source();
        }
        None
    }

    /// Does it end only when the caller says something else: another address, other authorities?
    #[must_use]
    pub const fn is_the_callers(&self) -> bool {
        match self {
            Self::UnknownAuthority | Self::WrongName { .. } | Self::Without | Self::NoHttp => true,
            Self::Expired { .. }
            | Self::NotYetValid
            | Self::Certificate(_)
            | Self::Handshake(_) => false,
        }
    }

    fn from_rustls(error: &rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(error) => Self::from_certificate(error),
            rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => {
                Self::Without
            }
            other => Self::Handshake(other.to_string()),
        }
    }

    fn from_certificate(error: &CertificateError) -> Self {
        match error {
            // The second: another authority of the same name.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                Self::UnknownAuthority
            }
            CertificateError::Other(other)
                if matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity)) =>
            {
                // It signed itself, and isn't among those that are trusted.
                Self::UnknownAuthority
            }
            CertificateError::NotValidForNameContext { expected, presented } => Self::WrongName {
                asked: expected.to_str().into_owned(),
                names: if presented.is_empty() { "no name".into() } else { named(presented) },
            },
            CertificateError::ExpiredContext { time, not_after } => {
                let seconds = time.as_secs().saturating_sub(not_after.as_secs());
                Self::Expired { ago: span(Duration::from_secs(seconds)) }
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Self::NotYetValid
            }
            other => Self::Certificate(other.to_string()),
        }
    }
}

/// The TLS library's error, if this is one or an I/O error around one.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    error.downcast_ref().or_else(|| {
        // An I/O error's `source` steps over what it wraps.
        tls_error(error.downcast_ref::<io::Error>()?.get_ref()?)
    })
}

/// At most this many names are shown.
const NAMES: usize = 5;

fn named(names: &[String]) -> String {
    let shown: Vec<String> =
        names.iter().take(NAMES).map(|name| format!("`{}`", bare(name))).collect();
    let more = if names.len() > NAMES { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// `a.org` of `DnsName("a.org")`, which is how the library gives it.
fn bare(name: &str) -> &str {
    let inside = name.split_once('(').and_then(|(_, inside)| inside.strip_suffix(')'));
    inside.unwrap_or(name).trim_matches('"')
}

fn span(length: Duration) -> String {
    let minutes = length.as_secs() / 60;
    match minutes {
        0..120 => format!("{minutes} min"),
        120..2880 => format!("{} h", minutes / 60),
        _ => format!("{} days", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::{ServerName, UnixTime};

    #[test]
    fn every_fault_says_what_to_do() {
        let unix = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let says = |error: CertificateError| {
            TlsFault::from_rustls(&rustls::Error::InvalidCertificate(error)).to_string()
        };
        assert!(says(CertificateError::UnknownIssuer).contains("`--ca` or SOJOURN_CA"));
        let wrong = |presented: &[&str]| {
            says(CertificateError::NotValidForNameContext {
                expected: ServerName::try_from("a.org").unwrap(),
                presented: presented.iter().map(ToString::to_string).collect(),
            })
        };
        assert!(
            wrong(&["DnsName(\"b.org\")", "IpAddress(::1)"])
                .contains("not for `a.org` but for `b.org`, `::1`;")
        );
        assert!(wrong(&[]).contains("not for `a.org` but for no name;"));
        for (ago, shown) in [(59, "0 min"), (7_199, "119 min"), (7_200, "2 h"), (172_800, "2 days")]
        {
            let context = CertificateError::ExpiredContext {
                time: unix(1_000_000 + ago),
                not_after: unix(1_000_000),
            };
            assert!(says(context).contains(&format!("expired {shown} ago")));
        }
        let early = CertificateError::NotValidYetContext { time: unix(1), not_before: unix(2) };
        assert!(says(early).contains("clock"));
        assert!(says(CertificateError::Revoked).starts_with("its certificate is refused ("));
    }
}
