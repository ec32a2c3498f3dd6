//! Comments of the code as descriptions of the document: without the marks of links between items of the code.

use super::constants;
use serde_json::Value;
use std::fmt::Write as _;

/// Keys whose values are for people.
const TEXTS: [&str; 3] = ["description", "summary", "x-enum-descriptions"];

/// Rewrites each description.
pub(super) fn plain(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                if TEXTS.contains(&key.as_str()) {
                    rewrite(value);
                }
                plain(value);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(plain),
        _ => {}
    }
}

fn rewrite(value: &mut Value) {
    match value {
        Value::String(text) => {
            // A field that is missing is `null` in JSON.
            let plain = without_links(without_code(text)).replace("`None`", "`null`");
            *text = constants::resolved(&plain);
        }
        Value::Array(texts) => texts.iter_mut().for_each(rewrite),
        _ => {}
    }
}

/// A description up to its example of code.
fn without_code(text: &str) -> &str {
    text.split_once("```").map_or(text, |(before, _)| before).trim_end()
}

/// ``[`a::B`](c)`` and ``[`B`]`` as `` `B` ``.
fn without_links(text: &str) -> String {
    let mut parts = text.split("[`");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let Some((name, rest)) = part.split_once("`]") else {
            plain.push_str("[`");
            plain.push_str(part);
            continue;
        };
        let target = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let rest = target.map_or(rest, |(_, rest)| rest);
        let name = name.rsplit("::").next().unwrap_or(name);
        // Writing to a text doesn't fail.
        let _ = write!(plain, "`{name}`{rest}");
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_become_names() {
        for (text, plain) in [
            ("a [`crate::b::C`] d", "a `C` d"),
            ("[`A`](crate::b::A), [`c`]", "`A`, `c`"),
            ("`[channels, height]` and [1]", "`[channels, height]` and [1]"),
            ("`[`", "`[`"),
        ] {
            assert_eq!(without_links(text), plain);
        }
    }
}
