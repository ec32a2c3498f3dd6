//! Each field of each request at its bound and past it. The fields are those of the document that describes the API, so a new
//! one is tried as well.

use crate::{
    document::{Described, Operation},
    fields::{Field, fields},
    folder,
    serve::AssimilatorConfig,
    world::{Answer, World, ask, send},
};
use serde_json::{Value, json};
use sojourn_core::JournalPosition;
use sojourn_protocol::{
    api::{EnrolAnswer, Health},
    bounds::{MAX_GIVEN_NAME_CHARS, MAX_MESSAGE_CHARS, MAX_TRAIN_MICROS},
    error::ApiError,
    manifest::MAX_EVALUATION_SHARDS,
    time::Millis,
};
use sojourn_server::{
    ServeConfig,
    journal::{Journal, JournalError, MemoryJournal},
};
use std::{collections::BTreeMap, path::Path, sync::Arc};

/// Bytes that a request may add to the journal, and to the state that a start recovers, for each of its own.
const MAX_FACTOR: usize = 2;
/// And beside that: events with their ids, and what is kept of hosts and leases.
const MAX_ADDED: usize = 8 << 10;
/// Bytes that the journal keeps of a report, whatever its host says in it.
const MAX_KEPT_OF_REPORT: usize = 24 << 10;
/// Requests that are held open until there is an answer have no other effect, whatever the time is.
const HELD_OPEN: [&str; 2] = ["takeAssimilation wait", "leadAssimilation wait"];

fn config(data: &Path, journal: &MemoryJournal) -> ServeConfig {
    // Nothing is assimilated: each event is a request's own.
    let mut config = World::config(data, AssimilatorConfig::default());
    config.assimilators = None;
    config.shell.core.longest_wait = Millis(0);
    let journal = journal.clone();
    config.journal = Some(Arc::new(move || -> Result<Box<dyn Journal>, JournalError> {
        Ok(Box::new(journal.clone()))
    }));
    config
}

/// The things that a request is tried with: each sort of token, and a lease and a job that there are.
struct Tried {
    world: World,
    tokens: BTreeMap<&'static str, String>,
    journal: MemoryJournal,
    read: JournalPosition,
}

impl Tried {
    async fn start(data: &Path) -> Self {
        let journal = MemoryJournal::default();
        let world = World::with(config(data, &journal)).await;
        let tokens = BTreeMap::from([
            ("enrolment", world.enrol_token()),
            ("host", world.enrol("one").await.token),
            ("admin", world.admin.clone()),
            ("assimilator", world.assimilator_token(data)),
        ]);
        world.submit().await;
        Self { world, tokens, journal, read: JournalPosition(0) }
    }

    async fn send(&self, operation: &Operation<'_>, body: &str) -> Answer {
        let token = operation.schemes().first().map_or("", |scheme| &self.tokens[scheme]);
        // The examples are about lease 12.
        let mut path = operation.path.replace("{lease}", "12");
        while let (Some(start), Some(end)) = (path.find('{'), path.find('}')) {
            path.replace_range(start..=end, "1");
        }
        let method = operation.method.to_uppercase();
        send(self.world.address(), &method, &path, token, &[], body.as_bytes()).await
    }

    /// Bytes of events since the last call.
    fn journalled(&mut self) -> usize {
        let records = self.journal.read(self.read, usize::MAX).unwrap();
        self.read = records.last().map_or(self.read, |record| record.position);
        records.iter().map(|record| serde_json::to_vec(record).unwrap().len()).sum()
    }

    /// A lease to report: what is reported of others goes nowhere.
    async fn lease(&self) -> Option<Value> {
        let mut answer = self.world.work(&self.tokens["host"], &ask(1)).await;
        answer.leases.pop().map(|lease| json!(lease.id))
    }
}

impl Tried {
    /// Stops the server and starts it from its journal. The state that it reads has at most so many bytes.
    async fn recover(mut self, most: usize) {
        let position = self.journal.tail();
        self.world.server.stop().await;
        let snapshot = self.journal.load_snapshot().unwrap().unwrap();
        let bytes = snapshot.bytes.len();
        assert!(bytes <= most, "the state has {bytes} bytes, more than {most}");
        let folder = folder();
        let world = World::with(config(folder.path(), &self.journal)).await;
        let health: Health = world.get("/v1/health", "").await.json();
        assert_eq!(health.journal_position, position.0);
        world.server.stop().await;
    }
}

/// The body of the example, as a request that has an effect now.
async fn body_of(operation: &Operation<'_>, tried: &Tried) -> Option<Value> {
    let content = operation.about.pointer("/requestBody/content/application~1json")?;
    let mut body = content["example"].clone();
    if body.get("wait").is_some() {
        body["wait"] = json!(0);
    }
    if operation.id() == "report"
        && let Some(lease) = tried.lease().await
    {
        body["lease"] = lease;
    }
    Some(body)
}

fn message_of(answer: &Answer) -> String {
    serde_json::from_slice::<ApiError>(&answer.body)
        .map_or_else(|_| String::new(), |error| error.message)
}

fn refuses_for_a_bound(message: &str) -> bool {
    [" is taken", " are taken", "isn't one line of"].iter().any(|words| message.contains(words))
}

