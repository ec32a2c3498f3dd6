//! The machines' user data: a template of the owner with placeholders, which cloud-init carries out at the first start.
//!
//! A placeholder is a name in double braces, as `{{server}}`. `{{machine}}` and `{{enrolment_token}}` are the machine's own.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sojourn_fleet::cloud::NewMachine;
use std::{collections::BTreeMap, fmt, path::Path};

/// Bytes of user data that EC2 takes, before they are encoded.
pub const MAX_USER_DATA: usize = 16 * 1024;
/// The placeholder of a machine's name.
const MACHINE: &str = "machine";
/// The placeholder of its enrolment token.
const TOKEN: &str = "enrolment_token";
/// A stand-in for both while a template is checked: none is longer.
const MAX_CHARS: usize = 128;

/// The faults that a template of user data can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UserDataError {
    /// The file can't be read.
    #[error("the user data `{path}` can't be read: {message}")]
    Unread {
        /// The file.
        path: String,
        /// As the system says it.
        message: String,
    },
    /// No value is known for it.
    #[error("the user data has the placeholder `{{{{{name}}}}}`, which is none of: {}", known.join(", "))]
    Unknown {
        /// The placeholder.
        name: String,
        /// The placeholders that have a value.
        known: Vec<String>,
    },
    /// Braces without a name, or without an end.
    #[error("line {line} of the user data has braces that are no placeholder")]
    Braces {
        /// The line, from 1.
        line: usize,
    },
    /// A machine couldn't enrol.
    #[error("the user data lacks the placeholder `{{{{{0}}}}}`")]
    Missing(&'static str),
    /// A value that could become something else in a file or a shell.
    #[error(
        "the value of `{{{{{0}}}}}` has quotes, spaces or control characters, or is an empty token"
    )]
    Value(String),
    /// EC2 takes no more.
    #[error("the user data has {bytes} bytes once it is filled in; EC2 takes {MAX_USER_DATA}")]
    Large {
        /// The size of the user data once it is filled in, in bytes.
        bytes: usize,
    },
}

#[derive(Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Machine,
    Token,
}

/// A template whose placeholders are filled in, but for those of each machine.
#[derive(Clone, PartialEq, Eq)]
pub struct UserData(Vec<Part>);

impl fmt::Debug for UserData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserData").finish_non_exhaustive()
    }
}

impl UserData {
    /// Reads a template from its file: see [`UserData::new`].
    ///
    /// # Errors
    /// Where the file can't be read, and as `new`.
    pub fn read(path: &Path, values: &BTreeMap<String, String>) -> Result<Self, UserDataError> {
        let unread = |error: std::io::Error| UserDataError::Unread {
            path: path.display().to_string(),
            message: error.to_string(),
        };
        Self::new(&std::fs::read_to_string(path).map_err(unread)?, values)
    }

    /// A template and the values of its placeholders, but for those of each machine.
    ///
    /// # Errors
    /// Where a placeholder has no value, one of the machine's is missing, a value has characters that could become part of a
    /// command, or all of it is more than [`MAX_USER_DATA`].
    pub fn new(template: &str, values: &BTreeMap<String, String>) -> Result<Self, UserDataError> {
        if let Some((name, _)) = values.iter().find(|(_, value)| !is_plain(value)) {
            return Err(UserDataError::Value(name.clone()));
        }
        let (mut parts, mut rest) = (vec![], template);
        while let Some((text, after)) = rest.split_once("{{") {
            let line = template.len() - after.len();
            let line = template.get(..line).unwrap_or_default().matches('\n').count() + 1;
            let (name, after) = after.split_once("}}").ok_or(UserDataError::Braces { line })?;
            let name = name.trim();
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                return Err(UserDataError::Braces { line });
            }
            parts.push(Part::Text(text.to_owned()));
            parts.push(match name {
                MACHINE => Part::Machine,
                TOKEN => Part::Token,
                _ => Part::Text(values.get(name).cloned().ok_or_else(|| unknown(name, values))?),
            });
            rest = after;
        }
        parts.push(Part::Text(rest.to_owned()));
        for (part, name) in [(Part::Machine, MACHINE), (Part::Token, TOKEN)] {
            if !parts.contains(&part) {
                return Err(UserDataError::Missing(name));
            }
        }
        let template = Self(parts);
        let longest = "x".repeat(MAX_CHARS);
        template.fill(&longest, &longest)?;
        Ok(template)
    }

    /// The user data of a machine, in base64.
    ///
    /// # Errors
    /// Where the token has characters that could become part of a command, or all of it is more than [`MAX_USER_DATA`].
    pub(crate) fn of(&self, machine: &NewMachine) -> Result<String, UserDataError> {
        if machine.enrolment_token.is_empty() || !is_plain(&machine.enrolment_token) {
            return Err(UserDataError::Value(TOKEN.to_owned()));
        }
        let filled = self.fill(machine.name.as_str(), &machine.enrolment_token)?;
        Ok(STANDARD.encode(filled))
    }

    fn fill(&self, machine: &str, token: &str) -> Result<String, UserDataError> {
        let text = |part| match part {
            &Part::Machine => machine,
            &Part::Token => token,
            Part::Text(text) => text,
        };
        let filled: String = self.0.iter().map(text).collect();
        if filled.len() > MAX_USER_DATA {
            return Err(UserDataError::Large { bytes: filled.len() });
        }
        Ok(filled)
    }
}

/// Can it stand in a file of any format, and between quotes of a shell?
pub(crate) fn is_plain(value: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '`' | '$' | '\\');
    value.chars().all(plain)
}

fn unknown(name: &str, values: &BTreeMap<String, String>) -> UserDataError {
    let mut known: Vec<String> = values.keys().cloned().collect();
    known.extend([MACHINE.to_owned(), TOKEN.to_owned()]);
    UserDataError::Unknown { name: name.to_owned(), known }
}
