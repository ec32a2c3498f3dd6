//! A client that knows nothing of the API but the document that the server gives: where an operation is,
//! what it takes and what it answers. Everything sent and got is checked against it.

use crate::world::{Answer, send};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// The document, and the server that gave it.
pub(crate) struct Described {
    pub(crate) document: Value,
    address: SocketAddr,
}

/// An operation, found by its id.
pub(crate) struct Operation<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) about: &'a Value,
}

/// The body of a request.
pub(crate) enum Body<'a> {
    None,
    Json(Value),
    Bytes(&'a [u8]),
}

impl Described {
    /// The document without a server.
    pub(crate) fn of(document: Value) -> Self {
        Self { document, address: ([127, 0, 0, 1], 0).into() }
    }

    pub(crate) async fn fetch(address: SocketAddr) -> Self {
        let answer = send(address, "GET", "/v1/openapi.json", "", &[], b"").await;
        Self { document: answer.json(), address }
    }

    pub(crate) fn operations(&self) -> Vec<Operation<'_>> {
        let paths = self.document["paths"].as_object().unwrap();
        let methods = paths.iter().flat_map(|(path, item)| {
            let item = item.as_object().unwrap().iter();
            item.map(move |(method, about)| Operation { method, path, about })
        });
        methods.collect()
    }

    pub(crate) fn operation(&self, id: &str) -> Operation<'_> {
        let found = self.operations().into_iter().find(|operation| operation.id() == id);
        found.unwrap_or_else(|| panic!("the document has no operation `{id}`"))
    }

    /// The value that a reference names; anything else as it is.
    pub(crate) fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.document.pointer(&reference[1..]).unwrap(),
            None => value,
        }
    }

    pub(crate) fn parameters<'a>(&'a self, operation: &Operation<'a>) -> Vec<&'a Value> {
        let parameters = operation.about["parameters"].as_array().unwrap();
        parameters.iter().map(|parameter| self.resolve(parameter)).collect()
    }

    /// A validator of values against a schema of the document.
    pub(crate) fn validator(&self, schema: &Value) -> jsonschema::Validator {
        let mut whole = schema.clone();
        whole["components"] = self.document["components"].clone();
        jsonschema::draft202012::new(&whole).unwrap()
    }

    /// Fails where a value isn't what a schema of the document says.
    pub(crate) fn check(&self, schema: &Value, value: &Value, what: &str) {
        let validator = self.validator(schema);
        let errors: Vec<String> = validator
            .iter_errors(value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{what}: {value}\n{}", errors.join("\n"));
    }

    /// Calls an operation and gives its answer, which is one that the document describes.
    pub(crate) async fn call(
        &self,
        id: &str,
        token: &str,
        given: &[(&str, Value)],
        body: Body<'_>,
    ) -> Answer {
        let operation = self.operation(id);
        let parameters = self.parameters(&operation);
        for (name, _) in given {
            let known = parameters.iter().any(|parameter| parameter["name"] == *name);
            assert!(known, "{id} has no parameter `{name}`");
        }
        let mut path = operation.path.to_owned();
        let (mut query, mut headers) = (Vec::new(), Vec::new());
        for parameter in parameters {
            let name = parameter["name"].as_str().unwrap();
            let Some((_, value)) = given.iter().find(|(given, _)| *given == name) else {
                assert_ne!(parameter["required"], true, "{id} needs `{name}`");
                continue;
            };
            self.check(&parameter["schema"], value, &format!("{id}, {name}"));
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            match parameter["in"].as_str().unwrap() {
                "path" => path = path.replace(&format!("{{{name}}}"), &text),
                "query" => query.push(format!("{name}={text}")),
                "header" => headers.push((name, text)),
                other => panic!("{id}: `{name}` is in `{other}`"),
            }
        }
        if !query.is_empty() {
            path = format!("{path}?{}", query.join("&"));
        }
        assert_eq!(operation.schemes().is_empty(), token.is_empty(), "{id}");
        let wanted = &operation.about["requestBody"]["content"];
        let (kind, bytes) = match &body {
            Body::None => ("", Vec::new()),
            Body::Json(value) => {
                self.check(&wanted["application/json"]["schema"], value, id);
                ("application/json", serde_json::to_vec(value).unwrap())
            }
            Body::Bytes(bytes) => ("application/octet-stream", bytes.to_vec()),
        };
        assert_eq!(wanted.get(kind).is_some(), !kind.is_empty(), "{id} takes {wanted}");
        headers.push(("content-type", kind.to_owned()));
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let method = operation.method.to_uppercase();
        let answer = send(self.address, &method, &path, token, &headers, &bytes).await;
        self.check_answer(&operation, &answer);
        answer
    }

    /// The answer of a call that succeeds with JSON.
    pub(crate) async fn json(
        &self,
        id: &str,
        token: &str,
        given: &[(&str, Value)],
        body: Body<'_>,
    ) -> Value {
        self.call(id, token, given, body).await.json()
    }

    /// Fails where an answer isn't one of those that the document has for the operation.
    pub(crate) fn check_answer(&self, operation: &Operation<'_>, answer: &Answer) {
        let id = operation.id();
        let text = String::from_utf8_lossy(&answer.body);
        let described = operation.about["responses"].get(answer.status.to_string());
        let Some(described) = described else {
            panic!("{id}: the status {} isn't described: {text}", answer.status)
        };
        let described = self.resolve(described);
        for (name, header) in described["headers"].as_object().unwrap() {
            let header = self.resolve(header);
            let value = match answer.header(name) {
                Some(value) => value,
                None if header["required"] == false => continue,
                None => panic!("{id}: no header `{name}`"),
            };
            let value = match header["schema"]["type"].as_str() {
                Some("integer") => value.parse().map_or_else(|_| json!(value), |n: u64| json!(n)),
                _ => json!(value),
            };
            self.check(&header["schema"], &value, &format!("{id}, {name}"));
        }
        let kind = answer.header("content-type").unwrap_or_default();
        let content = described["content"].get(&kind);
        let content = content.unwrap_or_else(|| panic!("{id}: `{kind}` isn't described"));
        if kind == "application/json" {
            let value = serde_json::from_slice(&answer.body).unwrap();
            self.check(&content["schema"], &value, id);
        }
    }
}

impl Operation<'_> {
    pub(crate) fn id(&self) -> &str {
        self.about["operationId"].as_str().unwrap()
    }

    /// The sorts of tokens that open it; none where it is open to all.
    pub(crate) fn schemes(&self) -> Vec<&str> {
        let schemes = self.about.get("security").and_then(Value::as_array);
        let schemes = schemes.into_iter().flatten().flat_map(|one| one.as_object().unwrap().keys());
        schemes.map(String::as_str).collect()
    }
}
