//! libFuzzer over the target `hdf5`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    sojourn_fuzz_targets::run("hdf5", input);
});
