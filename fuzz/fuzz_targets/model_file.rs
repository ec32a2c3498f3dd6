//! libFuzzer over the target `model_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    sojourn_fuzz_targets::run("model_file", input);
});
