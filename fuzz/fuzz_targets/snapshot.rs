//! libFuzzer over the target `snapshot`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    sojourn_fuzz_targets::run("snapshot", input);
});
