//! The document, and how the server does.

use sojourn_protocol::view::{FailureView, TrafficView};

endpoints! {
    DOCUMENT = "document";

    /// This document.
    Openapi: GET "/v1/openapi.json" for Anyone {
        gives 200 "application/json" = "OpenAPI 3.1";
    }

    /// This document as a page for people.
    Docs: GET "/v1/docs" for Anyone {
        gives 200 "text/html; charset=utf-8" = "An HTML page.";
    }
}

endpoints! {
    FAILURES = "failures";

    /// Trainer errors that hosts have reported, counted by host, trial and first line, the last ones first: the last 500 kinds of
    /// them that this server has heard of.
    Failures: GET "/v1/failures" for Users(Read) {
        answers [FailureView] = "The errors.";
    }
}

endpoints! {
    METRICS = "metrics";

    /// The server's metrics.
    Metrics: GET "/metrics" for Users(Read) {
        gives 200 "text/plain" = "Metrics as text: OpenMetrics where `Accept` names `application/openmetrics-text`, else the text of Prometheus.";
    }
}

endpoints! {
    TRAFFIC = "traffic";

    /// Counts of connections, requests, bytes and refusals since this server started.
    Traffic: GET "/v1/traffic" for Users(Read) {
        answers TrafficView = "The counts.";
    }
}
