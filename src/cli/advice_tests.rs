//! Advice in messages is followed: commands in backticks are those that the program accepts, and TOML is TOML.
//!
//! The messages are those in the sources. Parts that a message fills in are filled in here, and so are words that stand for a value.

use crate::cli::command_line::command;
use clap::error::ErrorKind;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The folders whose messages people see.
const SOURCES: [&str; 9] = [
    "src",
    "client/src",
    "client/daemon/src",
    "protocol/src",
    "workgen/src",
    "workgen/ingest/src",
    "server/src",
    "server/core/src",
    "server/state/src",
];
/// Words that stand for a value, and one.
const VALUES: [(&str, &str); 12] = [
    ("N", "3"),
    ("TIME", "1d"),
    ("URL", "http://127.0.0.1:8642"),
    ("HOST", "3"),
    ("channels", "1"),
    ("height", "8"),
    ("width", "8"),
    ("low", "1"),
    ("high", "2"),
    ("...", ""),
    ("R", "1"),
    ("SIZE", "1GB"),
];
/// Spans with a ` = ` that aren't of a job file or a limit: of other languages, or formulas.
const NO_TOML: [&str; 3] = ["row.names = FALSE", "col.names = NA", "j = k - warmup"];

/// Collects all spans in backticks in the messages of a file: in lines that aren't comments.
fn spans(path: &Path, found: &mut BTreeSet<String>) {
    let text = fs::read_to_string(path).unwrap();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        if line.contains('"') || line.trim_end().ends_with('\\') {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && name != "tests" {
            sources(&path, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

fn all_spans() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in SOURCES {
        sources(&root.join(folder), &mut files);
    }
    let mut found = BTreeSet::new();
    files.iter().for_each(|file| spans(file, &mut found));
    found
}

/// The span as a message would say it, with a value for each part that is filled in.
fn filled_in(span: &str) -> String {
    let mut text = span.replace("\\\"", "\"").replace("{{", "\u{1}").replace("}}", "\u{2}");
    while let Some((before, rest)) = text.clone().split_once('{') {
        let Some((inside, after)) = rest.split_once('}') else { break };
        if !inside.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:".contains(&byte)) {
            // Braces of TOML, in a text that no message fills in.
            text = format!("{before}\u{1}{inside}\u{2}{after}");
            continue;
        }
        text = format!("{before}1{after}");
    }
    text.replace('\u{1}', "{").replace('\u{2}', "}")
}

/// The text with a value for each word that stands for one.
fn with_values(text: &str) -> String {
    let mut words = Vec::new();
    let mut word = String::new();
    let close = |word: &mut String, words: &mut Vec<String>| {
        let value =
            VALUES.iter().find(|(name, _)| name == word).map(|(_, value)| (*value).to_owned());
        words.push(value.unwrap_or_else(|| word.clone()));
        word.clear();
    };
    for symbol in text.chars() {
        if symbol.is_alphanumeric() || "_-./:".contains(symbol) {
            word.push(symbol);
        } else {
            close(&mut word, &mut words);
            words.push(symbol.to_string());
        }
    }
    close(&mut word, &mut words);
    words.concat()
}

/// Why the program refuses a command, where that isn't for an argument which the message leaves out.
fn refusal(words: &[&str]) -> Option<String> {
    let error = command().try_get_matches_from(words).err()?;
    match error.kind() {
        // A command or a flag that is only named.
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelp
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => None,
        ErrorKind::InvalidValue if words.last().is_some_and(|last| last.starts_with("--")) => None,
        _ => Some(format!("`{}`: {error}", words.join(" "))),
    }
}

#[test]
fn commands_in_messages_are_accepted() {
    let (mut refused, mut tried) = (Vec::new(), 0);
    for span in all_spans().iter().filter(|span| span.starts_with("sojourn ")) {
        let line = with_values(&filled_in(span));
        let words: Vec<&str> = line.split_whitespace().collect();
        // The name of a command or a flag may be filled in too.
        let is_open = words.iter().any(|word| *word == "1" || word.starts_with("--1"))
            && (span.contains("--{") || span.starts_with("sojourn {"));
        if is_open || words.get(1).is_some_and(|word| word.starts_with(char::is_uppercase)) {
            continue;
        }
        tried += 1;
        refused.extend(refusal(&words));
    }
    assert!(tried > 35, "{tried} commands were found");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn toml_in_messages_is_toml() {
    let (mut refused, mut tried) = (Vec::new(), 0);
    let is_key = |span: &&String| {
        let key = span.split(" = ").next().unwrap_or_default();
        let is_part =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.".contains(&byte);
        span.contains(" = ") && key.bytes().all(is_part)
    };
    for span in all_spans().iter().filter(is_key) {
        if NO_TOML.contains(&span.as_str()) {
            continue;
        }
        tried += 1;
        let text = with_values(&filled_in(span));
        if let Err(error) = toml::from_str::<toml::Table>(&text) {
            refused.push(format!("`{text}`: {error}"));
        }
    }
    assert!(tried > 20, "{tried} were found");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn what_a_message_fills_in_is_filled_in() {
    assert_eq!(filled_in("export {id} -o FILE"), "export 1 -o FILE");
    assert_eq!(filled_in(r#"columns = {{ drop = [\"{}\"] }}"#), r#"columns = { drop = ["1"] }"#);
    assert_eq!(filled_in("columns = { use = [...] }"), "columns = { use = [...] }");
    assert_eq!(with_values("shape = [channels, height]"), "shape = [1, 8]");
    assert!(refusal(&["sojourn", "hosts", "--tokn", "x"]).is_some());
    assert!(refusal(&["sojourn", "host"]).is_some());
    assert!(refusal(&["sojourn", "pause"]).is_none());
}
