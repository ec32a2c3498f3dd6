//! libFuzzer over the target `job_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    sojourn_fuzz_targets::run("job_file", input);
});
