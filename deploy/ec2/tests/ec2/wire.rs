//! The SDK's HTTP client of the tests: it writes down all requests, and passes them on or answers from a script.

use aws_sdk_ec2::config::{
    RuntimeComponents, SharedHttpClient,
    http::{HttpRequest, HttpResponse},
};
use aws_smithy_http_client::Builder;
use aws_smithy_runtime_api::client::{
    http::{
        HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
    },
    result::ConnectorError,
};
use aws_smithy_types::body::SdkBody;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex},
};

/// A request as EC2 gets it: the fields of a form.
pub(crate) type Form = BTreeMap<String, String>;

/// What comes of a request.
pub(crate) enum Answer {
    /// An answer with the action's elements.
    Done(String),
    /// An error with its code.
    Error(u16, &'static str),
    /// The connection breaks after the request was sent.
    Lost,
}

type Script = Box<dyn FnMut(&Form) -> Answer + Send>;

/// Requests and answers.
#[derive(Clone)]
pub(crate) struct Wire {
    seen: Arc<Mutex<Vec<Form>>>,
    script: Option<Arc<Mutex<Script>>>,
    http: SharedHttpClient,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

impl Wire {
    /// Requests go on to where they should.
    pub(crate) fn open() -> Self {
        Self { seen: Arc::default(), script: None, http: Builder::new().build_http() }
    }

    /// Requests are answered by a script.
    pub(crate) fn scripted(script: impl FnMut(&Form) -> Answer + Send + 'static) -> Self {
        let script: Script = Box::new(script);
        Self { script: Some(Arc::new(Mutex::new(script))), ..Self::open() }
    }

    pub(crate) fn client(&self) -> SharedHttpClient {
        SharedHttpClient::new(self.clone())
    }

    /// All requests of an action.
    pub(crate) fn of(&self, action: &str) -> Vec<Form> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|form| form["Action"] == action).cloned().collect()
    }

    /// The actions that were called.
    pub(crate) fn actions(&self) -> BTreeSet<String> {
        self.seen.lock().unwrap().iter().map(|form| form["Action"].clone()).collect()
    }
}

impl HttpClient for Wire {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let on = self.http.http_connector(settings, components);
        SharedHttpConnector::new(Connector { wire: self.clone(), on })
    }
}

#[derive(Debug)]
struct Connector {
    wire: Wire,
    on: SharedHttpConnector,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let form = form(request.body().bytes().expect("a body in memory"));
        self.wire.seen.lock().unwrap().push(form.clone());
        let Some(script) = &self.wire.script else {
            return self.on.call(request);
        };
        let action = &form["Action"];
        let (status, body) = match (script.lock().unwrap())(&form) {
            Answer::Done(elements) => {
                (200, format!("<{action}Response>{elements}</{action}Response>"))
            }
            Answer::Error(status, code) => (
                status,
                format!(
                    "<Response><Errors><Error><Code>{code}</Code><Message>no</Message></Error></Errors></Response>"
                ),
            ),
            Answer::Lost => {
                return HttpConnectorFuture::ready(Err(ConnectorError::io("it broke".into())));
            }
        };
        HttpConnectorFuture::ready(Ok(HttpResponse::new(
            status.try_into().unwrap(),
            SdkBody::from(body),
        )))
    }
}

fn form(body: &[u8]) -> Form {
    let text = std::str::from_utf8(body).unwrap();
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (decoded(key), decoded(value))).collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = text.bytes();
    let mut out = vec![];
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(out).unwrap()
}
