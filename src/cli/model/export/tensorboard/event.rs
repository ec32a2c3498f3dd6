//! Events and summaries, as TensorBoard has them, with the fields that are written here. The step is written at zero too.
//!
//! Source: `tensorboard/compat/proto/event.proto` and `summary.proto`.

use super::record;
use prost::Message;
use sojourn_protocol::time::UnixMillis;
use std::time::Duration;

/// The version that readers want in the first event.
const FILE_VERSION: &str = "brain.Event:2";

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, optional, tag = "2")]
    step: Option<i64>,
    #[prost(string, tag = "3")]
    file_version: String,
    #[prost(message, optional, tag = "5")]
    summary: Option<Summary>,
}

#[derive(Clone, PartialEq, Message)]
struct Summary(#[prost(message, repeated, tag = "1")] Vec<Value>);

#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
    #[prost(message, optional, tag = "9")]
    metadata: Option<Metadata>,
}

#[derive(Clone, PartialEq, Message)]
struct Metadata(#[prost(message, optional, tag = "1")] Option<PluginData>);

#[derive(Clone, PartialEq, Message)]
struct PluginData {
    #[prost(string, tag = "1")]
    plugin_name: String,
    #[prost(bytes = "vec", tag = "2")]
    content: Vec<u8>,
}

/// Seconds since the Unix epoch, as TensorBoard has times.
pub(super) fn seconds(at: UnixMillis) -> f64 {
    Duration::from_millis(at.0).as_secs_f64()
}

/// The bytes of an event file.
pub(super) struct Events(Vec<u8>);

impl Events {
    /// The first event: the version of the file.
    pub(super) fn begin(at: UnixMillis) -> Self {
        let mut events = Self(Vec::new());
        events.push(Event { file_version: FILE_VERSION.to_owned(), ..event(at, 0) });
        events
    }

    /// A scalar. Values are single precision, as every writer of scalars for TensorBoard has them.
    pub(super) fn scalar(&mut self, at: UnixMillis, step: u32, tag: &str, value: f64) {
        #[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest")]
        let simple_value = Some(value as f32);
        self.summary(at, step, Value { tag: tag.to_owned(), simple_value, metadata: None });
    }

    /// The data of a plugin.
    pub(super) fn plugin(
        &mut self,
        at: UnixMillis,
        tag: &str,
        plugin: &str,
        content: &impl Message,
    ) {
        let (plugin_name, content) = (plugin.to_owned(), content.encode_to_vec());
        let metadata = Some(Metadata(Some(PluginData { plugin_name, content })));
        self.summary(at, 0, Value { tag: tag.to_owned(), simple_value: None, metadata });
    }

    /// All of it.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn summary(&mut self, at: UnixMillis, step: u32, value: Value) {
        self.push(Event { summary: Some(Summary(vec![value])), ..event(at, step) });
    }

    fn push(&mut self, event: Event) {
        record::append(&mut self.0, &event.encode_to_vec());
    }
}

fn event(at: UnixMillis, step: u32) -> Event {
    Event { wall_time: seconds(at), step: Some(i64::from(step)), ..Event::default() }
}
