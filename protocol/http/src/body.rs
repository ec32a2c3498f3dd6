//! Bodies of answers: read no further than a limit, and shown in one line.

use crate::error::CallError;
use reqwest::Response;

/// Most bytes of an answer that isn't a blob.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Most words and characters of an unexpected answer that a message shows.
const MAX_SHOWN_WORDS: usize = 50;
const MAX_SHOWN_CHARACTERS: usize = 200;

/// The whole body, if it isn't larger than any answer of a server.
pub(crate) async fn read_bounded(
    server: &str,
    mut response: Response,
) -> Result<Vec<u8>, CallError> {
    let mut body = Vec::new();
    loop {
        let chunk = response.chunk().await;
        let Some(chunk) = chunk.map_err(|error| CallError::from_transport(server, error))? else {
            return Ok(body);
        };
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            let detail = format!("more than {MAX_ANSWER_BYTES} bytes");
            return Err(CallError::invalid(server, response.status(), detail));
        }
        body.extend_from_slice(&chunk);
    }
}

/// The beginning of a text, in one line.
pub(crate) fn one_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let words: Vec<&str> = text.split_whitespace().take(MAX_SHOWN_WORDS).collect();
    words.join(" ").chars().take(MAX_SHOWN_CHARACTERS).collect()
}
