//! Where the server may fetch data for jobs of the page: only where its operator says so. It may reach what users can't.

use std::str::FromStr;

/// The beginning of URLs that the server may fetch: a scheme, a host, and a path that ends with `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataUrl(String);

const SCHEMES: [&str; 3] = ["http", "https", "s3"];
const WANTED: &str = "the beginning of URLs is wanted, with its host and a `/` at its end: `https://data.example.org/` or `s3://bucket/sets/`";

impl FromStr for DataUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (scheme, rest) = text.split_once("://").ok_or(WANTED)?;
        let (host, _) = rest.split_once('/').ok_or(WANTED)?;
        let is_good = SCHEMES.contains(&scheme)
            && !host.is_empty()
            && !host.contains('@')
            && text.ends_with('/')
            && is_plain(text);
        is_good.then(|| Self(text.to_owned())).ok_or(WANTED)
    }
}

impl DataUrl {
    /// Does the URL begin so, and stay there when it is read?
    pub(crate) fn admits(&self, url: &str) -> bool {
        url.starts_with(&self.0) && is_plain(url)
    }
}

/// Has it nothing that a reader of URLs takes for a way up, or leaves out?
fn is_plain(url: &str) -> bool {
    let lower = url.to_ascii_lowercase();
    !lower.contains("..")
        && !lower.contains("%2e")
        && !url.contains(|c: char| c == '\\' || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_has_a_host_and_ends_with_a_slash() {
        for good in ["https://data.example.org/", "http://127.0.0.1:80/a/", "s3://bucket/sets/"] {
            assert!(good.parse::<DataUrl>().is_ok(), "{good}");
        }
        for wrong in [
            "",
            "https://",
            "https:///",
            "https://h",
            "https://h/a",
            "file:///etc/",
            "ftp://h/",
            "https://me@h/",
            "h/",
            "https://h/../",
        ] {
            assert!(wrong.parse::<DataUrl>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_url_leads_elsewhere() {
        let of: DataUrl = "https://data.example.org/sets/".parse().unwrap();
        assert!(of.admits("https://data.example.org/sets/a/t.csv?version=2"));
        for wrong in [
            "https://data.example.org/t.csv",
            "https://data.example.org/sets",
            "http://data.example.org/sets/t.csv",
            "https://data.example.org.evil/sets/t.csv",
            "https://data.example.org@evil/sets/t.csv",
            "https://data.example.org/sets/../t.csv",
            "https://data.example.org/sets/%2E%2e/t.csv",
            "https://data.example.org/sets/.\t./t.csv",
            "https://data.example.org/sets/a\\..\\t.csv",
            "https://169.254.169.254/latest/meta-data/",
        ] {
            assert!(!of.admits(wrong), "{wrong}");
        }
    }
}
