//! Events and summaries, as TensorBoard has them.
//!
//! Source: `tensorboard/compat/proto/event.proto` and `summary.proto`.

use super::{protobuf::Message, record};
use sojourn_protocol::time::UnixMillis;
use std::time::Duration;

/// The version that readers want in the first event.
const FILE_VERSION: &str = "brain.Event:2";

/// Fields of `Event`.
const EVENT_WALL_TIME: u32 = 1;
const EVENT_STEP: u32 = 2;
const EVENT_FILE_VERSION: u32 = 3;
const EVENT_SUMMARY: u32 = 5;
/// Fields of `Summary` and `Summary.Value`.
const SUMMARY_VALUE: u32 = 1;
const VALUE_TAG: u32 = 1;
const VALUE_SIMPLE_VALUE: u32 = 2;
const VALUE_METADATA: u32 = 9;
/// Fields of `SummaryMetadata` and `SummaryMetadata.PluginData`.
const METADATA_PLUGIN_DATA: u32 = 1;
const PLUGIN_NAME: u32 = 1;
const PLUGIN_CONTENT: u32 = 2;

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
        events.push(event(at, 0).text(EVENT_FILE_VERSION, FILE_VERSION));
        events
    }

    /// A scalar. Values are single precision, as every writer of scalars for TensorBoard has them.
    pub(super) fn scalar(&mut self, at: UnixMillis, step: u32, tag: &str, value: f64) {
        #[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest")]
        let value = Message::new().text(VALUE_TAG, tag).float(VALUE_SIMPLE_VALUE, value as f32);
        self.summary(at, step, value);
    }

    /// The data of a plugin.
    pub(super) fn plugin(&mut self, at: UnixMillis, tag: &str, plugin: &str, content: Message) {
        let data = Message::new().text(PLUGIN_NAME, plugin).message(PLUGIN_CONTENT, content);
        let metadata = Message::new().message(METADATA_PLUGIN_DATA, data);
        let value = Message::new().text(VALUE_TAG, tag).message(VALUE_METADATA, metadata);
        self.summary(at, 0, value);
    }

    /// All of it.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn summary(&mut self, at: UnixMillis, step: u32, value: Message) {
        let summary = Message::new().message(SUMMARY_VALUE, value);
        self.push(event(at, step).message(EVENT_SUMMARY, summary));
    }

    fn push(&mut self, event: Message) {
        record::append(&mut self.0, &event.into_bytes());
    }
}

fn event(at: UnixMillis, step: u32) -> Message {
    Message::new().double(EVENT_WALL_TIME, seconds(at)).whole(EVENT_STEP, u64::from(step))
}
