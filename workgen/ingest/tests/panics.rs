//! Panics of the crates that read files are errors of the files. The only test of its process: the hook is everybody's.

#![expect(clippy::panic, reason = "it is what is tested")]

use sojourn_ingest::check;
use sojourn_protocol::{error::error_chain, jobfile};
use std::{
    fs,
    panic::{catch_unwind, set_hook},
    sync::atomic::{AtomicUsize, Ordering},
};

const JOB: &str = r#"
name = "t"
[data]
train = "t.txt"
valid = 0.25
window = 4
tokenizer = "tokenizer.json"
[[model]]
arch = "graph"
entry = "m.py:M"
[training]
epochs = 1
"#;
/// The tokenizer's map of characters has no entries, not even the first, which is always looked at.
const TOKENIZER: &str = r#"{"version": "1.0", "added_tokens": [], "post_processor": null, "decoder": null, "truncation": null,
    "padding": null, "pre_tokenizer": null, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAAAA=="},
    "model": {"type": "WordLevel", "vocab": {"?": 0}, "unk_token": "?"}}"#;

static SEEN: AtomicUsize = AtomicUsize::new(0);

#[test]
fn a_panic_that_is_caught_is_not_printed_and_others_are() {
    set_hook(Box::new(|_| {
        SEEN.fetch_add(1, Ordering::Relaxed);
    }));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.txt"), "to be or not to be\n".repeat(9)).unwrap();
    fs::write(folder.path().join("tokenizer.json"), TOKENIZER).unwrap();
    let spec = jobfile::parse(JOB).unwrap();
    let said = error_chain(&check(&spec, folder.path(), folder.path(), &mut |_| ()).err().unwrap());
    assert_eq!(
        said,
        "t.txt:1: the tokenizer can't be used: it panics over this line (index out of bounds: the len is 0 but the index is 0); \
         a `tokenizer.json` is wanted"
    );
    assert_eq!(SEEN.load(Ordering::Relaxed), 0);
    assert!(catch_unwind(|| panic!("somebody else's")).is_err());
    assert_eq!(SEEN.load(Ordering::Relaxed), 1);
}
