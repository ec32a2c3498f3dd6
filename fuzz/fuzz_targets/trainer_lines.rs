//! libFuzzer over the target `trainer_lines`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    sojourn_fuzz_targets::run("trainer_lines", input);
});
