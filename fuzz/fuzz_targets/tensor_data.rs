//! libFuzzer over the target `tensor_data`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    sojourn_fuzz_targets::run("tensor_data", input);
});
