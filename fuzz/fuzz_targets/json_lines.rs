//! libFuzzer over the target `json_lines`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    sojourn_fuzz_targets::run("json_lines", input);
});
