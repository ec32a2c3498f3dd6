//! libFuzzer over the target `parquet`.
#![no_main]

// libFuzzer's hook ends the process at any panic. Those of the crate that decodes are caught and become refusals, so the usual
// hook is put back; a panic that nobody catches still ends the process.
libfuzzer_sys::fuzz_target!(
    init: drop(std::panic::take_hook()),
    |input: &[u8]| {
        sojourn_fuzz_targets::run("parquet", input);
    }
);
