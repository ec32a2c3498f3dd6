//! The calls of a tracking server's REST API (`/api/2.0/mlflow`).

use super::records::{Named, Point};
use crate::cli::terminal::exit::Failure;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use sojourn_http::transport;
use sojourn_protocol::{error::error_chain, text::plain_line};
use std::{env, time::Duration};

/// Connecting takes no longer, and no answer stands still for longer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The largest answer that is read.
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// The most points, and the most parameters or tags, that one request to log a batch holds.
const MAX_POINTS: usize = 1_000;
const MAX_NAMED: usize = 100;
/// Characters of a refusal that are repeated.
const MAX_WORDS: usize = 500;

/// A tracking server.
pub(super) struct Tracking {
    http: Client,
    base: String,
    credentials: Credentials,
}

/// As MLflow's own clients take them from the environment.
enum Credentials {
    None,
    Token(String),
    Password { user: String, password: Option<String> },
}

/// A run, as far as it matters here.
#[derive(Debug, Deserialize)]
pub(super) struct Run {
    pub(super) info: RunInfo,
    #[serde(default)]
    pub(super) data: RunData,
}

#[derive(Debug, Deserialize)]
pub(super) struct RunInfo {
    pub(super) run_id: String,
    #[serde(default)]
    pub(super) artifact_uri: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RunData {
    pub(super) params: Vec<Named>,
    pub(super) tags: Vec<Named>,
    /// Of each metric the last point.
    pub(super) metrics: Vec<Point>,
}

impl Tracking {
    /// Nothing is sent yet.
    pub(super) fn new(url: &str) -> Result<Self, Failure> {
        let parsed: Option<Url> = url.parse().ok();
        let parsed = parsed.filter(|url| matches!(url.scheme(), "http" | "https"));
        let parsed = parsed.ok_or_else(|| {
            Failure::call(format!(
                "`{url}` is no address of a tracking server; e.g. http://127.0.0.1:5000"
            ))
        })?;
        let http = transport::connect(&parsed, None, |builder| {
            let builder = builder.connect_timeout(TIMEOUT).read_timeout(TIMEOUT);
            builder.redirect(reqwest::redirect::Policy::none())
        });
        let http = http.map_err(|error| Failure::work(error_chain(&error)))?;
        let credentials =
            Credentials::of(|name| env::var(name).ok().filter(|text| !text.is_empty()));
        Ok(Self { http, base: url.trim_end_matches('/').to_owned(), credentials })
    }

    /// The experiment of this name, which is made where it is missing.
    pub(super) async fn experiment(&self, name: &str) -> Result<String, Failure> {
        #[derive(Deserialize)]
        struct Known {
            experiment: Experiment,
        }
        #[derive(Deserialize)]
        struct Made {
            experiment_id: String,
        }
        #[derive(Deserialize)]
        struct Experiment {
            experiment_id: String,
            #[serde(default)]
            lifecycle_stage: String,
        }
        let known: Option<Known> =
            self.get("experiments/get-by-name", &[("experiment_name", name)]).await?;
        match known.map(|known| known.experiment) {
            Some(known) if known.lifecycle_stage == "deleted" => Err(Failure::work(format!(
                "the tracking server has deleted its experiment `{name}`: restore it (`mlflow experiments restore -x {}`)",
                plain_line(&known.experiment_id, MAX_WORDS)
            ))),
            Some(known) => Ok(plain_line(&known.experiment_id, MAX_WORDS)),
            None => {
                let made: Made = self.post("experiments/create", &json!({ "name": name })).await?;
                Ok(plain_line(&made.experiment_id, MAX_WORDS))
            }
        }
    }

    /// The run with this tag.
    pub(super) async fn find_run(
        &self,
        experiment: &str,
        tag: &Named,
    ) -> Result<Option<Run>, Failure> {
        #[derive(Deserialize)]
        struct Found {
            #[serde(default)]
            runs: Vec<Run>,
        }
        let filter = format!("tags.`{}` = '{}'", tag.key, tag.value);
        let request = json!({ "experiment_ids": [experiment], "filter": filter, "max_results": 1 });
        let found: Found = self.post("runs/search", &request).await?;
        Ok(found.runs.into_iter().next())
    }

