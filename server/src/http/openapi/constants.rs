//! Names of constants in comments of the code, and the values that the document has in their place.

use sojourn_protocol::{
    api::{
        AWAITING_SHARDS, DISK_RESERVES, ENGINES, MAX_DELETED_JOBS, MAX_NOTE_CHARS, MAX_WHY_CHARS,
        PRODUCED_CHECKPOINTS, SEVERAL_CLASSES, TRAIN_LOSSES, UNIT_USAGE, UNSUPPORTED_UNITS,
        UPLOAD_PROGRESS, WRONG_UNITS,
    },
    machines::{MAX_LEADER_TERM, MAX_MACHINES},
    spec::{
        DEFAULT_MERGE_IN_FLIGHT, DEFAULT_TOP_K, MAX_ARRIVALS, MAX_LOSS_RATIO, MAX_MOMENTUM,
        MAX_QUORUM, MAX_RATE,
    },
    tokens::{MAX_TOKEN_HOSTS, MAX_TOKEN_LIFETIME},
};

macro_rules! values {
    ($($name:ident $(.$field:tt)?),+ $(,)?) => {
        &[$((stringify!($name), || $name $(.$field)?.to_string())),+]
    };
}

/// A constant's value as text.
type Text = fn() -> String;

const VALUES: &[(&str, Text)] = values![
    AWAITING_SHARDS,
    DEFAULT_MERGE_IN_FLIGHT,
    DEFAULT_TOP_K,
    DISK_RESERVES,
    ENGINES,
    MAX_ARRIVALS,
    MAX_DELETED_JOBS,
    MAX_LEADER_TERM.0,
    MAX_LOSS_RATIO,
    MAX_MACHINES,
    MAX_MOMENTUM,
    MAX_NOTE_CHARS,
    MAX_QUORUM,
    MAX_RATE,
    MAX_TOKEN_HOSTS,
    MAX_TOKEN_LIFETIME.0,
    MAX_WHY_CHARS,
    PRODUCED_CHECKPOINTS,
    SEVERAL_CLASSES,
    TRAIN_LOSSES,
    UNIT_USAGE,
    UNSUPPORTED_UNITS,
    UPLOAD_PROGRESS,
    WRONG_UNITS,
];

/// The text with values in place of names: whole words of capitals and underscores.
pub(super) fn resolved(text: &str) -> String {
    let is_part = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    let mut plain = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find(is_part) {
        let (before, from) = rest.split_at(begin);
        let end = from.find(|letter| !is_part(letter)).unwrap_or(from.len());
        let (name, after) = from.split_at(end);
        let value = VALUES.iter().find(|(known, _)| *known == name);
        plain.push_str(before);
        plain.push_str(&value.map_or_else(|| name.to_owned(), |(_, value)| value()));
        rest = after;
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_constants_become_their_values() {
        assert_eq!(resolved("2 to `MAX_QUORUM`, of UTF-8"), "2 to `5`, of UTF-8");
        assert_eq!(resolved("the feature `ENGINES`"), "the feature `engines`");
        assert_eq!(resolved("at most `MAX_LEADER_TERM`"), "at most `300000`");
    }
}
