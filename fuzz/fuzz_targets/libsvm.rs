//! libFuzzer over the target `libsvm`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    sojourn_fuzz_targets::run("libsvm", input);
});
