//! One line of the log.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// A longer line's texts are cut, in bytes.
const MAX_LINE: usize = 4 << 10;
/// To so many bytes each.
const MAX_TEXT: usize = 500;
/// Fields that the logger adds to each event.
const MESSAGE: &str = "message";

/// A line, as the program's logger makes it: `{"timestamp", "level", "fields": {"message", ...}, "target", "span"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    #[serde(default)]
    timestamp: String,
    #[serde(default)]
    level: String,
    #[serde(default)]
    fields: Map<String, Value>,
    #[serde(default)]
    target: String,
    /// The span of a trace that it belongs to, with its `trace_id`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    span: Map<String, Value>,
}

impl Line {
    /// Reads a line; none where it is no line of a log.
    pub(super) fn parse(json: &[u8]) -> Option<Self> {
        let mut line: Self = serde_json::from_slice(json).ok()?;
        if json.len() > MAX_LINE {
            line.fields.values_mut().for_each(cut);
        }
        Some(line)
    }

    /// The message without its details.
    #[must_use]
    pub fn message(&self) -> &str {
        self.fields.get(MESSAGE).and_then(Value::as_str).unwrap_or_default()
    }

    /// `ERROR`, `WARN`, `INFO`, `DEBUG` or `TRACE`.
    #[must_use]
    pub fn level(&self) -> &str {
        &self.level
    }

    /// When it happened, in UTC: the time of the day alone, in seconds.
    #[must_use]
    pub fn time(&self) -> &str {
        let time = self.timestamp.split_once('T').map_or("", |(_, time)| time);
        time.split(['.', 'Z']).next().unwrap_or_default()
    }

    /// The message with its details: `client started host=3 slots=2`.
    #[must_use]
    pub fn text(&self) -> String {
        let details = self.fields.iter().filter(|(name, _)| *name != MESSAGE);
        details.fold(printable(self.message()), |text, (name, value)| match value {
            Value::String(value) if value.contains(char::is_whitespace) => {
                text + &format!(" {name}={}", printable(&format!("{value:?}")))
            }
            Value::String(value) => text + &format!(" {name}={}", printable(value)),
            value => text + &format!(" {name}={value}"),
        })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = self.timestamp.split('T').next().unwrap_or_default();
        write!(f, "{date} {} {:>5} {}", self.time(), self.level, self.text())
    }
}

/// The text without control characters, which a terminal would obey.
fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

fn cut(value: &mut Value) {
    if let Value::String(text) = value
        && text.len() > MAX_TEXT
    {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        text.push_str(" ...");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_text() {
        let json = br#"{"timestamp":"2026-11-21T17:39:25.123456Z","level":"WARN","fields":{"message":"gave a unit back",
            "lease":7,"reason":"no\u001b[2Jroom left","host":"3"},"target":"sojourn_client::unit"}"#;
        let line = Line::parse(json).unwrap();
        let text = r#"2026-11-21 17:39:25  WARN gave a unit back host=3 lease=7 reason="no\u{1b}[2Jroom left""#;
        assert_eq!(line.to_string(), text);
        assert_eq!((line.time(), line.level()), ("17:39:25", "WARN"));
        assert_eq!(Line::parse(b"{}").unwrap().to_string(), "        ");
        assert_eq!(Line::parse(b"half of a line"), None);
    }

    #[test]
    fn long_texts_are_cut() {
        let long =
            format!("{{\"fields\":{{\"message\":\"{}\",\"lease\":7}}}}", "é".repeat(MAX_TEXT + 1));
        let whole = Line::parse(long.as_bytes()).unwrap();
        assert_eq!(whole.message().len(), 2 * (MAX_TEXT + 1), "it isn't long yet");
        let long = long.replace(":7}", &format!(":7,\"cause\":\"{}\"}}", "x".repeat(MAX_LINE)));
        let line = Line::parse(long.as_bytes()).unwrap();
        assert_eq!(line.message().len(), MAX_TEXT + 4);
        assert!(serde_json::to_string(&line).unwrap().len() < MAX_LINE);
        assert_eq!(line.fields["lease"], 7);
    }
}
