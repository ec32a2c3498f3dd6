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

/// The outcome of a request.
pub(crate) enum Answer {
    /// An answer with the action's elements.
    Done(String),
    /// An error with its code.
    Error(u16, &'static str),
    /// The connection breaks after the request was sent.
    Lost,
}

type Script = Box<dyn FnMut(&Form) -> Answer + Send>;

/// When requests that change something don't pass any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// After so many have passed, none is sent.
    Before(usize),
    /// After so many have passed, one more is carried out and its answer is lost; then none is sent.
    After(usize),
}

/// Requests and answers.
#[derive(Clone)]
pub(crate) struct Wire {
    seen: Arc<Mutex<Vec<Form>>>,
    script: Option<Arc<Mutex<Script>>>,
    cut: Option<Cut>,
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
        Self { seen: Arc::default(), script: None, cut: None, http: Builder::new().build_http() }
    }

    /// Requests go on to where they should, until they are cut off.
    pub(crate) fn cut(cut: Cut) -> Self {
        Self { cut: Some(cut), ..Self::open() }
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

    /// The requests that change something, by their actions.
    pub(crate) fn changes(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|form| is_change(form)).map(|form| form["Action"].clone()).collect()
    }

    /// The actions that were called.
    pub(crate) fn actions(&self) -> BTreeSet<String> {
        self.seen.lock().unwrap().iter().map(|form| form["Action"].clone()).collect()
    }
}

fn is_change(form: &Form) -> bool {
    !["Describe", "Get", "List"].iter().any(|begins| form["Action"].starts_with(begins))
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
        if let Some(cut) = self.wire.cut.filter(|_| is_change(&form)) {
            let changes = self.wire.changes().len();
            match cut {
                Cut::Before(passed) | Cut::After(passed) if changes <= passed => {}
                Cut::After(passed) if changes == passed + 1 => {
                    let sent = self.on.call(request);
                    return HttpConnectorFuture::new(async {
                        sent.await?;
                        Ok(refused("UnauthorizedOperation", 403))
                    });
                }
                _ => return HttpConnectorFuture::ready(Ok(refused("UnauthorizedOperation", 403))),
            }
        }
        let Some(script) = &self.wire.script else {
            return self.on.call(request);
        };
        let action = &form["Action"];
        let body = match (script.lock().unwrap())(&form) {
            Answer::Done(elements) => format!("<{action}Response>{elements}</{action}Response>"),
            Answer::Error(status, code) => {
                return HttpConnectorFuture::ready(Ok(refused(code, status)));
            }
            Answer::Lost => {
                return HttpConnectorFuture::ready(Err(ConnectorError::io("it broke".into())));
            }
        };
        HttpConnectorFuture::ready(Ok(answer(200, body)))
    }
}

fn refused(code: &str, status: u16) -> HttpResponse {
    let error = format!("<Error><Code>{code}</Code><Message>no</Message></Error>");
    answer(status, format!("<Response><Errors>{error}</Errors></Response>"))
}

fn answer(status: u16, body: String) -> HttpResponse {
    HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body))
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
