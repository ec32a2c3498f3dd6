//! libFuzzer over the target `client_toml`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    sojourn_fuzz_targets::run("client_toml", input);
});