#[tokio::test]
async fn each_text_list_and_number_of_a_request_has_a_bound() {
    let document = sojourn_server::openapi().unwrap();
    let described = Described::of(document.clone());
    let mut seen = 0;
    for operation in described.operations() {
        let Some(content) = operation.about.pointer("/requestBody/content/application~1json")
        else {
            continue;
        };
        for field in fields(&described, &content["schema"], &content["example"]) {
            let Field { path, schema, .. } = &field;
            let bounded = |word: &str| schema.get(word).is_some();
            let is_bounded = match field.kind() {
                "string" => bounded("maxLength") || bounded("pattern"),
                "array" => bounded("maxItems"),
                // The width of its type is its bound.
                _ => bounded("format"),
            };
            assert!(is_bounded, "{} `{path}` has no bound: {schema}", operation.id());
            seen += 1;
        }
    }
    assert!(seen > 200, "{seen}");
}

#[tokio::test]
async fn the_largest_request_of_each_field_is_answered_and_one_past_its_bound_refused_in_words() {
    let folder = folder();
    let mut tried = Tried::start(folder.path()).await;
    let described = Described::fetch(tried.world.address()).await;
    tried.journalled();
    let (mut refused, mut kept, mut faults) = (0, MAX_ADDED, Vec::new());
    for operation in described.operations() {
        let Some(example) = body_of(&operation, &tried).await else { continue };
        let schema = &operation.about["requestBody"]["content"]["application/json"]["schema"];
        for field in fields(&described, schema, &example) {
            let name = format!("{} {}", operation.id(), field.path);
            let mut fault = |holds: bool, what: String| faults.extend((!holds).then_some(what));
            if let Some(body) = field.at_bound().filter(|_| !HELD_OPEN.contains(&name.as_str())) {
                let answer = tried.send(&operation, &body).await;
                let (status, said) = (answer.status, message_of(&answer));
                fault(status < 500, format!("{name} at its bound: {status} {said}"));
                fault(!refuses_for_a_bound(&said), format!("{name} at its bound: {said}"));
                described.check_answer(&operation, &answer);
                let (added, most) = (tried.journalled(), MAX_FACTOR * body.len() + MAX_ADDED);
                fault(added <= most, format!("{name}: {} bytes, {added} journalled", body.len()));
                kept += most;
            }
            for body in field.past_bound() {
                let answer = tried.send(&operation, &body).await;
                let (status, said) = (answer.status, message_of(&answer));
                let in_words =
                    [400, 413].contains(&status) && !said.is_empty() && said.len() < 1_000;
                fault(in_words, format!("{name} past its bound: {status} {said}"));
                // A number that is none of its type, and a list of two that has more, are refused before that.
                let unread = [
                    "number out of range",
                    "trailing characters",
                    "invalid length",
                    "expected u",
                    "expected i",
                    "expected a whole number from 0",
                ];
                let unread = status == 413 || unread.iter().any(|words| said.contains(words));
                let is_bound =
                    !field.has_bound_of_its_own() || unread || refuses_for_a_bound(&said);
                fault(is_bound, format!("{name} past its bound: {said}"));
                let added = tried.journalled();
                fault(added == 0, format!("{name} past its bound: {added} bytes journalled"));
                refused += 1;
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(refused > 200, "{refused}");
    tried.recover(kept).await;
}

/// Long texts of hosts, under leases that there are, are cut before they are journalled.
#[tokio::test]
async fn the_longest_words_of_hosts_are_kept_in_part_and_a_start_reads_little_more_than_was_sent() {
    let folder = folder();
    let mut tried = Tried::start(folder.path()).await;
    let enrolment = tried.tokens["enrolment"].clone();
    let (long, sums) =
        ("\u{1b}[31m".repeat(MAX_MESSAGE_CHARS / 5), json!({ "rows": 10, "loss": 1e300 }));
    let mut sent = tried.journalled();
    let failed = json!({ "failed": { "kind": "trainer", "message": &long } });
    let shards = vec![&sums; MAX_EVALUATION_SHARDS as usize];
    let evaluated = json!({ "version": 0, "shards": shards, "train_micros": MAX_TRAIN_MICROS });
    let outcomes = [failed, json!({ "evaluated": evaluated })];
    for round in 0..20 {
        let submitted =
            tried.world.submit_with(&format!("order = \"hop\"\npriority = {round}")).await;
        assert_eq!(submitted.status, 200);
        let name = long.get(..MAX_GIVEN_NAME_CHARS).unwrap();
        let enrolled = tried.world.post("/v1/enrol", &enrolment, &json!({ "name": name })).await;
        let host = enrolled.json::<EnrolAnswer>().token;
        // A hop may have to be planned first, and no request is held open here.
        let mut answer = tried.world.work(&host, &ask(2)).await;
        while answer.leases.is_empty() {
            answer = tried.world.work(&host, &ask(2)).await;
        }
        let (first, second) = (answer.leases.pop().unwrap().id, answer.leases.pop());
        let added = tried.journalled();
        assert!(added <= 2 * MAX_ADDED, "{added} journalled of a job, a host and its leases");
        sent += added;

        let report = json!({ "lease": first, "outcome": &outcomes[round % 2] });
        let answer = tried.world.post("/v1/results", &host, &report).await;
        assert_eq!(answer.status, 200, "{}", message_of(&answer));
        let (bytes, added) = (report.to_string().len(), tried.journalled());
        assert!(added <= MAX_KEPT_OF_REPORT, "{bytes} bytes sent, {added} journalled");
        sent += added;

        let second = second.map_or(first, |lease| lease.id);
        let release = json!({ "leases": [second], "reason": &long });
        assert_eq!(tried.world.post("/v1/release", &host, &release).await.status, 200);
        let added = tried.journalled();
        assert!(added <= MAX_ADDED, "{added} journalled of a release");
        sent += added;
    }
    tried.recover(sent).await;
}
