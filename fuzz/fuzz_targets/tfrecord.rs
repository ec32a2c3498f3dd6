//! libFuzzer over the target `tfrecord`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    sojourn_fuzz_targets::run("tfrecord", input);
});
