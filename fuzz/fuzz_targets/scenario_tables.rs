//! libFuzzer over the target `scenario_tables`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    sojourn_fuzz_targets::run("scenario_tables", input);
});
