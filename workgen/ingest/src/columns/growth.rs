//! How much longer a tokenizer's file may make a text before it is cut into tokens.
//!
//! Some steps of a file replace one text by another, of any length, and steps in a row multiply. Each is looked at by itself, so this
//! is a bound, and no text need become so long. Steps of Unicode alone (NFKC, lower case) aren't counted: they make at most 11
//! bytes of one, however often they are repeated.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::{Value, to_value};
use sojourn_protocol::quantity::to_u64;
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper, Result};

/// The most steps that a text goes through before it is cut.
const MAX_STEPS: u64 = 100;
/// The most bytes that all of them may make of one.
const MAX_GROWTH: u64 = 256;
/// The most bytes that a line, or all added tokens, may grow to.
const MAX_GROWN: u64 = 256 << 20;

/// The parts of a file that change a text.
#[derive(Deserialize)]
struct Parts {
    normalizer: Option<NormalizerWrapper>,
    pre_tokenizer: Option<PreTokenizerWrapper>,
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
}

#[derive(Deserialize)]
struct AddedToken {
    content: String,
}

/// The growth of text by one or more steps, and their number.
#[derive(Debug, Clone, Copy)]
struct Steps {
    count: u64,
    /// The most bytes that they make of one.
    growth: u64,
}

/// The longest text in bytes that may be given to the tokenizer of this file; or why none can be.
pub(super) fn longest_text(file: &[u8]) -> Result<u64> {
    let Parts { normalizer, pre_tokenizer, added_tokens } = serde_json::from_slice(file)?;
    let steps = all(&[to_value(normalizer)?, to_value(pre_tokenizer)?])?;
    if steps.count > MAX_STEPS {
        let count = steps.count;
        return Err(format!("it changes text in {count} steps; {MAX_STEPS} are the most").into());
    }
    if steps.growth > MAX_GROWTH {
        let growth = steps.growth;
        let text =
            format!("its `normalizer` may make {growth} bytes of one; {MAX_GROWTH} are the most");
        return Err(text.into());
    }
    let longest = MAX_GROWN / steps.growth.max(1);
    // They are normalized as the file is read.
    let added = added_tokens.iter().map(|token| to_u64(token.content.len()));
    if added.fold(0, u64::saturating_add) > longest {
        return Err(format!("its `added_tokens` have over {longest} bytes").into());
    }
    Ok(longest)
}

fn all(steps: &[Value]) -> Result<Steps> {
    let mut all = Steps { count: 0, growth: 1 };
    for step in steps {
        let Steps { count, growth } = of(step)?;
        all.count = all.count.saturating_add(count);
        all.growth = all.growth.saturating_mul(growth);
    }
    Ok(all)
}

/// One step, several in a row, or none, as the library writes them.
fn of(step: &Value) -> Result<Steps> {
    let text = |at: &str| step.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let length = |at: &str| to_u64(text(at).len());
    if step.is_null() {
        return Ok(Steps { count: 0, growth: 1 });
    }
    let growth = match text("/type") {
        "Sequence" => {
            let steps = step.get("normalizers").or(step.get("pretokenizers"));
            return all(steps.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default());
        }
        "Replace" => {
            let content = length("/content");
            match length("/pattern/String") {
                // A regular expression may match between any two characters.
                0 => content.saturating_add(1),
                pattern => content.div_ceil(pattern).max(1),
            }
        }
        "Prepend" => length("/prepend").saturating_add(1),
        "Precompiled" => longest_entry(text("/precompiled_charsmap"))?,
        // A byte that is no letter becomes a character of two.
        "ByteLevel" => 2,
        _ => 1,
    };
    Ok(Steps { count: 1, growth })
}

/// The longest text that a map of characters of SentencePiece puts in the place of others.
///
/// ```text
/// | bytes of the trie, u32 | trie | texts, each with a zero behind it |
/// ```
fn longest_entry(map: &str) -> Result<u64> {
    let map = BASE64_STANDARD.decode(map)?;
    let texts = map.split_first_chunk::<4>().and_then(|(bytes, rest)| {
        let bytes = usize::try_from(u32::from_le_bytes(*bytes)).ok()?;
        rest.get(bytes / 4 * 4..)
    });
    let texts = texts.ok_or("its `precompiled_charsmap` is cut off")?;
    let longest = texts.split(|byte| *byte == 0).map(<[u8]>::len).max();
    Ok(to_u64(longest.unwrap_or_default()).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn longest(normalizer: Value) -> std::result::Result<u64, String> {
        let file = json!({"normalizer": normalizer, "model": {"vocab": {}}}).to_string();
        crate::guard::guarded(|| longest_text(file.as_bytes()))?.map_err(|error| error.to_string())
    }

    fn replace(pattern: Value, content: &str) -> Value {
        json!({"type": "Replace", "pattern": pattern, "content": content})
    }

    #[test]
    fn lines_may_be_shorter_the_more_a_tokenizer_makes_of_them() {
        assert_eq!(longest(Value::Null), Ok(256 << 20));
        assert_eq!(longest(json!({"type": "NFKC"})), Ok(256 << 20));
        assert_eq!(longest(replace(json!({"String": "``"}), "\"")), Ok(256 << 20));
        // As Llama's.
        let space = replace(json!({"String": " "}), "\u{2581}");
        let prepend = json!({"type": "Prepend", "prepend": "\u{2581}"});
        let both = json!({"type": "Sequence", "normalizers": [prepend, space]});
        assert_eq!(longest(both), Ok((256 << 20) / 12));
        let spaces = replace(json!({"Regex": " {2,}"}), "\u{2581}");
        assert_eq!(longest(spaces), Ok((256 << 20) / 4));
        let map = [&[4u8, 0, 0, 0, 9, 9, 9, 9], "ab\0abcde\0".as_bytes()].concat();
        let map =
            json!({"type": "Precompiled", "precompiled_charsmap": BASE64_STANDARD.encode(map)});
        assert_eq!(longest(map), Ok((256 << 20) / 5));
    }

    #[test]
    fn a_tokenizer_that_may_make_too_much_is_refused() {
        let large = replace(json!({"String": "a"}), &"b".repeat(257));
        assert_eq!(
            longest(large).unwrap_err(),
            "its `normalizer` may make 257 bytes of one; 256 are the most"
        );
        let twice = vec![replace(json!({"String": "a"}), "aa"); 60];
        let refused = longest(json!({"type": "Sequence", "normalizers": twice})).unwrap_err();
        assert!(
            refused.starts_with("its `normalizer` may make 1152921504606846976 bytes"),
            "{refused}"
        );
        let many = vec![json!({"type": "Lowercase"}); 101];
        let refused = longest(json!({"type": "Sequence", "normalizers": many})).unwrap_err();
        assert_eq!(refused, "it changes text in 101 steps; 100 are the most");
        for map in ["", "AAAA", "/////w==", "no base64!"] {
            let map = json!({"type": "Precompiled", "precompiled_charsmap": map});
            assert!(longest(map).is_err());
        }
    }
}