    pub(super) async fn create_run(
        &self,
        experiment: &str,
        name: &str,
        start: u64,
        tags: &[Named],
    ) -> Result<Run, Failure> {
        #[derive(Deserialize)]
        struct Made {
            run: Run,
        }
        let request = json!({ "experiment_id": experiment, "run_name": name, "start_time": start, "tags": tags });
        Ok(self.post::<Made>("runs/create", &request).await?.run)
    }

    /// The steps for which a run has values of a metric.
    pub(super) async fn steps(&self, run: &str, metric: &str) -> Result<Vec<i64>, Failure> {
        #[derive(Deserialize)]
        struct History {
            #[serde(default)]
            metrics: Vec<Point>,
        }
        let query = [("run_id", run), ("metric_key", metric)];
        let history: Option<History> = self.get("metrics/get-history", &query).await?;
        let points = history.map(|history| history.metrics).unwrap_or_default();
        Ok(points.into_iter().map(|point| point.step).collect())
    }

    /// Adds to a run, in as many requests as it takes.
    pub(super) async fn log(
        &self,
        run: &str,
        points: &[Point],
        params: &[Named],
        tags: &[Named],
    ) -> Result<(), Failure> {
        for part in points.chunks(MAX_POINTS) {
            self.log_batch(json!({ "run_id": run, "metrics": part })).await?;
        }
        for part in params.chunks(MAX_NAMED) {
            self.log_batch(json!({ "run_id": run, "params": part })).await?;
        }
        for part in tags.chunks(MAX_NAMED) {
            self.log_batch(json!({ "run_id": run, "tags": part })).await?;
        }
        Ok(())
    }

    async fn log_batch(&self, request: Value) -> Result<(), Failure> {
        self.post::<Value>("runs/log-batch", &request).await.map(drop)
    }

    pub(super) async fn set_status(
        &self,
        run: &str,
        status: &str,
        ended_at: Option<u64>,
    ) -> Result<(), Failure> {
        // Without an end the server keeps what it has.
        let request = match ended_at {
            Some(ended_at) => json!({ "run_id": run, "status": status, "end_time": ended_at }),
            None => json!({ "run_id": run, "status": status }),
        };
        self.post::<Value>("runs/update", &request).await.map(drop)
    }

    /// Puts an artifact of a run, where the server passes artifacts on. Returns whether it does.
    pub(super) async fn put_artifact(
        &self,
        run: &RunInfo,
        name: &str,
        bytes: Vec<u8>,
    ) -> Result<bool, Failure> {
        let Some(folder) = proxied(&run.artifact_uri) else { return Ok(false) };
        if !stays_below(folder) {
            return Err(Failure::work(format!(
                "the tracking server names a folder of artifacts that may lead elsewhere: `{}`",
                plain_line(folder, MAX_WORDS)
            )));
        }
        let path = format!("mlflow-artifacts/artifacts/{folder}/{name}");
        let request = self.request(Method::PUT, &path, &[])?;
        let request = request.header("content-type", "application/octet-stream").body(bytes);
        answer(self.send(&path, request).await?, &path).await?;
        Ok(true)
    }

    /// None: there is no such thing.
    async fn get<A: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Option<A>, Failure> {
        let path = format!("mlflow/{path}");
        let response = self.send(&path, self.request(Method::GET, &path, query)?).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        read(&answer(response, &path).await?, &path).map(Some)
    }

