//! How long requests take, by the pattern of their route, their method and the class of their status. A request's own address is
//! never a label: anybody can invent any number of them.

use parking_lot::RwLock;
use prometheus_client::metrics::histogram::Histogram;
use sojourn_programs::metrics::MetricWriter;
use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

/// The upper ends of the buckets, in seconds. Asks for work are held open for up to a minute.
const BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];
/// The route of requests for addresses that there aren't.
const NO_ROUTE: &str = "none";
/// The methods that routes take; all others are `other`.
const METHODS: [&str; 3] = ["GET", "POST", "PUT"];

/// The labels under which a request is counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    route: String,
    method: &'static str,
    status: &'static str,
}

/// The times since the server started; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestTimes {
    histograms: Arc<RwLock<BTreeMap<Key, Histogram>>>,
}

impl RequestTimes {
    /// Counts a request whose answer began after this time. `route`: the pattern that its address matches, if any.
    pub(crate) fn observe(&self, route: Option<String>, method: &str, status: u16, took: Duration) {
        let route = route.unwrap_or_else(|| NO_ROUTE.to_owned());
        let method = METHODS.into_iter().find(|known| *known == method).unwrap_or("other");
        let key = Key { route, method, status: class(status) };
        let known = self.histograms.read().get(&key).cloned();
        let histogram = known.unwrap_or_else(|| {
            let mut histograms = self.histograms.write();
            histograms.entry(key).or_insert_with(|| Histogram::new(BUCKETS)).clone()
        });
        histogram.observe(took.as_secs_f64());
    }

    pub(super) fn write(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let histograms = self.histograms.read();
        let samples = histograms.iter().map(|(Key { route, method, status }, histogram)| {
            let labels = [("route", route.as_str()), ("method", method), ("status", status)];
            (labels, histogram.clone())
        });
        writer.histograms(
            "http_request_duration_seconds",
            "Time from a request's head to its answer's, since the server's start. Asks for work (/v1/work) are held open.",
            samples,
        )
    }
}

const fn class(status: u16) -> &'static str {
    match status {
        ..200 => "1xx",
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        500.. => "5xx",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_invented_addresses_and_methods_make_no_samples_of_their_own() {
        let times = RequestTimes::default();
        for (route, method, status) in [
            (Some("/v1/jobs/{job}"), "GET", 200),
            (Some("/v1/jobs/{job}"), "GET", 204),
            (Some("/v1/jobs/{job}"), "GET", 404),
            (None, "BREW", 404),
            (None, "STEW", 405),
        ] {
            let took = Duration::from_millis(3);
            times.observe(route.map(str::to_owned), method, status, took);
        }
        let histograms = times.histograms.read();
        let keys = histograms.keys().map(|key| (key.route.as_str(), key.method, key.status));
        assert_eq!(
            keys.collect::<Vec<_>>(),
            [
                ("/v1/jobs/{job}", "GET", "2xx"),
                ("/v1/jobs/{job}", "GET", "4xx"),
                ("none", "other", "4xx"),
            ]
        );
    }
}