    async fn post<A: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<A, Failure> {
        let path = format!("mlflow/{path}");
        let request = self.request(Method::POST, &path, &[])?.json(body);
        let response = self.send(&path, request).await?;
        read(&answer(response, &path).await?, &path)
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<RequestBuilder, Failure> {
        let url = format!("{}/api/2.0/{path}", self.base);
        let mut url: Url =
            url.parse().map_err(|_| Failure::call(format!("`{}` is no address", self.base)))?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.request(method, url);
        Ok(match &self.credentials {
            Credentials::None => request,
            Credentials::Token(token) => request.bearer_auth(token),
            Credentials::Password { user, password } => request.basic_auth(user, password.as_ref()),
        })
    }

    async fn send(&self, path: &str, request: RequestBuilder) -> Result<Response, Failure> {
        let unreachable = |error: reqwest::Error| {
            let why = error_chain(&error.without_url());
            Failure::server(format!(
                "the tracking server {} can't be asked (`{path}`): {why}",
                self.base
            ))
        };
        request.send().await.map_err(unreachable)
    }
}

impl Credentials {
    fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        match (variable("MLFLOW_TRACKING_TOKEN"), variable("MLFLOW_TRACKING_USERNAME")) {
            (_, Some(user)) => {
                Self::Password { user, password: variable("MLFLOW_TRACKING_PASSWORD") }
            }
            (Some(token), None) => Self::Token(token),
            (None, None) => Self::None,
        }
    }
}

/// The path of a run's artifacts, where the tracking server passes them on.
fn proxied(uri: &str) -> Option<&str> {
    let path = uri.strip_prefix("mlflow-artifacts:")?;
    let path = match path.strip_prefix("//") {
        Some(rest) => rest.split_once('/')?.1,
        None => path,
    };
    Some(path.trim_matches('/')).filter(|path| !path.is_empty())
}

/// Does a URL with this path stay below the artifacts of the tracking server?
fn stays_below(folder: &str) -> bool {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    folder.split('/').all(is_plain)
        && !folder.contains(|c: char| matches!(c, '\\' | '%' | '?' | '#') || c.is_control())
}

/// The body of an answer that says that it was done.
async fn answer(mut response: Response, path: &str) -> Result<Vec<u8>, Failure> {
    let status = response.status();
    let mut body = Vec::new();
    let broken = |error: reqwest::Error| {
        Failure::server(format!(
            "the tracking server broke off (`{path}`): {}",
            error_chain(&error.without_url())
        ))
    };
    while let Some(part) = response.chunk().await.map_err(broken)? {
        if body.len() + part.len() > MAX_ANSWER_BYTES {
            return Err(Failure::work(format!(
                "the tracking server's answer to `{path}` is too long"
            )));
        }
        body.extend_from_slice(&part);
    }
    if status.is_success() {
        return Ok(body);
    }
    let said: Option<Value> = serde_json::from_slice(&body).ok();
    let said = said
        .as_ref()
        .and_then(|said| said.get("message")?.as_str())
        .unwrap_or("no reason was given");
    let said = plain_line(said, MAX_WORDS);
    Err(Failure::work(format!(
        "the tracking server refused `{path}` with {}: {said}",
        status.as_u16()
    )))
}

fn read<A: DeserializeOwned>(body: &[u8], path: &str) -> Result<A, Failure> {
    serde_json::from_slice(body).map_err(|error| {
        let error = plain_line(&error.to_string(), MAX_WORDS);
        Failure::work(format!(
            "the tracking server's answer to `{path}` can't be understood: {error}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifacts_go_through_the_server_where_it_passes_them_on() {
        assert_eq!(proxied("mlflow-artifacts:/1/abc/artifacts"), Some("1/abc/artifacts"));
        assert_eq!(
            proxied("mlflow-artifacts://host:5000/1/abc/artifacts"),
            Some("1/abc/artifacts")
        );
        for other in [
            "s3://bucket/1/abc",
            "/srv/mlruns/1/abc",
            "mlflow-artifacts:/",
            "mlflow-artifacts://host",
        ] {
            assert_eq!(proxied(other), None, "{other}");
        }
    }

    #[test]
    fn a_folder_of_artifacts_that_leads_elsewhere_is_refused() {
        assert!(stays_below("1/abc/artifacts"));
        for away in
            ["1/../../x", "..", "1//x", "./x", "1/%2e%2e/x", "1\\..\\x", "1?x", "1#x", "1/\tx"]
        {
            assert!(!stays_below(away), "{away}");
        }
    }

    #[test]
    fn a_user_goes_before_a_token() {
        let of = |known: &[&str]| {
            Credentials::of(|name| known.contains(&name).then(|| name.to_lowercase()))
        };
        assert!(matches!(of(&[]), Credentials::None));
        assert!(
            matches!(of(&["MLFLOW_TRACKING_TOKEN"]), Credentials::Token(token) if token == "mlflow_tracking_token")
        );
        let both = of(&["MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME"]);
        assert!(matches!(both, Credentials::Password { password: None, .. }));
    }
}
